"""Opening, closing and choosing a store; the options of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.app.app import SHORTEST
from duetime.config_sources import load
from duetime.engine.node import session
from duetime.model import duration
from duetime.model.instant import SECOND
from duetime.model.settle import Settlement
from duetime.store import Settled, Successors
from duetime.stores.memory import MemoryStore
from tests.app.conftest import MakeApp

CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("submit", ("work",)),
    ("submit_many", ([dt.NewJob("work")],)),
    ("get_job", ("01935c2e-7b3a-7000-8000-000000000000",)),
    ("jobs", ()),
    ("cancel_job", ("01935c2e-7b3a-7000-8000-000000000000",)),
    ("reschedule_job", ("01935c2e-7b3a-7000-8000-000000000000",)),
    ("retry_job", ("01935c2e-7b3a-7000-8000-000000000000",)),
    ("read_attempts", ("01935c2e-7b3a-7000-8000-000000000000",)),
    ("job_output", ("01935c2e-7b3a-7000-8000-000000000000",)),
    ("discard_job", ("01935c2e-7b3a-7000-8000-000000000000",)),
    ("schedule", ("name", "work", dt.Every("1h"))),
    ("get_schedule", ("name",)),
    ("schedules", ()),
    ("pause", ("name",)),
    ("resume", ("name",)),
    ("trigger", ("name",)),
    ("remove", ("name",)),
    ("nodes", ()),
    ("queues", ()),
    ("pause_queue", ("mail",)),
    ("resume_queue", ("mail",)),
    ("limit_queue", ("mail",)),
]


@pytest.mark.parametrize(("verb", "arguments"), CALLS, ids=[verb for verb, _ in CALLS])
async def test_calls_of_a_closed_app_are_refused(verb: str, arguments: tuple[Any, ...]) -> None:
    app = dt.App("memory://")
    with pytest.raises(dt.NotOpen, match="async with app`"):
        await getattr(app, verb)(*arguments)
    await app.open()
    await app.close()
    with pytest.raises(dt.NotOpen):
        await getattr(app, verb)(*arguments)


async def test_app_as_a_context_is_open_in_it_and_closed_by_an_error(app: dt.App) -> None:
    async def fail() -> None:
        async with app as same:
            assert same is app
            await app.submit("work", delay="1h")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert not app.is_open


async def test_app_opened_twice_is_closed_by_the_second_close(app: dt.App) -> None:
    await app.open()
    await app.open()
    await app.close()
    await app.submit("work", delay="1h")
    await app.close()
    await app.close()
    assert not app.is_open


async def test_reopened_app_finds_stored_jobs(app: dt.App) -> None:
    await app.open()
    job = await app.submit("work", delay="1h")
    await app.close()
    await app.open()
    assert (await app.get_job(job.id)).state == "pending"


class Leaving(MemoryStore):
    """Goes away when told, or says that it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.closed = False
        self.tries = 0

    async def put_record(self, *arguments: Any, **named: Any) -> Any:
        self._answer()
        return await super().put_record(*arguments, **named)

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        self.tries += self.away
        self._answer()
        return await super().settle(settlements, successors)

    def _answer(self) -> None:
        if self.closed:
            raise dt.NotOpen("the store was closed")
        if self.away:
            raise dt.StoreUnavailable("away")


async def test_closing_again_does_not_ask_a_store_that_went_away_before() -> None:
    store = Leaving()
    app = dt.App(store)

    @app.task("work")
    async def work() -> None: ...

    async with app.running():
        await (await app.submit("work")).wait(timeout="60s")  # counted, and not written yet
        store.away = True
    store.closed = True
    await app.close()


@pytest.mark.slow
async def test_a_store_that_is_away_when_a_node_stops_is_not_hammered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "FLUSH_TIMEOUT", SECOND)
    store = Leaving()
    app = dt.App(store)

    @app.task("work")
    async def work() -> None:
        store.away = True

    async with app.running() as node:
        await app.submit("work")
        while not store.tries:
            await asyncio.sleep(0)
        tries = store.tries
        node.stop()
    assert tries <= store.tries < tries + 15, "a hundred and more, if it does not wait in between"


async def test_opening_from_many_sides_at_once_opens_the_store_once() -> None:
    class Counting(MemoryStore):
        opened = 0

        async def open(self) -> None:
            await asyncio.sleep(0)
            self.opened += 1

    store = Counting()
    app = dt.App(store)
    await asyncio.gather(*(app.open() for _ in range(5)))
    assert store.opened == 1
    await asyncio.gather(*(app.close() for _ in range(5)))
    assert not app.is_open


async def test_opening_from_two_sides_while_it_is_being_closed_opens_the_store_once() -> None:
    class Counting(MemoryStore):
        opened = 0

        async def open(self) -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            self.opened += 1

        async def close(self) -> None:
            await may_close.wait()
            self.opened -= 1

    store, may_close = Counting(), asyncio.Event()
    app = dt.App(store)
    await app.open()
    closing = asyncio.create_task(app.close())
    await asyncio.sleep(0)
    opening = asyncio.create_task(app.open())
    await asyncio.sleep(0)
    may_close.set()
    await closing
    await asyncio.gather(opening, app.open())
    assert store.opened == 1
    await app.close()
    await app.close()
    assert store.opened == 0


async def test_a_node_that_could_not_be_started_is_not_the_app_s(tmp_path: Path) -> None:
    app = dt.App(f"sqlite:///{tmp_path}/nowhere/duetime.db")
    with pytest.raises(dt.ConfigError):
        async with app.running():
            pass
    assert app.node is None


def test_one_app_serves_one_event_loop_after_another() -> None:
    app = dt.App("memory://")

    @app.task("work")
    async def work() -> str:
        return "done"

    async def once() -> str:
        async with app.running():
            await asyncio.gather(app.open(), app.open())
            result: str = (await (await work.submit()).wait("60s")).result
            await asyncio.gather(app.close(), app.close())
            return result

    assert [asyncio.run(once()) for _ in range(2)] == ["done", "done"]


def test_an_app_that_is_open_in_another_event_loop_says_what_to_do(make_app: MakeApp) -> None:
    app = make_app()

    async def run() -> None:
        async with app.running():
            raise AssertionError("it is not open here")

    calls: list[Any] = [app.open, lambda: app.submit("work"), app.jobs, run, app.close]
    with asyncio.Runner() as first:
        first.run(app.open())
        for call in calls:
            with pytest.raises(dt.Conflict, match=r"was opened in another event loop: .* app\.sync"):
                asyncio.run(call())
        job = first.run(app.submit("work"))  # where it was opened, it works on
        assert first.run(job.refresh()).state == "pending"
        first.run(app.close())
    asyncio.run(_open_and_close(app))


async def _open_and_close(app: dt.App) -> None:
    await app.open()
    await app.close()


@pytest.mark.parametrize("url", ["", "mongodb://host/db", "duetime.db", "amqp:", "c:\\file.db"])
def test_an_unknown_store_is_refused_with_those_there_are(url: str) -> None:
    with pytest.raises(dt.UnknownStore, match="sqlite:///"):
        dt.App(url)


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite://host/file.db", "sqlite:///file.db?mode=ro"]
)
def test_a_wrong_sqlite_url_is_refused_with_the_right_form(url: str) -> None:
    with pytest.raises(dt.ConfigError, match=r"sqlite:///file\.db"):
        dt.App(url)


async def test_missing_folder_is_named(tmp_path: Path) -> None:
    app = dt.App(f"sqlite:///{tmp_path}/missing/file.db")
    with pytest.raises(dt.ConfigError, match="missing"):
        await app.open()
    assert not app.is_open


async def test_migrating_twice_changes_nothing(app: dt.App) -> None:
    first = await app.migrate()
    second = await app.migrate()
    assert second.before == second.after == first.after


@pytest.mark.parametrize("tenant", ["", " x", None])
def test_a_tenant_must_have_a_name(tenant: Any) -> None:
    with pytest.raises(dt.InvalidInput, match="tenant"):
        dt.App("memory://", tenant=tenant)


@pytest.mark.parametrize("name", [name for name in SHORTEST if name not in ("lease", "lookahead")])
def test_shortest_durations_are_those_of_the_settings(name: str) -> None:
    """`lease` and `lookahead` are refused by the node itself."""
    shortest, too_short = duration.show(SHORTEST[name]), duration.show(max(0, SHORTEST[name] - 1_000))
    prefix = "billing=" if name == "keep_queues" else ""
    assert load({name: prefix + shortest}, {})
    if too_short != shortest:
        with pytest.raises(dt.ConfigError, match=f"use {shortest} or more"):
            load({name: prefix + too_short}, {})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 10_001}, "concurrency"),
        ({"concurrency": "5"}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"lease": "100ms"}, "lease"),
        ({"lease": "soon"}, "lease"),
        ({"lease": 30}, "lease"),
        ({"grace": 30}, "grace"),
        ({"max_load": "high"}, "max_load"),
        ({"max_load": True}, "max_load"),
        ({"max_load": 0}, "max_load"),
        ({"grace": "-1s"}, "grace"),
        ({"lookahead": "10ms"}, "lookahead"),
        ({"retention": None}, "retention"),
        ({"roles": []}, "roles"),
        ({"roles": ["api", "boss"]}, "boss"),
        ({"roles": "worker"}, "roles"),
        ({"queues": "billing"}, "queues"),
        ({"queues": [1]}, "queues"),
        ({"queues": 5}, "queues: 5 is not a list of names"),
        ({"queues": ["a\x00"]}, "queues: 'a.x00' must be 1 to 128 printable characters"),
        ({"queues": ["@x"]}, "queues: '@x' is reserved"),
        ({"name": ""}, "name: '' must be 1 to 128 printable characters"),
        ({"name": "n" * 500}, "name: 'nnn"),
        ({"name": 3}, "name: 3 must be"),
        ({"retention": "0s"}, "retention: 0s is too short: use 1m or more"),
        ({"keep_failed": "0s"}, "keep_failed: 0s is too short"),
        ({"keep_queues": {"billing": "0s"}}, "keep_queues: 0s is too short"),
        ({"keep_queues": {"a\x00": "1d"}}, "keep_queues: 'a.x00' must be"),
        ({"keep_queues": [1]}, "keep_queues: .1. is not a mapping"),
        ({"alert_interval": "0s"}, "alert_interval: 0s is too short: use 1s or more"),
        ({"watchdog_interval": "0s"}, "watchdog_interval: 0s is too short"),
        ({"archive": 5}, "archive: 5 is not valid: name a folder or s3://"),
        ({"archive": ""}, "archive: is empty: name a folder or s3://"),
        ({"concurency": 5}, "did you mean 'concurrency'"),
        ({"zzz": 5}, "known are name, roles"),
    ],
)
async def test_wrong_node_options_are_refused(options: dict[str, Any], text: str) -> None:
    app = dt.App("memory://")
    with pytest.raises((dt.ConfigError, dt.InvalidInput), match=text):
        async with app.running(**options):
            pass
    assert not app.is_open


async def test_failing_observer_does_not_disturb_the_app() -> None:
    seen: list[str] = []

    def broken(event: object) -> None:
        raise RuntimeError("broken observer")

    app = dt.App("memory://", observers=[broken, lambda event: seen.append(type(event).__name__)])

    @app.task("work")
    async def work() -> None: ...

    async with app.running():
        await (await work.submit()).wait("60s")
    assert {"NodeJoined", "AttemptsSettled", "NodeLeft"} <= set(seen)


async def test_stopped_node_leaves_no_tasks_or_threads(app: dt.App) -> None:
    @app.task("work")
    def work() -> None: ...

    before = {task for task in asyncio.all_tasks() if not task.done()}
    async with app.running():
        await (await work.submit()).wait("60s")
    left = {task for task in asyncio.all_tasks() if not task.done()} - before
    assert left == set()
