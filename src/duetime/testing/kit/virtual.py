"""Virtual time for a whole app: the real planner and worker, with every wait skipped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from duetime.engine.node import Node
from duetime.errors import InvalidInput, WaitTimeout
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Job
from duetime.task import Task
from duetime.testing.kit.accidents import Accident, Place
from duetime.testing.kit.moments import Moment, read_moment
from duetime.testing.kit.stage import Settings, Stage
from duetime.testing.kit.sync import SameThread, SyncTime
from duetime.testing.kit.takeover import Stuck

if TYPE_CHECKING:
    from duetime.app import App

START = "2026-01-05T00:00Z"  # a Monday
LONGEST_UNREST = "31d"
Answer = TypeVar("Answer")


class VirtualTime:
    """Time stands still while the test's own code runs, and jumps when the test waits: for a moment, for a job, or by sleeping."""

    def __init__(self, app: App, settings: Settings, tz: str, moved: Callable[[datetime], object] | None) -> None:
        self._tz = tz
        self._app = app
        self._stage = Stage(app, settings)
        if moved is not None:
            self._stage.takeover.moved = lambda: moved(self.now)
        self.sync = SyncTime(self, self._stage.run)

    # -- life ---------------------------------------------------------------------------------------------------------
    async def __aenter__(self) -> VirtualTime:
        self.__enter__()
        try:
            await self._stage.ready()
        except BaseException:
            self._stage.close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self._stage.rest()
        finally:
            self._stage.close()

    def __enter__(self) -> VirtualTime:
        """The same for plain tests. The node starts when time is first moved."""
        self._stage.open(sync=SameThread(self._app, self._stage.run), wait_for=self._wait_for, running=self._running)
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._stage.close()

    # -- time ---------------------------------------------------------------------------------------------------------
    @property
    def now(self) -> datetime:
        return to_datetime(self._stage.now())

    async def advance(self, by: Duration) -> datetime:
        """Let this much time pass; what falls due meanwhile happens, each at its instant."""
        return await self._reach(self._stage.now() + duration.parse(by, "by"))

    async def run_until(self, until: Moment | Callable[[], bool], tz: str | None = None) -> datetime:
        """Let time pass until this moment, everything due at that very instant included; or until a function says True.

        A day or a time of day ("Monday 09:00") means the next one on the clocks of `tz`.
        """
        if callable(until):
            await self._stage.ready()
            await self._stage.takeover.until(until)
            return self.now
        moment = read_moment(until, tz or self._tz, self._stage.now())
        if moment < self._stage.now():
            raise InvalidInput("until", f"{to_datetime(moment).isoformat()} is past, it is {self.now.isoformat()}: time goes forward only")
        return await self._reach(moment)

    async def run_until_idle(self, within: Duration = LONGEST_UNREST) -> datetime:
        """Let time pass until no job runs or waits, delayed and retried ones included. Schedules may have fires ahead."""
        await self._stage.ready()
        deadline = self._stage.now() + duration.parse(within, "within")
        if not await self._stage.takeover.until(lambda: not self._stage.unfinished(), deadline):
            jobs = "\n  ".join(self._stage.unfinished()[:10])
            raise AssertionError(f"there is still work to do after {within}:\n  {jobs}")
        return self.now

    # -- accidents ----------------------------------------------------------------------------------------------------
    def crash_at(
        self,
        task: Task[..., Any] | str,
        *,
        checkpoint: int | None = None,
        call: int | None = None,
        once: int | None = None,
        before: bool = False,
    ) -> None:
        """Have the node die as by SIGKILL when the task comes, for the n-th time from now on, to: the end of a checkpoint, the return of
        its function, a `ctx.once` just taken; with `before=True` right before that. Another node takes over at once."""
        self._arrange(task, {"checkpoint": checkpoint, "call": call, "once": once}, before, None)

    def fail_at(self, task: Task[..., Any] | str, *, call: int, error: BaseException, before: bool = True) -> None:
        """Have the n-th call of the task from now on raise this: instead of running, or (`before=False`) after it has run."""
        self._arrange(task, {"call": call}, before, error)

    def lose_reply(self, verb: str, *, call: int = 1) -> None:
        """Have the n-th call of this verb of the store from now on succeed and its reply get lost: the caller sees StoreUnavailable."""
        self._stage.accidents.lose_reply(verb, call)

    @property
    def accidents_left(self) -> list[str]:
        """Arranged and not happened: a test that ends with any has not tested what it wanted to."""
        return self._stage.accidents.pending

    def _arrange(self, task: Task[..., Any] | str, given: dict[Place, int | None], before: bool, error: BaseException | None) -> None:
        chosen = [(place, number) for place, number in given.items() if number is not None]
        if len(chosen) != 1:
            raise InvalidInput("crash_at", f"give exactly one of {', '.join(given)}")
        [(place, number)] = chosen
        name = task.name if isinstance(task, Task) else task
        if name not in self._app.tasks:
            raise InvalidInput("task", f"{name!r} is no task of this app: it has {', '.join(sorted(self._app.tasks)) or 'none'}")
        self._stage.accidents.add(Accident(name, place, number, before, error))

    # -- inside -------------------------------------------------------------------------------------------------------
    async def _reach(self, moment: int) -> datetime:
        await self._stage.ready()
        await self._stage.takeover.until(lambda: False, moment)
        return self.now

    async def _wait_for(self, job_id: UUID, timeout: Duration | None = None) -> Job:
        """In place of App.wait_for: time passes until the job is final."""
        await self._stage.ready()
        await self._app.read_job(job_id)
        deadline = None if timeout is None else self._stage.now() + duration.parse(timeout, "timeout")
        try:
            final = await self._stage.takeover.until(lambda: self._stage.is_final(job_id), deadline)
        except Stuck as problem:
            job = await self._app.read_job(job_id)
            raise Stuck(f"job {job_id} of {job.target} will stay {job.state} for ever: {problem}") from None
        job = await self._app.read_job(job_id)
        if not final:
            raise WaitTimeout(f"job {job_id} is still {job.state} after {timeout}")
        return job

    @asynccontextmanager
    async def _running(self, **options: Any) -> AsyncIterator[Node]:
        """In place of App.running: there is a node already."""
        await self._stage.ready()
        assert self._stage.node is not None
        yield self._stage.node


def virtual(
    app: App,
    start: Moment = START,
    *,
    tz: str = "UTC",
    seed: int = 0,
    patience: Duration = "1s",
    resources: Mapping[Any, Any] | None = None,
    moved: Callable[[datetime], object] | None = None,
    **options: Any,
) -> VirtualTime:
    """`async with virtual(app) as time:` (or `with`, in plain tests) puts the app on a memory store and under virtual time.

    `seed` decides ids and jitter. `patience` is the real time an attempt may wait for a socket or a thread before virtual time goes on
    without it. `resources` are values to use instead of what the app's resources would open, by their functions. `moved` is told each
    new instant, so that tools which set the clock of `datetime.now()` can follow. `options` are those of the node. What the app was
    before, it is again afterwards.
    """
    began, waits = read_moment(start, tz, 0, "start"), duration.parse(patience, "patience") / SECOND
    return VirtualTime(app, Settings(began, seed, waits, resources, options), tz, moved)


def run(
    app: App,
    scenario: Callable[[VirtualTime], Awaitable[Answer]] | None = None,
    *,
    until: Moment | Callable[[], bool] | None = None,
    start: Moment = START,
    **options: Any,
) -> Answer | None:
    """For plain tests: play a scenario in virtual time on a loop of its own, then go on until `until`. Answers what it returned."""

    async def play() -> Answer | None:
        async with virtual(app, start, **options) as time:
            answer = None if scenario is None else await scenario(time)
            if until is not None:
                await time.run_until(until)
            return answer

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(play())
