"""Blocking versions of virtual time and of the app for sync tests. Both run on the test's own thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from typing import Any, Protocol, TypeVar

from duetime.app import App
from duetime.app.sync import OwnerThread, SyncApp, SyncJob
from duetime.engine.submit.build import NewJob
from duetime.model.duration import Duration
from duetime.task import Task
from duetime.testing.kit.caller_transaction import watch
from duetime.testing.kit.parse_time import TimeInput

Answer = TypeVar("Answer")


class Runner(Protocol):
    def __call__(self, coroutine: Coroutine[Any, Any, Answer], /) -> Answer:
        """Run a coroutine to its end and return its result."""
        ...


class AsyncTime(Protocol):
    """The methods of VirtualTime that have a blocking version."""

    async def advance(self, by: Duration) -> datetime: ...

    async def run_until(self, until: TimeInput | Callable[[], bool], tz: str | None = None) -> datetime: ...

    async def run_until_idle(self, within: Duration = ...) -> datetime: ...


class SyncTime:
    """VirtualTime for sync tests: every call blocks until it is done."""

    def __init__(self, time: AsyncTime, run: Runner) -> None:
        self._time = time
        self._run = run

    def advance(self, by: Duration) -> datetime:
        return self._run(self._time.advance(by))

    def run_until(self, until: TimeInput | Callable[[], bool], tz: str | None = None) -> datetime:
        return self._run(self._time.run_until(until, tz))

    def run_until_idle(self, within: Duration = "31d") -> datetime:
        return self._run(self._time.run_until_idle(within))


class InlineSyncApp(SyncApp):
    """App.sync without its thread: a sync task and the test share the connections of the test's thread."""

    def __init__(self, app: App, run: Runner) -> None:
        super().__init__(app._twin)
        self._app_under_test = app
        self._run = run

    def submit(self, task: Task[..., Any] | str, /, *, connection: Any = None, **arguments: Any) -> SyncJob:
        seen = watch(connection) or connection  # here: Django refuses its connections within an event loop
        return self._job(self._call(lambda app: app.submit(task, connection=seen, **arguments)))

    def submit_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[SyncJob]:
        seen = watch(connection) or connection
        return [self._job(job) for job in self._call(lambda app: app.submit_many(jobs, connection=seen))]

    def _call(
        self,
        work: Callable[[App], Coroutine[Any, Any, Answer]],
        opened: bool = True,
        owner: OwnerThread | None = None,
    ) -> Answer:
        return self._run(work(self._app_under_test))

    def _lend(self, connection: Any) -> tuple[Any, OwnerThread | None]:
        return connection, None

    def close(self) -> None:
        """There is nothing to close."""
