"""The blocking face: every call of the App, from threads, scripts and servers that fork."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.app.sync import SyncApp, SyncJob

PROGRAM = """
import os, sys
import duetime as dt

app = dt.App(sys.argv[1])
app.sync.submit("work", n=1)
child = os.fork()
if child == 0:
    app.sync.submit("work", n=2)
    app.sync.close()
    os._exit(0)
_, status = os.waitpid(child, 0)
app.sync.submit("work", n=3)
print(status, sorted(job.payload["n"] for job in app.sync.jobs()))
app.sync.close()
"""
BUSY = """
import os, signal, sys
import duetime as dt

app = dt.App(sys.argv[1])
app.sync.open()
app.sync._lock.acquire()  # as a thread has it that calls at this very moment
child = os.fork()
if child == 0:
    signal.alarm(20)
    app.sync.submit("work")
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
EXITING = """
import atexit, sys
import duetime as dt

app = dt.App(sys.argv[1])
atexit.register(app.sync.close)  # as the adapter for Flask does
app.task("work")(lambda: None)
app.sync.submit("work")
print(len(app.sync.jobs()))
"""
# Of the event loop, calls of handles, or of an app with a broker.
ONLY_ASYNC = {"run_async", "read_job", "wait_for", "read_broker"}


def coroutines(kind: type) -> dict[str, Any]:
    calls = inspect.getmembers(kind, lambda value: inspect.iscoroutinefunction(inspect.unwrap(value)))
    return {name: call for name, call in calls if not name.startswith("_")}


@pytest.mark.parametrize(("asynchronous", "blocking"), [(dt.App, SyncApp), (dt.JobHandle, SyncJob)])
def test_every_call_has_a_blocking_twin_with_the_same_signature(asynchronous: type, blocking: type) -> None:
    calls = {name: call for name, call in coroutines(asynchronous).items() if name not in ONLY_ASYNC}
    assert len(calls) > 5
    for name, call in calls.items():
        twin = inspect.signature(getattr(blocking, name))
        assert list(twin.parameters) == list(inspect.signature(call).parameters), name


def test_every_service_has_blocking_calls() -> None:
    app = dt.App("memory://")
    services = vars(Services(app.context)).keys() - {"context", "event_feed", "remote_work"}
    assert len(services) > 10
    assert all(hasattr(app.sync, name) for name in services)
    assert app.sync.queues() == app.sync.queues.counted() == []
    assert app.sync.bulk.jobs("cancel", JobQuery()).done == 0
    with pytest.raises(AttributeError, match="no call 'submitt'"):
        app.sync.submitt("work")
    app.sync.close()


async def test_blocking_calls_of_jobs(app: dt.App) -> None:
    @app.task("add")
    async def add(left: int, right: int) -> int:
        return left + right

    def script() -> list[Any]:
        job = app.sync.submit(add, left=1, right=2)
        again = app.sync.get_job(job.id)
        many = app.sync.submit_many([dt.NewJob("add", {"left": 3, "right": 4})])
        late = app.sync.submit("add", left=1, right=1, delay="1h")
        return [
            job.wait("60s").result,
            again.refresh().state,
            many[0].wait("60s").result,
            late.cancel(),
            len(app.sync.jobs(state="succeeded")),
            repr(job) == f"<Job {job.id} succeeded>",
        ]

    async with app.running():
        assert await asyncio.to_thread(script) == [3, "succeeded", 7, "cancelled", 2, True]


async def test_blocking_calls_of_schedules(app: dt.App) -> None:
    def script() -> list[Any]:
        sync = app.sync
        sync.migrate()
        sync.open()
        sync.schedule("name", "work", dt.Every("1h"))
        seen = [
            sync.get_schedule("name").version,
            sync.pause("name", "note").pause_note,
            sync.resume("name").paused,
            sync.trigger("name").refresh().schedule,
            [view.name for view in sync.schedules()],
            len(sync.nodes()),
        ]
        sync.remove("name")
        return [*seen, sync.schedules()]

    assert await asyncio.to_thread(script) == [1, "note", False, "name", ["name"], 0, []]


async def test_blocking_calls_of_dead_letters(app: dt.App) -> None:
    @app.task("fail", retry=dt.Retry(max_attempts=1))
    async def fail() -> None:
        raise ValueError

    def script() -> list[str]:
        first, second = app.sync.submit("fail").wait("60s"), app.sync.submit("fail").wait("60s")
        again = app.sync.retry_job(first.id).wait("60s")
        app.sync.discard_job(second.id)
        with pytest.raises(dt.JobFinished):
            app.sync.cancel_job(first.id)
        return [first.state, second.refresh().record.disposition, again.state]

    async with app.running():
        assert await asyncio.to_thread(script) == ["dead", "discarded", "dead"]


def test_errors_are_raised_in_the_calling_thread() -> None:
    app = dt.App("memory://")
    with pytest.raises(dt.InvalidInput, match="priority"):
        app.sync.submit("work", priority=10)
    with pytest.raises(dt.ScheduleNotFound):
        app.sync.pause("nothing")
    app.sync.close()


def test_many_threads_can_make_the_first_call_together(tmp_path: Path) -> None:
    others = set(threading.enumerate())  # an earlier test's may still be on their way out
    app = dt.App(f"sqlite:///{tmp_path}/duetime.db")
    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(lambda n: app.sync.submit("work", n=n, delay="1h"), range(40)))
    assert len({job.id for job in jobs}) == 40
    app.sync.close()
    assert not any(thread.name.startswith("duetime") for thread in set(threading.enumerate()) - others)


def test_closed_face_opens_itself_again() -> None:
    app = dt.App("memory://")
    app.sync.close()
    job = app.sync.submit("work", delay="1h")
    app.sync.close()
    app.sync.close()
    assert app.sync.get_job(job.id).state == "pending"
    app.sync.close()


def test_handle_works_after_the_face_was_closed() -> None:
    app = dt.App("memory://")
    job = app.sync.submit("work", delay="1h")
    app.sync.close()
    assert job.refresh().state == "pending"
    app.sync.close()
    assert job.cancel() == "cancelled"
    assert job.wait("1m").state == "cancelled"
    app.sync.close()


def test_face_follows_the_app_to_another_store() -> None:
    app = dt.App("memory://")
    app.sync.submit("work", delay="1h")
    app.use_store("memory://")
    assert app.sync.jobs() == []
    app.sync.close()


def test_observers_of_the_app_see_blocking_submits() -> None:
    given: list[Any] = []
    added: list[Any] = []
    app = dt.App("memory://", observers=[given.append])
    app.sync.open()
    app.observe(added.append)
    app.sync.submit("work")
    assert (
        [type(event).__name__ for event in given]
        == [type(event).__name__ for event in added]
        == ["JobsSubmitted"]
    )
    app.sync.close()


def test_generator_of_jobs_runs_on_the_calling_thread() -> None:
    """What a generator reads may belong to that thread: Django's connections do, and refuse to be used where
    an event loop runs."""
    app = dt.App("memory://")
    seen: list[threading.Thread] = []

    def wanted() -> Iterator[dt.NewJob]:
        seen.append(threading.current_thread())
        yield dt.NewJob("work", {"n": len(app.sync.jobs())})

    assert len(app.sync.submit_many(wanted())) == 1
    assert seen == [threading.current_thread()]
    app.sync.close()


def test_a_call_from_within_a_call_is_refused_and_does_not_wait_for_itself() -> None:
    refused: list[Exception] = []

    def observer(_: Any) -> None:
        with pytest.raises(dt.Conflict, match="its own thread") as found:
            app.sync.jobs()
        refused.append(found.value)

    app = dt.App("memory://", observers=[observer])
    app.sync.submit("work")
    assert len(refused) == 1
    app.sync.close()


def test_closing_ends_calls_that_are_under_way() -> None:
    app = dt.App("memory://")
    job = app.sync.submit("work", delay="1h")
    ended = threading.Event()

    def wait() -> None:
        with pytest.raises(dt.NotOpen, match="under way"):
            job.wait("1h")
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    end = time.monotonic() + 60
    while not asyncio.all_tasks(app.sync._loop):
        assert time.monotonic() < end
    app.sync.close()
    assert ended.wait(60)


def test_a_call_that_comes_while_it_is_being_closed_gets_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    app = dt.App("memory://")
    app.sync.open()
    usual, closer = asyncio.run_coroutine_threadsafe, threading.Thread(target=app.sync.close)

    def hand_in(work: Any, loop: asyncio.AbstractEventLoop) -> Any:
        if threading.current_thread() is not closer and not closer.is_alive():
            closer.start()
            closer.join(0.2)  # it may have to wait for us
        return usual(work, loop)

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", hand_in)
    with suppress(dt.NotOpen):  # it is carried out, or told that it was not
        app.sync.submit("work")
    closer.join(60)
    assert not closer.is_alive()
    monkeypatch.undo()
    app.sync.close()


@pytest.mark.slow
def test_a_server_that_forks_may_use_it_before_and_after(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, f"sqlite:///{tmp_path}/duetime.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "[1,", "2,", "3]"], done.stderr


def test_a_fork_in_the_middle_of_another_threads_call_leaves_the_child_able_to_call(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUSY, f"sqlite:///{tmp_path}/duetime.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0"], done.stderr


def test_face_can_be_closed_at_interpreter_exit(tmp_path: Path) -> None:
    command = [sys.executable, "-c", EXITING, f"sqlite:///{tmp_path}/duetime.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert not (tmp_path / "duetime.db-wal").exists()  # the connections were closed in order
