"""The blocking face: every call of the App for programs without an event loop (Flask, Django, scripts).

Calls are carried out by one background thread with an event loop and connections of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from duetime.engine.drafts import refuse_rule
from duetime.engine.reaper import OUTSIDE
from duetime.errors import Conflict, InvalidInput, NotOpen
from duetime.model.duration import Duration
from duetime.model.job import CancelReply

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.app.backfilling import Backfilled
    from duetime.app.bulk import JobBulk, ScheduleBulk
    from duetime.app.calendar import Calendar, FirePage
    from duetime.app.dead import DeadGroups
    from duetime.app.keys import NewKey
    from duetime.app.known import KnownTask
    from duetime.app.listing import JobPage, JobQuery
    from duetime.app.operations import NewTarget, Submitted
    from duetime.app.planning import SchedulePlan
    from duetime.app.reporting import Report
    from duetime.app.statistics import Stats
    from duetime.app.versions import VersionView
    from duetime.app.why import Reason
    from duetime.engine.drafts import NewJob
    from duetime.handle import AttemptView, JobHandle, ScheduleView
    from duetime.invoker import Policies
    from duetime.model.apikey import ApiKey
    from duetime.model.job import Job, JobDraft
    from duetime.model.lease import Lease, Node
    from duetime.model.limit import Queue
    from duetime.model.preview import Preview
    from duetime.model.schedule import Schedule, ScheduleDraft, ScheduleFilter
    from duetime.model.when import When
    from duetime.store import Migration, QueueCount
    from duetime.task import Task

Answer = TypeVar("Answer")


class SyncApp:
    """Opens itself at the first call."""

    def __init__(self, twin: Callable[[], App]) -> None:
        self._make_twin = twin
        self._app: App | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._lock = threading.Lock()
        _all.add(self)

    def submit(self, task: Task[..., Any] | str, /, *, connection: Any = None, **arguments: Any) -> SyncJob:
        if connection is not None:
            return self._within(connection, lambda app: _alone(app, task, arguments))[0]
        return self._job(self._call(lambda app: app.submit(task, **arguments)))

    def submit_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[SyncJob]:
        wanted = list(jobs)  # on this thread: a generator may read a database that belongs to it, or call us
        if connection is not None:
            return self._within(connection, lambda app: app.draft_jobs(wanted))
        return [self._job(job) for job in self._call(lambda app: app.submit_many(wanted))]

    def get_job(self, job_id: UUID | str) -> SyncJob:
        return self._job(self._call(lambda app: app.get_job(job_id)))

    def jobs(self, **filters: Any) -> list[SyncJob]:
        return [self._job(job) for job in self._call(lambda app: app.jobs(**filters))]

    def cancel_job(self, job_id: UUID | str, reason: str = "cancelled by the caller") -> CancelReply:
        return self._call(lambda app: app.cancel_job(job_id, reason))

    def move_job(self, job_id: UUID | str, **changes: Any) -> SyncJob:
        return self._job(self._call(lambda app: app.move_job(job_id, **changes)))

    def retry_job(self, job_id: UUID | str, payload: Any = None) -> SyncJob:
        return self._job(self._call(lambda app: app.retry_job(job_id, payload)))

    def discard_job(self, job_id: UUID | str) -> None:
        self._call(lambda app: app.discard_job(job_id))

    def read_attempts(self, job_id: UUID | str) -> list[AttemptView]:
        return self._call(lambda app: app.read_attempts(job_id))

    def queues(self) -> list[Queue]:
        return self._call(lambda app: app.queues())

    def pause_queue(self, name: str, note: str | None = None) -> Queue:
        return self._call(lambda app: app.pause_queue(name, note))

    def resume_queue(self, name: str) -> Queue:
        return self._call(lambda app: app.resume_queue(name))

    def limit_queue(self, name: str, most: int | None = None, rate: str | None = None) -> Queue:
        return self._call(lambda app: app.limit_queue(name, most, rate))

    def schedule(self, name: str, task: Task[..., Any] | str, when: When, *, replace: bool = False, **options: Any) -> ScheduleView:
        return self._call(lambda app: app.schedule(name, task, when, replace=replace, **options))

    def get_schedule(self, name: str) -> ScheduleView:
        return self._call(lambda app: app.get_schedule(name))

    def schedules(self, *, limit: int = 100, after: str | None = None) -> list[ScheduleView]:
        return self._call(lambda app: app.schedules(limit=limit, after=after))

    def pause(self, name: str, note: str | None = None, *, author: str | None = None) -> ScheduleView:
        return self._call(lambda app: app.pause(name, note, author=author))

    def resume(self, name: str, *, author: str | None = None) -> ScheduleView:
        return self._call(lambda app: app.resume(name, author=author))

    def trigger(self, name: str) -> SyncJob:
        return self._job(self._call(lambda app: app.trigger(name)))

    def remove(self, name: str, *, author: str | None = None) -> None:
        self._call(lambda app: app.remove(name, author=author))

    def nodes(self) -> list[Node]:
        return self._call(lambda app: app.nodes())

    def known_tasks(self) -> list[KnownTask]:
        return self._call(lambda app: app.known_tasks())

    # -- what the HTTP API asks for -----------------------------------------------------------------------------------
    def submit_target(self, wanted: NewTarget) -> Submitted:
        return self._call(lambda app: app.submit_target(wanted))

    def submit_targets(self, wanted: Sequence[NewTarget]) -> list[Submitted]:
        return self._call(lambda app: app.submit_targets(wanted))

    def job_page(self, query: JobQuery, limit: int, before: tuple[int, UUID] | None = None) -> JobPage:
        return self._call(lambda app: app.job_page(query, limit, before))

    def run_job(self, job_id: UUID | str) -> Job:
        return self._call(lambda app: app.run_job(job_id))

    def report_job(self, job_id: UUID, report: Report, policies: Policies = OUTSIDE) -> Job:
        return self._call(lambda app: app.report_job(job_id, report, policies))

    def find_schedule(self, reference: str) -> Schedule:
        return self._call(lambda app: app.find_schedule(reference))

    def schedule_page(self, wanted: ScheduleFilter, limit: int, after: str | None = None) -> list[Schedule]:
        return self._call(lambda app: app.schedule_page(wanted, limit, after))

    def put_schedule(self, draft: ScheduleDraft, expect_version: int | None = None, **options: Any) -> Schedule:
        return self._call(lambda app: app.put_schedule(draft, expect_version, **options))

    def edit_schedule(self, reference: str, changes: Mapping[str, Any], **options: Any) -> Schedule:
        return self._call(lambda app: app.edit_schedule(reference, changes, **options))

    def plan_schedule(self, reference: str, changes: Mapping[str, Any], **options: Any) -> SchedulePlan:
        return self._call(lambda app: app.plan_schedule(reference, changes, **options))

    def preview_when(self, when: When, **options: Any) -> Preview:
        return self._call(lambda app: app.preview_when(when, **options))

    def preview_schedule(self, reference: str, **options: Any) -> Preview:
        return self._call(lambda app: app.preview_schedule(reference, **options))

    def schedule_versions(self, reference: str, **options: Any) -> list[VersionView]:
        return self._call(lambda app: app.schedule_versions(reference, **options))

    def restore_schedule(self, reference: str, version: int, **options: Any) -> Schedule:
        return self._call(lambda app: app.restore_schedule(reference, version, **options))

    def remove_schedule(self, reference: str, **options: Any) -> None:
        self._call(lambda app: app.remove_schedule(reference, **options))

    def backfill(self, reference: str, start: datetime, end: datetime | None = None, **options: Any) -> Backfilled:
        return self._call(lambda app: app.backfill(reference, start, end, **options))

    def stats(self, since: Duration = "1h", step: Duration = "1m") -> Stats:
        return self._call(lambda app: app.stats(since, step))

    def count_jobs(self) -> list[QueueCount]:
        return self._call(lambda app: app.count_jobs())

    def create_key(self, name: str, scopes: Iterable[str] = ("submit",), **options: Any) -> NewKey:
        return self._call(lambda app: app.create_key(name, scopes, **options))

    def keys(self, **options: Any) -> list[ApiKey]:
        return self._call(lambda app: app.keys(**options))

    def revoke_key(self, prefix: str, **options: Any) -> ApiKey:
        return self._call(lambda app: app.revoke_key(prefix, **options))

    def bulk_jobs(self, action: str, wanted: JobQuery | Sequence[UUID | str], **options: Any) -> JobBulk:
        return self._call(lambda app: app.bulk_jobs(action, wanted, **options))

    def bulk_schedules(self, action: str, wanted: ScheduleFilter | Sequence[str], **options: Any) -> ScheduleBulk:
        return self._call(lambda app: app.bulk_schedules(action, wanted, **options))

    def dead_groups(self) -> DeadGroups:
        return self._call(lambda app: app.dead_groups())

    def why_job(self, job_id: UUID | str) -> Reason:
        return self._call(lambda app: app.why_job(job_id))

    def why_schedule(self, reference: str) -> Reason:
        return self._call(lambda app: app.why_schedule(reference))

    def calendar(self, start: datetime | None = None, end: datetime | None = None, **options: Any) -> Calendar:
        return self._call(lambda app: app.calendar(start, end, **options))

    def coming_fires(self, start: datetime | None = None, end: datetime | None = None, **options: Any) -> FirePage:
        return self._call(lambda app: app.coming_fires(start, end, **options))

    def leases(self) -> list[Lease]:
        return self._call(lambda app: app.leases())

    def now(self) -> int:
        return self._call(lambda app: app.now())

    def migrate(self) -> Migration:
        return self._call(lambda app: app.migrate(), opened=False)

    def open(self) -> None:
        self._call(_nothing)

    def close(self) -> None:
        with self._lock:
            if self._loop is None or self._app is None:
                return
            if self._process == os.getpid() and self._thread is not None:
                asyncio.run_coroutine_threadsafe(_end(self._app), self._loop).result()
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()
            self._loop = self._app = None

    def _call(self, work: Callable[[App], Coroutine[Any, Any, Answer]], opened: bool = True) -> Answer:
        if threading.current_thread() is self._thread:
            raise Conflict("app.sync was called on its own thread, by an observer perhaps: it would wait for itself; use another thread")
        with self._lock:  # nothing is handed in behind the end of the loop: it would never be carried out
            app, loop = self._ready()
            under_way = asyncio.run_coroutine_threadsafe(_carried_out(app, work, opened), loop)
        try:
            return under_way.result()
        except CancelledError:
            raise NotOpen("the app was closed while this call was under way") from None

    def _within(self, connection: Any, drafts: Callable[[App], Coroutine[Any, Any, list[JobDraft]]]) -> list[SyncJob]:
        """The jobs are made ready in the background and stored right here: the connection belongs to this thread."""
        made = self._call(drafts)
        with self._lock:
            app, _ = self._ready()
        guest = app.store.guest(connection)
        if not guest.blocking:
            raise InvalidInput("connection", "works with await: use `await app.submit(...)`, or a connection without async here")
        return [self._job(job) for job in app.handles(made, guest.add_jobs_now(made))]

    def _ready(self) -> tuple[App, asyncio.AbstractEventLoop]:
        """To be called by whoever has the lock."""
        # A server that forks leaves the thread behind in its parent: each child begins anew.
        if self._loop is None or self._app is None or self._process != os.getpid():
            self._process = os.getpid()
            self._app = self._make_twin()
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="duetime-sync", daemon=True)
            self._thread.start()
        return self._app, self._loop

    def _job(self, job: JobHandle) -> SyncJob:
        return SyncJob(self, job)


class SyncJob:
    """A job handle whose calls block; shows the same values as JobHandle."""

    def __init__(self, app: SyncApp, handle: JobHandle) -> None:
        self._app = app
        self._handle = handle

    def refresh(self) -> SyncJob:
        self._call(lambda handle: handle.refresh())
        return self

    def wait(self, timeout: Duration | None = None, *, raise_on_failure: bool = False) -> SyncJob:
        self._call(lambda handle: handle.wait(timeout, raise_on_failure=raise_on_failure))
        return self

    def cancel(self, reason: str = "cancelled by the caller") -> CancelReply:
        return self._call(lambda handle: handle.cancel(reason))

    def move(self, **changes: Any) -> SyncJob:
        self._call(lambda handle: handle.move(**changes))
        return self

    def retry(self, payload: Any = None) -> SyncJob:
        return SyncJob(self._app, self._call(lambda handle: handle.retry(payload)))

    def attempts(self) -> list[AttemptView]:
        return self._call(lambda handle: handle.attempts())

    def _call(self, work: Callable[[JobHandle], Coroutine[Any, Any, Answer]]) -> Answer:
        """Through the app as it is open now: it may have been closed since the job was submitted, or this process forked."""

        async def carry_out(app: App) -> Answer:
            self._handle._app = app
            return await work(self._handle)

        return self._app._call(carry_out)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def __repr__(self) -> str:
        return repr(self._handle)


async def _alone(app: App, task: Task[..., Any] | str, arguments: dict[str, Any]) -> list[JobDraft]:
    """One job to be stored within somebody else's transaction."""
    draft, rule = await app.draft_job(task, arguments)
    refuse_rule(rule)
    return [draft]


async def _nothing(app: App) -> None:
    return None


async def _carried_out(app: App, work: Callable[[App], Coroutine[Any, Any, Answer]], opened: bool) -> Answer:
    if opened and not app.is_open:
        await app.open()
    return await work(app)


async def _end(app: App) -> None:
    """Calls of other threads that are under way are ended, or they would wait for ever."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    while app.is_open:
        await app.close()


def _unlock() -> None:
    """Another thread may have had the lock when this process was forked, and did not come along to give it back."""
    for one in list(_all):
        one._lock = threading.Lock()


_all: weakref.WeakSet[SyncApp] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):  # where processes can be forked at all
    os.register_at_fork(after_in_child=_unlock)
