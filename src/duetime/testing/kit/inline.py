"""Inline: whoever submits a job has it run before `submit` returns. And recording: nothing runs at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from uuid import UUID

from duetime.errors import InvalidInput, JobFailed
from duetime.handle import JobHandle
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND
from duetime.model.job import Job, State
from duetime.testing.kit.moments import Moment, read_moment
from duetime.testing.kit.stage import Settings, Stage
from duetime.testing.kit.sync import SameThread
from duetime.testing.kit.takeover import Stuck
from duetime.testing.kit.virtual import START
from duetime.testing.simulation.loop import current_process

if TYPE_CHECKING:
    from duetime.app import App

LONGEST = 366 * duration.UNITS["d"]


class Inline:
    """Stands in for those calls of the app that make jobs."""

    def __init__(self, app: App, stage: Stage, raising: bool) -> None:
        self._app = app
        self._stage = stage
        self._raising = raising
        self._told: set[UUID] = set()
        self._door = asyncio.Lock()
        self._submit, self._submit_many, self._trigger, self._retry_job = app.submit, app.submit_many, app.trigger, app.retry_job

    async def submit(self, task: Any, /, **arguments: Any) -> JobHandle:
        handle = await self._submit(task, **arguments)
        await self._performed([handle])
        return handle

    async def submit_many(self, *arguments: Any, **options: Any) -> list[JobHandle]:
        handles = await self._submit_many(*arguments, **options)
        await self._performed(handles)
        return handles

    async def trigger(self, *arguments: Any, **options: Any) -> JobHandle:
        handle = await self._trigger(*arguments, **options)
        await self._performed([handle])
        return handle

    async def retry_job(self, *arguments: Any, **options: Any) -> JobHandle:
        handle = await self._retry_job(*arguments, **options)
        await self._performed([handle])
        return handle

    async def wait_for(self, job_id: UUID, timeout: Duration | None = None) -> Job:
        """A task that waits for a job it has submitted: everybody else finds it done."""
        if current_process() is not None:
            await self._stage.takeover.until(lambda: self._stage.is_final(job_id))
        job = await self._app.read_job(job_id)
        if not job.state.final:
            raise Stuck(f"job {job_id} of {job.target} will stay {job.state}: no task of that name is here, or its queue is paused")
        return job

    async def _performed(self, handles: list[JobHandle]) -> None:
        """Jobs submitted by a task run after it, as they would elsewhere, but before the call that began it all returns."""
        if current_process() is not None:
            return
        async with self._door:
            await self._drain()
        for handle in handles:
            await handle.refresh()
        if self._raising:
            self._raise_failures([handle.id for handle in handles])

    async def _drain(self) -> None:
        if not self._stage.unfinished():
            return
        await self._stage.ready()
        try:
            ended = await self._stage.takeover.until(lambda: not self._stage.unfinished(), self._stage.now() + LONGEST)
        finally:
            await self._stage.rest()
        if not ended:
            raise AssertionError("these jobs do not end:\n  " + "\n  ".join(self._stage.unfinished()[:10]))

    def _raise_failures(self, own: list[UUID]) -> None:
        """Those of the jobs asked for come before those of jobs that they submitted."""
        for job_id in [*own, *self._stage.problems]:
            job = self._stage.job(job_id)
            if job is None or job.state is not State.DEAD or job_id in self._told:
                continue
            self._told.add(job_id)
            problem = self._stage.problems.get(job_id)
            if isinstance(problem, Exception):
                raise problem
            raise JobFailed(f"job {job_id} of {job.target} is dead: {job.error}", job_id, job.state, job.error) from problem


@contextmanager
def inline(
    app: App,
    *,
    failures: Literal["raise", "record"] = "raise",
    start: Moment = START,
    seed: int = 0,
    patience: Duration = "30s",
    resources: Mapping[Any, Any] | None = None,
) -> Iterator[None]:
    """Within the block a job has run, retries included, when `submit` returns: its result is on the handle. Waits are skipped.

    A job whose retries are spent raises what its last attempt raised; with failures="record" the handle tells. Schedules do not fire.
    """
    if failures not in ("raise", "record"):
        raise InvalidInput("failures", f"{failures!r} is neither 'raise' nor 'record'")
    began, waits = read_moment(start, "UTC", 0, "start"), duration.parse(patience, "patience") / SECOND
    stage = Stage(app, Settings(began, seed, waits, resources, {"roles": ["worker"]}))
    playing = Inline(app, stage, failures == "raise")
    stage.open(
        sync=SameThread(app, stage.run),
        submit=playing.submit,
        submit_many=playing.submit_many,
        trigger=playing.trigger,
        retry_job=playing.retry_job,
        wait_for=playing.wait_for,
        running=_no_node,
    )
    try:
        yield
    finally:
        stage.close()


@contextmanager
def recording(app: App, *, start: Moment = START, seed: int = 0) -> Iterator[None]:
    """Within the block jobs are stored and none runs: for `assert_submitted`."""
    stage = Stage(app, Settings(read_moment(start, "UTC", 0, "start"), seed))
    stage.open(sync=SameThread(app, stage.run), wait_for=_never, running=_no_node)
    try:
        yield
    finally:
        stage.close()


@asynccontextmanager
async def _no_node(**options: Any) -> AsyncIterator[None]:
    """In place of App.running: jobs run when they are submitted, or not at all."""
    yield


async def _never(job_id: UUID, timeout: Duration | None = None) -> NoReturn:
    raise Stuck(f"job {job_id} will never end: `recording` runs nothing; use `inline` or `virtual`")
