"""Everything of one store in another: between all stores, after an interruption, and while nodes work."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count, pairwise, permutations, product
from pathlib import Path

import pytest

import duetime as dt
from duetime.app import store_copy
from duetime.app.store_copy import MOVED, KindTotals, StoreCopy, Waiting
from duetime.errors import CopyDiffers, CopyRefused, CopyUnfinished
from duetime.model.lease import Node
from duetime.model.limit import Queue
from duetime.model.stored import JobRow, RowKind, StoredRow
from duetime.store import Store
from duetime.stores.memory import MemoryStore
from duetime.stores.mysql import MySqlStore
from duetime.stores.postgres import PostgresStore
from duetime.stores.redis import RedisStore
from duetime.stores.sqlite import SqliteStore
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    add,
    claim,
    expired,
    finished,
    job,
    jobs,
    joined,
    put,
    remove_schedule,
    request,
    schedule,
)
from duetime.testing.conformance.rows import everything, fill
from tests.servers.brokers import RedisServer
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer

Make = Callable[[str], Awaitable[Store]]
STORES = ["memory", "sqlite", "postgres"]
PAIRS = [
    *product(STORES, STORES),
    *permutations(("sqlite", "redis"), 2),
    *permutations(("postgres", "mariadb"), 2),
    ("mariadb", "redis"),
]
WITH_SERVER = {"postgres", "mariadb"}
MARKED = [pytest.param(*pair, marks=[pytest.mark.server] if WITH_SERVER & {*pair} else []) for pair in PAIRS]
_numbers = count(1)


@pytest.fixture
async def make(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    made: list[Store] = []
    databases: list[tuple[PostgresServer | MariaDbServer, str]] = []

    def database(server: PostgresServer | MariaDbServer) -> str:
        databases.append((server, f"copy_{next(_numbers)}"))
        return server.create_database(databases[-1][1])

    async def make(kind: str) -> Store:
        number = len(made)
        if kind == "memory":
            store: Store = MemoryStore()
        elif kind == "sqlite":
            store = SqliteStore(tmp_path / f"{number}.db")
        elif kind == "redis":
            redis: RedisServer = request.getfixturevalue("redis_server")
            store = RedisStore.from_url(f"{redis.url}?prefix=copy-{next(_numbers)}")
        elif kind == "mariadb":
            store = MySqlStore.from_url(database(request.getfixturevalue("mariadb_server")))
        else:
            store = PostgresStore.from_url(database(request.getfixturevalue("postgres_server")))
        await store.migrate()
        await store.open()
        made.append(store)
        return store

    yield make
    for store in made:
        await store.close()
    for server, name in databases:
        server.drop_database(name)


def copy_of(
    source: Store, target: Store, progress: store_copy.Progress = lambda step: None, origin: str = "source"
) -> StoreCopy:
    return StoreCopy(source, target, origin, progress)


async def stopped(store: Store) -> Store:
    for node in await store.nodes(living=True):
        await store.leave(node.id)
    return store


def as_dead(rows: list[StoredRow]) -> list[StoredRow]:
    return [replace(row, dead=True) if isinstance(row, Node) else row for row in rows]


@pytest.mark.parametrize(("origin", "kind"), MARKED)
async def test_everything_is_copied(make: Make, origin: str, kind: str) -> None:
    source, target = await make(origin), await make(kind)
    await fill(source)
    await stopped(source)
    await expired(source)
    found = await copy_of(source, target).run()
    rows = await everything(source)
    assert await everything(target) == {one: as_dead(rows[one]) for one in RowKind}
    assert {totals.kind: (totals.source.rows, totals.written) for totals in found} == {
        one: (len(rows[one]), len(rows[one])) for one in RowKind
    }
    assert all(totals.equal and totals.source.text == totals.target.text for totals in found)


async def test_thousands_of_jobs_are_copied_in_order(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_copy, "PAGE", 700)
    source, target = await make("sqlite"), await make("memory")
    now = await source.time()
    await source.add_jobs(jobs(3_000, now + HOUR))
    node = await joined(source)
    for draft in jobs(50, now - HOUR):
        await finished(source, node, draft, now)
    await copy_of(await stopped(source), target).run()
    assert await target.read_rows(RowKind.JOBS, None, 9_999) == await source.read_rows(
        RowKind.JOBS, None, 9_999
    )
    due = await claim(target, request(await joined(target), room=9_999, prefetch=DAY))
    assert [one.due_at for one in due] == list(range(now + HOUR, now + HOUR + 3_000))


class Interrupted(Exception):
    pass


def interrupt_at(kind: RowKind, rows: int) -> store_copy.Progress:
    def progress(step: KindTotals | Waiting) -> None:
        if isinstance(step, KindTotals) and step.kind is kind and step.written >= rows:
            raise Interrupted

    return progress


async def interrupted(source: Store, target: Store, rows: int = 400) -> None:
    with pytest.raises(Interrupted):
        await copy_of(source, target, interrupt_at(RowKind.JOBS, rows)).run()


@pytest.fixture
async def halves(make: Make, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, Store]:
    """A store with a thousand jobs, and another with a part of them."""
    monkeypatch.setattr(store_copy, "PAGE", 200)
    source, target = await make("sqlite"), await make("sqlite")
    await source.add_jobs(jobs(1_000, await source.time() + HOUR))
    await source.put_record("kind", TENANT, "key", b"value")
    await interrupted(source, target)
    assert len(await target.read_rows(RowKind.JOBS, None, 9_999)) == 400
    return source, target


async def test_interrupted_copy_goes_on_where_it_ended(halves: tuple[Store, Store]) -> None:
    source, target = halves
    found = await copy_of(source, target).run()
    assert {totals.kind: totals.written for totals in found if totals.written} == {
        RowKind.JOBS: 600,
        RowKind.RECORDS: 1,
    }
    assert await everything(target) == await everything(source)


async def test_unfinished_copy_can_not_be_used(halves: tuple[Store, Store]) -> None:
    source, target = halves
    app = dt.App(target.clone())
    with pytest.raises(CopyUnfinished, match="unfinished copy of source"):
        await app.open()
    with pytest.raises(CopyUnfinished):
        await copy_of(target, MemoryStore()).run()
    await copy_of(source, target).run()
    await app.open()
    await app.close()


async def test_unfinished_copy_of_another_store_is_refused(halves: tuple[Store, Store]) -> None:
    source, target = halves
    with pytest.raises(CopyRefused, match="unfinished copy of source, not of other"):
        await copy_of(source, target, origin="other").run()


async def test_resumed_copy_follows_a_source_that_moved_on(halves: tuple[Store, Store]) -> None:
    """Jobs finished, came and went; a schedule and a record are gone; a unique key has another holder."""
    source, target = halves
    now = await source.time()
    await put(source, schedule("new"), now + HOUR)
    await put(source, schedule("gone"), now + HOUR)
    later = await add(source, job(now + 9 * DAY, unique_key="key"))
    with suppress(Interrupted):
        await copy_of(source, target, interrupt_at(RowKind.RECORDS, 0)).run()
    assert await everything(target) != await everything(source)
    await source.cancel_job(TENANT, later.id, "not needed")
    await add(source, job(now, unique_key="key"))  # in an earlier range
    _, other = await source.read_rows(RowKind.JOBS, None, 2)
    assert isinstance(other, JobRow)
    await source.cancel_job(TENANT, other.id, "not needed")
    await remove_schedule(source, TENANT, "gone")
    await source.put_record("kind", TENANT, "key", None)
    await source.put_record("kind", TENANT, "new", b"value")
    await copy_of(source, target).run()
    assert await everything(target) == await everything(source)


async def test_target_must_be_empty(make: Make) -> None:
    source, target = await make("memory"), await make("memory")
    await add(target, job(await target.time()))
    with pytest.raises(CopyRefused, match="already holds queues"):
        await copy_of(source, target).run()
    node = await joined(other := await make("memory"))
    with pytest.raises(CopyRefused, match=r"the target has 1 living node \(node\)"):
        await copy_of(source, other).run()
    assert [one.id for one in await other.nodes()] == [node]


async def test_source_with_nodes_is_refused(make: Make) -> None:
    source, target = await make("memory"), await make("memory")
    await joined(source, name="host-1")
    with pytest.raises(
        CopyRefused, match=r"1 living node \(host-1\): stop every node first, or copy with --live"
    ):
        await copy_of(source, target).run()
    assert not any((await everything(target)).values())


async def test_source_that_changes_during_the_copy_is_noticed(make: Make) -> None:
    source, target = await make("memory"), await make("memory")
    draft = await add(source, job(await source.time() + HOUR))
    changed: list[object] = []

    def change(step: KindTotals | Waiting) -> None:
        if isinstance(step, KindTotals) and step.kind is RowKind.RECORDS and not changed:
            changed.append(draft)
            source._jobs.live[draft.id].attempt = 7  # type: ignore[attr-defined]

    with pytest.raises(CopyDiffers, match=f"{draft.id} differs.*run `duetime copy` again"):
        await copy_of(source, target, change).run()
    found = await copy_of(source, target).run()
    assert [totals.kind for totals in found if totals.written] == [RowKind.JOBS]


async def test_comparison_names_what_differs(make: Make) -> None:
    source, target = await make("memory"), await make("sqlite")
    now = await source.time()
    missing, other = await add(source, job(now)), await add(target, job(now))
    same = job(now)
    await add(source, same)
    await add(target, same._replace(payload=b'{"a":1}'))
    found = {totals.kind: totals for totals in await copy_of(source, target).compare()}
    assert not found[RowKind.JOBS].equal
    assert set(found[RowKind.JOBS].examples) == {
        f"{missing.id} is only in the source",
        f"{other.id} is only in the target",
        f"{same.id} differs",
    }
    assert found[RowKind.QUEUES].equal


class Fleet:
    """An app on a store, with a task that can be held up."""

    def __init__(self, store: Store, ran: Counter[str]) -> None:
        self.app = dt.App(store.clone())
        self.free = asyncio.Event()
        self.started = asyncio.Event()

        @self.app.task("count")
        async def count(name: str) -> None:
            ran[name] += 1

        @self.app.task("tick")
        async def tick(ctx: dt.Context) -> None:
            ran[f"tick {ctx.fire_time}"] += 1

        @self.app.task("slow")
        async def slow() -> None:
            self.started.set()
            await self.free.wait()
            ran["slow"] += 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
async def test_live_copy_runs_every_job_once(make: Make, kind: str) -> None:
    """Jobs run before, during and after the move; the nodes stop when the copy says so."""
    source, target, ran = await make("sqlite"), await make(kind), Counter[str]()
    steps: asyncio.Queue[Waiting] = asyncio.Queue()

    def progress(step: KindTotals | Waiting) -> None:
        if isinstance(step, Waiting):
            steps.put_nowait(step)

    old = Fleet(source, ran)
    async with old.app.running():
        await old.app.schedule("tick", "tick", dt.Every("500ms"), missed=dt.Missed("all"))
        for number in range(20):
            await (await old.app.submit("count", name=f"before {number}")).wait("60s")
        await old.app.submit("slow")
        await old.started.wait()
        copying = asyncio.create_task(copy_of(source, target, progress).run_live(None))
        while (await steps.get()).running > 1:  # a tick
            pass
        waiting = await old.app.submit("count", name="during")
        assert {queue.pause_note for queue in await source.queues()} == {MOVED}
        old.free.set()
        while (await steps.get()).running:
            pass
        assert (await waiting.refresh()).state == "pending"
    found = await copying
    assert all(totals.equal for totals in found)
    assert {(queue.paused, queue.pause_note) for queue in await target.queues()} == {(False, None)}
    assert (ran["slow"], ran["during"]) == (1, 0)

    new = Fleet(target, ran)
    async with new.app.running():
        await (await new.app.get_job(waiting.id)).wait("60s")
        ticks = len([name for name in ran if name.startswith("tick")])
        while len([name for name in ran if name.startswith("tick")]) < ticks + 4:
            await (await new.app.submit("count", name="after")).wait("60s")
    del ran["after"]
    assert set(ran.values()) == {1}
    fires = sorted(
        row.fire_time
        for row in await target.read_rows(RowKind.JOBS, None, 9_999)
        if isinstance(row, JobRow) and row.schedule == "tick" and row.state.final
    )
    assert {after - before for before, after in pairwise(fires)} == {500_000}


async def test_live_copy_that_gives_up_lets_the_queues_go_on(make: Make) -> None:
    source, target, ran = await make("sqlite"), await make("memory"), Counter[str]()
    fleet = Fleet(source, ran)
    async with fleet.app.running():
        await source.set_queue(mine := Queue("mine", True, "by hand", 5))
        slow = await fleet.app.submit("slow")
        await fleet.started.wait()
        with pytest.raises(CopyRefused, match=r"1 jobs of the source still run, and it has 1 living node"):
            await copy_of(source, target).run_live(0)
        assert [queue for queue in await source.queues() if queue.paused] == [mine]
        fleet.free.set()
        await slow.wait("60s")
