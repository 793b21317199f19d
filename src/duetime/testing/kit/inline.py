"""Inline: a job runs before `submit` returns. Recording: jobs are only stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, NoReturn
from uuid import UUID

from duetime.app import App
from duetime.errors import InvalidInput, JobFailed
from duetime.handle import JobHandle
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND
from duetime.model.job import Job, State
from duetime.testing.kit.parse_time import TimeInput, parse_time
from duetime.testing.kit.session import KitSession, SessionSettings
from duetime.testing.kit.sync import InlineSyncApp
from duetime.testing.kit.virtual import START
from duetime.testing.kit.virtual_clock import Stuck
from duetime.testing.processes import current_process

JOB_MAKING_METHODS = ("submit", "submit_many", "trigger", "retry_job")
MAX_VIRTUAL_TIME = 366 * duration.UNITS["d"]


class InlineCalls:
    """Replaces the methods of the app that make jobs."""

    def __init__(self, app: App, session: KitSession, raise_failures: bool) -> None:
        self._app = app
        self._session = session
        self._raises = raise_failures
        self._raised: set[UUID] = set()
        self._lock = asyncio.Lock()

    def running_jobs_of(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The same method of the app, but it returns after the jobs it made have run."""

        async def call_and_run(*arguments: Any, **options: Any) -> Any:
            made = await call(*arguments, **options)
            await self._run_jobs(made if isinstance(made, list) else [made])
            return made

        return call_and_run

    async def wait_for(self, job_id: UUID, timeout: Duration | None = None) -> Job:
        """Only a task can wait for a job that has not run; for other callers the job has already run."""
        if current_process() is not None:
            await self._session.clock.until(lambda: self._session.is_final(job_id))
        job = await self._app.read_job(job_id)
        if not job.state.final:
            raise Stuck(f"job {job_id} of {job.target} will stay {job.state}: unknown task, or paused queue")
        return job

    async def _run_jobs(self, handles: list[JobHandle]) -> None:
        """Jobs that a task submits run after that task, as in production, but before the outermost call
        returns."""
        if current_process() is not None:
            return
        async with self._lock:
            await self._drain()
        for handle in handles:
            await handle.refresh()
        if self._raises:
            self._raise_failures([handle.id for handle in handles])

    async def _drain(self) -> None:
        if not self._session.unfinished():
            return
        await self._session.start()
        try:
            ended = await self._session.clock.until(
                lambda: not self._session.unfinished(), self._session.now() + MAX_VIRTUAL_TIME
            )
        finally:
            await self._session.stop()
        if not ended:
            raise AssertionError(
                "these jobs do not finish:\n  " + "\n  ".join(self._session.unfinished()[:10])
            )

    def _raise_failures(self, own: list[UUID]) -> None:
        """Failures of the submitted jobs come before failures of jobs that those submitted."""
        for job_id in [*own, *self._session.problems]:
            job = self._session.job(job_id)
            if job is None or job.state is not State.DEAD or job_id in self._raised:
                continue
            self._raised.add(job_id)
            problem = self._session.problems.get(job_id)
            if isinstance(problem, Exception):
                raise problem
            raise JobFailed(
                f"job {job_id} of {job.target} is dead: {job.error}", job_id, job.state, job.error
            ) from problem


@contextmanager
def inline(
    app: App,
    *,
    failures: Literal["raise", "record"] = "raise",
    start: TimeInput = START,
    seed: int = 0,
    io_grace: Duration = "30s",
    resources: Mapping[Any, Any] | None = None,
) -> Iterator[None]:
    """Within the block a job runs, including retries, before `submit` returns: the handle has its result.
    Waits are skipped.

    If all attempts fail, `submit` raises the exception of the last one; with failures="record" the handle
    holds it. Schedules do not fire.
    """
    if failures not in ("raise", "record"):
        raise InvalidInput("failures", f"{failures!r} is not valid; use 'raise' or 'record'")
    began, grace = parse_time(start, "UTC", 0, "start"), duration.parse(io_grace, "io_grace") / SECOND
    session = KitSession(app, SessionSettings(began, seed, grace, resources, {"roles": ["worker"]}))
    calls = InlineCalls(app, session, failures == "raise")
    session.open(
        sync=InlineSyncApp(app, session.run),
        **{name: calls.running_jobs_of(getattr(app, name)) for name in JOB_MAKING_METHODS},
        wait_for=calls.wait_for,
        running=_no_node,
    )
    try:
        yield
    finally:
        session.close()


@contextmanager
def recording(app: App, *, start: TimeInput = START, seed: int = 0) -> Iterator[None]:
    """Within the block jobs are stored but do not run: for `assert_submitted`."""
    session = KitSession(app, SessionSettings(parse_time(start, "UTC", 0, "start"), seed))
    session.open(sync=InlineSyncApp(app, session.run), wait_for=_never, running=_no_node)
    try:
        yield
    finally:
        session.close()


@asynccontextmanager
async def _no_node(**options: Any) -> AsyncIterator[None]:
    """Replaces App.running: jobs run when they are submitted, or not at all."""
    yield


async def _never(job_id: UUID, timeout: Duration | None = None) -> NoReturn:
    raise Stuck(f"job {job_id} will never finish: `recording` runs no jobs; use `inline` or `virtual`")
