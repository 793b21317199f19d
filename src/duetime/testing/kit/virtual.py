"""Virtual time for a whole app: the real planner and worker, without real waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

from duetime.app import App
from duetime.engine.node.node import Node
from duetime.errors import InvalidInput, WaitTimeout
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Job
from duetime.task import Task
from duetime.testing.kit.faults import Place, TaskFault
from duetime.testing.kit.parse_time import TimeInput, parse_time
from duetime.testing.kit.session import KitSession, SessionSettings
from duetime.testing.kit.sync import InlineSyncApp, SyncTime
from duetime.testing.kit.virtual_clock import Stuck
from duetime.testing.kit.virtual_loop import VirtualLoop

START = "2026-01-05T00:00Z"  # a Monday
MAX_BUSY_TIME = "31d"
Answer = TypeVar("Answer")


class VirtualTime:
    """Time stands still while the test's own code runs. It jumps when the test waits for an instant or a job,
    or sleeps."""

    def __init__(
        self, app: App, settings: SessionSettings, tz: str, moved: Callable[[datetime], object] | None
    ) -> None:
        self._tz = tz
        self._app = app
        self._session = KitSession(app, settings)
        if moved is not None:
            self._session.clock.moved = lambda: moved(self.now)
        self.sync = SyncTime(self, self._session.run)

    # -- lifecycle -------------------------------------------------------------------------------------------
    async def __aenter__(self) -> VirtualTime:
        self.__enter__()
        try:
            await self._session.start()
        except BaseException:
            self._session.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._session.stop()
        finally:
            self._session.close()

    def __enter__(self) -> VirtualTime:
        """The same for sync tests. The node starts when time first moves."""
        self._session.open(
            sync=InlineSyncApp(self._app, self._session.run), wait_for=self._wait_for, running=self._running
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close()

    # -- time ------------------------------------------------------------------------------------------------
    @property
    def now(self) -> datetime:
        return to_datetime(self._session.now())

    async def advance(self, by: Duration) -> datetime:
        """Let this much time pass. Everything that becomes due meanwhile happens at its own instant."""
        return await self._reach(self._session.now() + duration.parse(by, "by"))

    async def run_until(self, until: TimeInput | Callable[[], bool], tz: str | None = None) -> datetime:
        """Let time pass up to and including this instant, or until a function returns True.

        A weekday or a time of day ("Monday 09:00") means the next one in the time zone `tz`.
        """
        if callable(until):
            await self._session.start()
            await self._session.clock.until(until)
            return self.now
        instant = parse_time(until, tz or self._tz, self._session.now())
        if instant < self._session.now():
            past, now = to_datetime(instant).isoformat(), self.now.isoformat()
            raise InvalidInput("until", f"{past} is in the past (it is {now}); time only moves forward")
        return await self._reach(instant)

    async def run_until_idle(self, within: Duration = MAX_BUSY_TIME) -> datetime:
        """Let time pass until no job runs or waits, including delayed jobs and retries. Future fires of
        schedules do not count."""
        await self._session.start()
        deadline = self._session.now() + duration.parse(within, "within")
        if not await self._session.clock.until(lambda: not self._session.unfinished(), deadline):
            jobs = "\n  ".join(self._session.unfinished()[:10])
            raise AssertionError(f"jobs are still unfinished after {within}:\n  {jobs}")
        return self.now

    # -- faults ----------------------------------------------------------------------------------------------
    def crash_at(
        self,
        task: Task[..., Any] | str,
        *,
        checkpoint: int | None = None,
        call: int | None = None,
        once: int | None = None,
        before: bool = False,
    ) -> None:
        """Kill the node, as SIGKILL does, when the task reaches the n-th of these from now on: the end of a
        checkpoint, the return of its function, a successful `ctx.once`. With `before=True`, right before
        that. Another node takes over immediately."""
        self._plan(task, {"checkpoint": checkpoint, "call": call, "once": once}, before, None)

    def fail_at(
        self, task: Task[..., Any] | str, *, call: int, error: BaseException, before: bool = True
    ) -> None:
        """Make the n-th call of the task from now on raise `error`: instead of running, or with
        `before=False` after it has run."""
        self._plan(task, {"call": call}, before, error)

    def lose_reply(self, verb: str, *, call: int = 1) -> None:
        """Make the n-th call of this store verb from now on succeed but lose its reply: the caller gets
        StoreUnavailable."""
        self._session.faults.lose_reply(verb, call)

    @property
    def faults_left(self) -> list[str]:
        """Planned faults that have not happened. If any are left at the end, the test did not test what it
        meant to."""
        return self._session.faults.pending

    def _plan(
        self,
        task: Task[..., Any] | str,
        given: dict[Place, int | None],
        before: bool,
        error: BaseException | None,
    ) -> None:
        chosen = [(place, number) for place, number in given.items() if number is not None]
        if len(chosen) != 1:
            raise InvalidInput("crash_at", f"give exactly one of {', '.join(given)}")
        [(place, number)] = chosen
        name = task.name if isinstance(task, Task) else task
        if name not in self._app.tasks:
            known = ", ".join(sorted(self._app.tasks)) or "none"
            raise InvalidInput("task", f"{name!r} is not a task of this app; its tasks are {known}")
        self._session.faults.add(TaskFault(name, place, number, before, error))

    # -- internals -------------------------------------------------------------------------------------------
    async def _reach(self, instant: int) -> datetime:
        await self._session.start()
        await self._session.clock.until(lambda: False, instant)
        return self.now

    async def _wait_for(self, job_id: UUID, timeout: Duration | None = None) -> Job:
        """Replaces App.wait_for: time passes until the job is final."""
        await self._session.start()
        await self._app.read_job(job_id)
        deadline = None if timeout is None else self._session.now() + duration.parse(timeout, "timeout")
        try:
            final = await self._session.clock.until(lambda: self._session.is_final(job_id), deadline)
        except Stuck as problem:
            job = await self._app.read_job(job_id)
            raise Stuck(f"job {job_id} of {job.target} will stay {job.state}: {problem}") from None
        job = await self._app.read_job(job_id)
        if not final:
            raise WaitTimeout(f"job {job_id} is still {job.state} after {timeout}")
        return job

    @asynccontextmanager
    async def _running(self, **options: Any) -> AsyncIterator[Node]:
        """Replaces App.running: a node already runs."""
        await self._session.start()
        assert self._session.node is not None
        yield self._session.node


def virtual(
    app: App,
    start: TimeInput = START,
    *,
    tz: str = "UTC",
    seed: int = 0,
    io_grace: Duration = "1s",
    resources: Mapping[Any, Any] | None = None,
    moved: Callable[[datetime], object] | None = None,
    **options: Any,
) -> VirtualTime:
    """`async with virtual(app) as time:` (in sync tests `with`) puts the app on a memory store and under
    virtual time.

    `seed` decides ids and jitter. `io_grace` is the real time that an attempt may wait for a socket or a
    thread before virtual time continues. `resources` maps resource functions to the values to use instead.
    `moved` is called with each new instant, for tools that set the clock of `datetime.now()`. `options` are
    node options. Afterwards the app is as it was before.
    """
    settings = SessionSettings(
        parse_time(start, tz, 0, "start"),
        seed,
        duration.parse(io_grace, "io_grace") / SECOND,
        resources,
        options,
    )
    return VirtualTime(app, settings, tz, moved)


def run(
    app: App,
    scenario: Callable[[VirtualTime], Awaitable[Answer]] | None = None,
    *,
    until: TimeInput | Callable[[], bool] | None = None,
    start: TimeInput = START,
    **options: Any,
) -> Answer | None:
    """For sync tests: run a scenario in virtual time on a new loop, then continue until `until`. Returns the
    result of the scenario."""

    async def run_scenario() -> Answer | None:
        async with virtual(app, start, **options) as time:
            answer = None if scenario is None else await scenario(time)
            if until is not None:
                await time.run_until(until)
            return answer

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run_scenario())
