"""Blocking faces in a test: of virtual time, and of the app; both on the thread of the test itself."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from duetime.model.duration import Duration
from duetime.sync import SyncApp, SyncJob
from duetime.testing.kit.moments import Moment

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.engine.drafts import NewJob
    from duetime.task import Task
    from duetime.testing.kit.virtual import VirtualTime

Answer = TypeVar("Answer")
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class SyncTime:
    """VirtualTime for plain tests: every call blocks until it is done."""

    def __init__(self, time: VirtualTime, run: Run) -> None:
        self._time = time
        self._run = run

    def advance(self, by: Duration) -> datetime:
        return self._run(self._time.advance(by))  # type: ignore[no-any-return]  # what the coroutine returns

    def run_until(self, until: Moment | Callable[[], bool], tz: str | None = None) -> datetime:
        return self._run(self._time.run_until(until, tz))  # type: ignore[no-any-return]  # what the coroutine returns

    def run_until_idle(self, within: Duration = "31d") -> datetime:
        return self._run(self._time.run_until_idle(within))  # type: ignore[no-any-return]  # what the coroutine returns


class SameThread(SyncApp):
    """App.sync without its thread: what a plain task does to a connection of this thread, the test sees."""

    def __init__(self, app: App, run: Run) -> None:
        super().__init__(app._twin)
        self._here = app
        self._run = run

    def submit(self, task: Task[..., Any] | str, /, *, connection: Any = None, **arguments: Any) -> SyncJob:
        return self._job(self._call(lambda app: app.submit(task, connection=connection, **arguments)))

    def submit_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[SyncJob]:
        return [self._job(job) for job in self._call(lambda app: app.submit_many(jobs, connection=connection))]

    def _call(self, work: Callable[[App], Coroutine[Any, Any, Answer]], opened: bool = True) -> Answer:
        return self._run(work(self._here))  # type: ignore[no-any-return]  # what the coroutine returns

    def close(self) -> None:
        """Nothing was opened."""
