"""Gates and queues on SQLite: what claims cost however much waits, whose turn it is, and who hears that a place is free."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from duetime.model.hint import Hint, JobHint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, JobFilter, State
from duetime.model.lease import NodeId
from duetime.model.limit import Queue, Rate
from duetime.store import Lane, QueueCount
from duetime.stores.sqlite import SqliteStore, gates
from duetime.stores.sqlite.session import Transaction
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    LANE,
    PRIORITY,
    QUEUE,
    TENANT,
    bound,
    fired,
    job,
    jobs,
    joined,
    new_id,
    passed,
    put,
    request,
    retry,
    schedule,
    started,
    stored,
    success,
)

OPERATIONS = 10  # of SQLite's machine, between two counts


@pytest.fixture
async def store(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(shutil.copyfile(sqlite_template, tmp_path / "duetime.db"))
    await opened.open()
    yield opened
    await opened.close()


async def cost(store: SqliteStore, act: Callable[[], Coroutine[Any, Any, object]]) -> int:
    """Operations of the writer's SQLite machine: they do not depend on the weather."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += OPERATIONS
        return 0

    def listen(transaction: Transaction) -> None:
        transaction.connection.set_progress_handler(count, OPERATIONS)  # type: ignore[attr-defined]  # the writer's is a real one

    def stop(transaction: Transaction) -> None:
        transaction.connection.set_progress_handler(None, 0)  # type: ignore[attr-defined]  # the writer's is a real one

    await store._write(listen)
    await act()
    await store._write(stop)
    return counted


class TestCost:
    async def claims(self, store: SqliteStore, node: NodeId, most: int | None = 1, room: int = 10) -> list[Claimed]:
        bounds = (bound(most=most),)
        return await store.claim(request(node, room=room, bounds=bounds))

    async def test_a_flood_behind_a_full_gate(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await started(store, node, job(now - DAY, gate="a"))
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        few = await cost(store, lambda: self.claims(store, node))
        await store.add_jobs(jobs(20_000, now - DAY, gate="a"))
        many = await cost(store, lambda: self.claims(store, node))
        assert many < 2 * few

    async def test_a_flood_behind_a_gate_with_room(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(100, now - DAY, gate="a"))
        few = await cost(store, lambda: self.claims(store, node, None))
        await store.add_jobs(jobs(20_000, now - DAY, gate="a"))
        many = await cost(store, lambda: self.claims(store, node, None))
        assert many < 2 * few

    async def test_gates_whose_time_has_not_come(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now + DAY + at, gate=f"{at}") for at in range(10)])
        few = await cost(store, lambda: self.claims(store, node))
        await store.add_jobs([job(now + DAY + at, gate=f"{at}") for at in range(20_000)])
        many = await cost(store, lambda: self.claims(store, node))
        assert many < 2 * few

    async def test_many_gates_and_little_room(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY, gate=f"{at}") for at in range(100)])
        few = await cost(store, lambda: self.claims(store, node))
        await store.add_jobs([job(now - DAY, gate=f"{at}") for at in range(20_000)])
        many = await cost(store, lambda: self.claims(store, node))
        assert many < 2 * few

    async def test_jobs_of_a_target_nobody_here_knows(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, gate="a", target="elsewhere"))
        few = await cost(store, lambda: self.claims(store, node))
        await store.add_jobs([job(now - DAY, gate=f"{at % 50}", target="elsewhere") for at in range(20_000)])
        many = await cost(store, lambda: self.claims(store, node))
        assert many < 2 * few

    async def test_plain_jobs_beside_a_flood(self, store: SqliteStore) -> None:
        """They are read from their own index, in which no gated job lies."""
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(500, now - HOUR), *jobs(10, now - DAY, gate="a")])
        await started(store, node, job(now - 2 * DAY, gate="a"))
        few = await cost(store, lambda: self.claims(store, node))
        await store.add_jobs(jobs(20_000, now - DAY, gate="a"))
        many = await cost(store, lambda: self.claims(store, node))
        assert many < 2 * few

    async def test_a_settlement_tells_who_waits_without_reading_them(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        running = [await started(store, node, job(now - 2 * DAY, gate="a")) for _ in range(2)]
        await store.add_jobs(jobs(10, now - DAY, gate="a"))
        few = await cost(store, lambda: store.settle([success(running[0], now)]))
        await store.add_jobs(jobs(20_000, now - DAY, gate="a"))
        many = await cost(store, lambda: store.settle([success(running[1], now)]))
        assert many < 2 * few


class TestTurns:
    async def test_one_slot_goes_round_all_gates_and_those_without(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        names = [None, "a", "b", "c", "d"]
        await store.add_jobs([job(now - DAY, gate=gate) for gate in names for _ in range(10)])
        claimed = [row.gate for _ in range(20) for row in await store.claim(request(node, room=1))]
        assert Counter(claimed) == dict.fromkeys(names, 4)

    async def test_a_round_ends_where_it_began(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """Gates are read a few at a time, and each comes up once, wherever the last turn was."""
        monkeypatch.setattr(gates, "FEWEST_LOOKS", 3)
        monkeypatch.setattr(gates, "FIRST_LOOKS", 3)
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY, gate=f"{at:02}") for at in range(40)])
        assert [row.gate for row in await store.claim(request(node, room=25))] == [f"{at:02}" for at in range(25)]
        await store.add_jobs([job(now - DAY, gate=f"{at:02}") for at in range(25)])
        claimed = [row.gate for row in await store.claim(request(node, room=100))]
        assert claimed == [f"{at:02}" for at in (*range(25, 40), *range(25))]

    async def test_a_claim_looks_at_so_many_and_the_next_goes_on(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gates, "MOST_LOOKS", 20)
        monkeypatch.setattr(gates, "FEWEST_LOOKS", 10)
        monkeypatch.setattr(gates, "FIRST_LOOKS", 10)
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY, gate=f"{at:03}") for at in range(100) for _ in range(2)])
        one = (bound(most=1),)
        claimed = [row.gate for _ in range(40) for row in await store.claim(request(node, room=7, bounds=one))]
        assert sorted(claimed, key=str) == [f"{at:03}" for at in range(100)]

    async def test_the_turn_goes_on_although_gates_are_full(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """More full gates than a claim may look at do not hide the free one for ever."""
        monkeypatch.setattr(gates, "MOST_LOOKS", 20)
        monkeypatch.setattr(gates, "FEWEST_LOOKS", 10)
        monkeypatch.setattr(gates, "FIRST_LOOKS", 10)
        node, now = await joined(store), await store.time()
        for at in range(100):
            await started(store, node, job(now - 2 * DAY, gate=f"{at:03}"))
        await store.add_jobs([*jobs(50, now - DAY), *(job(now - DAY, gate=f"{at:03}") for at in range(101))])
        store._cursors.clear()
        one = (bound(most=1),)
        claimed = [row.gate for _ in range(10) for row in await store.claim(request(node, room=3, bounds=one))]
        assert Counter(claimed) == {None: 29, "100": 1}

    async def test_targets_behind_one_gate_go_by_due_time(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY + at, gate="a", target=f"task {at % 3}") for at in range(9)])
        claimed = await store.claim(request(node, targets=("task 0", "task 2"), room=5, bounds=(bound(most=5, target="task 0"),)))
        assert [row.due_at - now + DAY for row in claimed] == [0, 2, 3, 5, 6]


class Ear:
    def __init__(self, store: SqliteStore) -> None:
        self.heard: list[Hint] = []
        self._woken = asyncio.Event()
        store.subscribe(self)

    def __call__(self, hint: Hint) -> None:
        self.heard.append(hint)
        self._woken.set()

    async def next(self) -> Hint:
        await asyncio.wait_for(self._woken.wait(), 60)
        return self.heard[0]


class TestFreed:
    @pytest.mark.parametrize("again", [False, True])
    async def test_whoever_waits_behind_the_gate_hears(self, store: SqliteStore, again: bool) -> None:
        """In whichever lane: a gate is one over all of them."""
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now - HOUR, gate="a"))
        await store.add_jobs([job(now - HOUR, gate="a", queue="other", priority=9), job(now - HOUR, gate="b", queue="third")])
        ear = Ear(store)
        await store.settle([retry(running, now + DAY, now) if again else success(running, now)])
        await ear.next()
        lanes = {(hint.queue, hint.priority) for hint in ear.heard if isinstance(hint, JobHint)}
        assert lanes == {("other", 9)} | ({(QUEUE, PRIORITY)} if again else set())

    async def test_nobody_waits_and_nobody_is_woken(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now - HOUR, gate="a"))
        await store.add_jobs([job(now + HOUR, gate="a"), job(now - HOUR, gate="b")])
        ear = Ear(store)
        await store.settle([success(running, now)])
        await store.hint([JobHint("repeated", 0, 0)])  # as a worker does, which knows less
        await store.hint([JobHint("by hand", 0, 0)])
        assert await ear.next() == JobHint("by hand", 0, 0)

    async def test_a_place_in_a_limited_queue(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, most=1))
        running, other = await started(store, node, job(now)), await started(store, node, job(now, queue="other"))
        ear = Ear(store)
        await store.settle([success(other, now)])
        await store.settle([success(running, now)])
        hint = await ear.next()
        assert isinstance(hint, JobHint)
        assert hint.queue == QUEUE


class TestQueues:
    async def test_what_a_limit_held_up_is_found_below_the_bound(self, store: SqliteStore) -> None:
        """A worker reads each lane from the last due time it saw; what a limit kept from it lies before that."""
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, most=1))
        await store.add_jobs(jobs(2, now - HOUR))
        [first] = await store.claim(request(node))
        await store.settle([success(first, now)])
        assert len(await store.claim(request(node, Lane(QUEUE, PRIORITY, now - SECOND)))) == 1

    async def test_a_plain_lane_between_limited_ones(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue("a", most=1))
        await store.set_queue(Queue("c", rate=Rate(2, HOUR)))
        for queue in "abc":
            await store.add_jobs(jobs(5, now - DAY, queue=queue))
        lanes = [Lane(queue, PRIORITY, 0) for queue in "abc"]
        assert [row.queue for row in await store.claim(request(node, *lanes))] == list("abbbbbcc")
        assert [row.queue for row in await store.claim(request(node, *lanes, LANE))] == []

    async def test_a_rate_of_the_queue_is_no_reason_to_look_before_it_allows_anything(self, store: SqliteStore) -> None:
        """The gate would be free at once; the worker would ask again and again."""
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, rate=Rate(1, HOUR)))
        await store.add_jobs(jobs(3, now - DAY, gate="a"))
        asked = request(node, bounds=(bound(rate=Rate(1, 1)),))
        assert len(await store.claim(asked)) == 1
        found = await store.next_due(asked)
        assert found is not None
        assert found >= now + HOUR

    async def test_what_the_prefetch_could_not_take_for_its_rate(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        rated = (bound(rate=Rate(1, HOUR)),)
        await store.add_jobs([job(now - DAY, gate="a"), job(now + HOUR // 2, gate="a")])
        asked = request(node, bounds=rated, prefetch=HOUR)
        assert len(await store.claim(asked)) == 1
        found = await store.next_due(asked)
        assert found is not None
        assert now + HOUR <= found <= await store.time() + HOUR

    async def test_spent_rates_are_forgotten(self, store: SqliteStore) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([job(now - DAY, gate="a"), job(now - DAY, gate="b", target="other")])
        bounds = (bound(rate=Rate(1, 1)), bound(rate=Rate(1, HOUR), target="other"))
        assert len(await store.claim(request(node, targets=("task", "other"), bounds=bounds))) == 2
        await store.prune(now - DAY)
        assert await store._read(lambda session: session.connection.execute("SELECT name FROM gates").fetchall()) == [("b",)]

    @pytest.mark.parametrize("most", [None, 1, 2])
    async def test_a_start_allowed_since_the_last_claim_is_not_missed(self, store: SqliteStore, most: int | None) -> None:
        """The claim came a moment too early; asked when to look again, the answer is: at once, unless there is no place."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(3, now - DAY, gate="a"))
        rate = Rate(1, SECOND // 20)
        asked = request(node, bounds=(bound(most=most, rate=rate),))
        assert len(await store.claim(asked)) == 1
        first = await store.next_due(request(node, bounds=(bound(rate=rate),)))
        assert first is not None
        await passed(store, first)
        assert await store.next_due(asked) == (None if most == 1 else first)
        assert len(await store.claim(asked)) == (0 if most == 1 else 1)

    @pytest.mark.parametrize("most", [None, 1])
    async def test_nor_is_one_a_queue_allows(self, store: SqliteStore, most: int | None) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(3, now - DAY))
        await store.set_queue(Queue(QUEUE, most=most, rate=Rate(1, SECOND // 20)))
        assert len(await store.claim(request(node))) == 1
        first = await store.next_due(request(node))
        assert first is not None
        await passed(store, first)
        assert await store.next_due(request(node)) == (None if most else first)


class TestPending:
    """Behind a gate or on the way there, a job is pending to everybody outside."""

    async def test_it_is_listed_and_counted_as_such(self, store: SqliteStore) -> None:
        now = await store.time()
        drafts = [job(now - HOUR, gate="a"), job(now + HOUR, gate="a"), job(now - HOUR, gate="a", schedule_id=new_id(0), overlap="queue")]
        await store.add_jobs(drafts)
        for states in (frozenset({State.PENDING}), frozenset({State.PENDING, State.RUNNING}), None):
            assert {found.id for found in await store.list_jobs(JobFilter(TENANT, states), 10)} == {draft.id for draft in drafts}
        assert await store.list_jobs(JobFilter(TENANT, frozenset({State.RUNNING, State.SUCCEEDED})), 10) == []
        assert await store.count_jobs() == [QueueCount(QUEUE, 3, 2, 0)]

    async def test_a_repeated_settlement_is_known(self, store: SqliteStore) -> None:
        """C3: also after the next claim has put it behind its gate."""
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now - HOUR, gate="a"))
        blocker = await started(store, node, job(now - HOUR, gate="a"))
        decision = retry(running, now - HOUR, now)
        for _ in range(2):
            assert await store.settle([decision]) == []
            assert await store.claim(request(node, bounds=(bound(most=1),))) == []
        assert await store.settle([success(running, now)]) == [running.id]
        assert await store.settle([success(blocker, now)]) == []

    async def test_a_withdrawn_fire_is_gone(self, store: SqliteStore) -> None:
        now = await store.time()
        planned = await put(store, schedule(gate="a"), now + HOUR)
        [fire] = await fired(store, planned, None, now + HOUR)
        assert (await stored(store, fire)).gate == "a"
        await store.pause_schedule(TENANT, planned.draft.name, None)
        assert await store.get_job(TENANT, fire) is None
