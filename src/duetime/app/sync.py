"""The blocking face: the calls of the App for programs without an event loop (Flask, Django, scripts).

One background thread with its own event loop and connections runs the calls.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Future
from functools import partial, wraps
from operator import attrgetter
from queue import SimpleQueue
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from duetime.app.alerts import AppAlerts
from duetime.app.backfill import Backfill
from duetime.app.calendar import FireCalendar
from duetime.app.context import Borrowed
from duetime.app.core import AsyncApp
from duetime.app.jobs import AppJobs, list_of
from duetime.app.keys import Keys
from duetime.app.nodes import AppNodes, AppQueues
from duetime.app.schedules import AppSchedules, ScheduleVersions
from duetime.app.services import Services
from duetime.engine.submit.build import NewJob
from duetime.engine.submit.submission import submitted
from duetime.errors import Conflict, InvalidInput, NotOpen
from duetime.handle import JobHandle
from duetime.model.job import JobDraft
from duetime.store import Migration
from duetime.task import AnyTask

# Calls that take a `connection`
IN_TRANSACTIONS = frozenset(
    {"schedule", "declare_schedules", "pause", "resume", "remove", "cancel_job", "reschedule_job"}
)
P = ParamSpec("P")
Answer = TypeVar("Answer")
AsyncCall = Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]]


class Blocking(Generic[P, Answer]):
    """An async call as a blocking one with the same signature and the same name. Job handles become
    SyncJobs."""

    @overload
    def __init__(self: Blocking[P, SyncJob], call: AsyncCall[P, JobHandle]) -> None: ...
    @overload
    def __init__(self: Blocking[P, list[SyncJob]], call: AsyncCall[P, list[JobHandle]]) -> None: ...
    @overload
    def __init__(self, call: AsyncCall[P, Answer]) -> None: ...
    def __init__(self, call: Any) -> None:
        @wraps(call)
        def method(face: SyncApp | SyncJob, *arguments: Any, **named: Any) -> Any:
            return face.carry_out(self._name, *arguments, **named)

        self._method: Any = method

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, face: SyncApp | SyncJob | None, owner: type) -> Callable[P, Answer]:
        method: Callable[P, Answer] = self._method.__get__(face, owner)
        return method


class SyncService(Generic[P, Answer]):
    """A service of the app whose calls block."""

    def __init__(self, name: str, carry_out: Callable[..., Any]) -> None:
        self._name = name
        self._carry_out = carry_out

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> Answer:
        return self._carry_out(self._name, *arguments, **named)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._carry_out, f"{self._name}.{name}")


class BlockingService(Blocking[P, Answer]):
    """A service that is called for its listing and has calls of its own: `app.sync.queues()`,
    `app.sync.queues.counted()`."""

    @overload
    def __init__(self: BlockingService[P, list[SyncJob]], call: AsyncCall[P, list[JobHandle]]) -> None: ...
    @overload
    def __init__(self, call: AsyncCall[P, Answer]) -> None: ...
    def __init__(self, call: Any) -> None:
        super().__init__(call)

    def __get__(self, face: SyncApp | SyncJob | None, owner: type) -> SyncService[P, Answer]:
        return self._method if face is None else SyncService(self._name, face.carry_out)


class OwnerThread:
    """The thread that waits for a call and owns its connection: it runs what the call wants to do with the
    connection."""

    def __init__(self) -> None:
        self._requests: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()

    async def run(self, function: Callable[[], Any]) -> Any:
        answer: Future[Any] = Future()
        self._requests.put((function, answer))
        return await asyncio.wrap_future(answer)

    def serve(self, call: Future[Answer]) -> Answer:
        call.add_done_callback(lambda _: self._requests.put(None))
        while (request := self._requests.get()) is not None:
            function, answer = request
            try:
                answer.set_result(function())
            except Exception as problem:
                answer.set_exception(problem)
        return call.result()


class SyncApp:
    """Opens itself with the first call."""

    def __init__(self, twin: Callable[[], AsyncApp]) -> None:
        self._make_twin = twin
        # Called before a call that could belong to a transaction and does not; a framework knows whether one
        # is open
        self.guard: Callable[[str], None] = lambda call: None
        self._app: AsyncApp | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0
        self._lock = threading.Lock()
        _all.add(self)

    def submit(self, task: AnyTask | str, /, *, connection: Any = None, **arguments: Any) -> SyncJob:
        """Store one job; when this returns it is durable. With a `connection` of your own, when you
        commit."""
        if connection is not None:
            return self._within(connection, lambda app: app.jobs.build(task, arguments))[0]
        return self._job(self._call(lambda app: app.submit(task, **arguments)))

    def submit_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[SyncJob]:
        """Store all of them or none, in bulk."""
        made = list_of(jobs)  # on this thread: a generator may read a database that belongs to it, or call us
        if connection is not None:
            return self._within(connection, lambda app: app.jobs.build_many(made))
        return [self._job(job) for job in self._call(lambda app: app.submit_many(made))]

    jobs = BlockingService(AppJobs.__call__)
    get_job = Blocking(Services.get_job)
    read_attempts = Blocking(Services.read_attempts)
    job_output = Blocking(Services.job_output)
    cancel_job = Blocking(Services.cancel_job)
    reschedule_job = Blocking(Services.reschedule_job)
    retry_job = Blocking(Services.retry_job)
    discard_job = Blocking(Services.discard_job)

    schedules = BlockingService(AppSchedules.__call__)
    schedule = Blocking(Services.schedule)
    declare_schedules = Blocking(Services.declare_schedules)
    get_schedule = Blocking(Services.get_schedule)
    pause = Blocking(Services.pause)
    resume = Blocking(Services.resume)
    trigger = Blocking(Services.trigger)
    remove = Blocking(Services.remove)
    versions = BlockingService(ScheduleVersions.__call__)
    backfill = BlockingService(Backfill.__call__)
    calendar = BlockingService(FireCalendar.__call__)

    queues = BlockingService(AppQueues.__call__)
    pause_queue = Blocking(Services.pause_queue)
    resume_queue = Blocking(Services.resume_queue)
    limit_queue = Blocking(Services.limit_queue)
    nodes = BlockingService(AppNodes.__call__)
    keys = BlockingService(Keys.__call__)
    alerts = BlockingService(AppAlerts.__call__)
    stats = Blocking(Services.stats)
    now = Blocking(Services.now)

    def __getattr__(self, name: str) -> SyncService[..., Any]:
        """The services without a listing: previews, bulk, why, dead."""
        if name not in ("previews", "bulk", "why", "dead"):
            raise AttributeError(f"app.sync has no call {name!r}")
        return SyncService(name, self.carry_out)

    def migrate(self) -> Migration:
        """Create or upgrade the schema. Many processes may call it at the same time."""
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

    def carry_out(self, call: str, *arguments: Any, **named: Any) -> Any:
        """Make this call of the app, such as "get_job" or "queues.counted", and wait for its answer."""
        owner = None
        if named.get("connection") is not None:
            named["connection"], owner = self._lend(named["connection"])
        elif call in IN_TRANSACTIONS:
            self.guard(call)
        return self._shown(self._call(lambda app: attrgetter(call)(app)(*arguments, **named), owner=owner))

    def _call(
        self,
        work: Callable[[AsyncApp], Coroutine[Any, Any, Answer]],
        opened: bool = True,
        owner: OwnerThread | None = None,
    ) -> Answer:
        if threading.current_thread() is self._thread:
            raise Conflict(
                "app.sync was called on its own thread, perhaps by an observer, and would wait for itself: "
                "use another thread"
            )
        with self._lock:  # no call may be queued after the loop has ended: it would never run
            app, loop = self._ready()
            under_way = asyncio.run_coroutine_threadsafe(_carried_out(app, work, opened), loop)
        try:
            return under_way.result() if owner is None else owner.serve(under_way)
        except CancelledError:
            raise NotOpen("the app was closed while this call was under way") from None

    def _lend(self, connection: Any) -> tuple[Any, OwnerThread | None]:
        owner = OwnerThread()
        return Borrowed(connection, owner.run), owner

    def _within(
        self, connection: Any, build: Callable[[AsyncApp], Coroutine[Any, Any, list[JobDraft]]]
    ) -> list[SyncJob]:
        """The jobs are built in the background and stored here: the connection belongs to this thread."""
        drafts = self._call(build)
        with self._lock:
            app, _ = self._ready()
        guest = app.store.within(connection)
        if not guest.blocking:
            raise InvalidInput(
                "connection", "is async: use `await app.submit(...)`, or give a blocking connection"
            )
        return [self._job(job) for job in app.jobs.handles(submitted(drafts, guest.add_jobs_now(drafts)))]

    def _ready(self) -> tuple[AsyncApp, asyncio.AbstractEventLoop]:
        """Call it with the lock held."""
        # A fork leaves the thread behind in the parent process: each child starts its own.
        if self._loop is None or self._app is None or self._process != os.getpid():
            self._process = os.getpid()
            self._app = self._make_twin()
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="duetime-sync", daemon=True)
            self._thread.start()
        return self._app, self._loop

    def _shown(self, answer: Any) -> Any:
        if isinstance(answer, list):
            return [self._shown(one) for one in answer]
        return self._job(answer) if isinstance(answer, JobHandle) else answer

    def _job(self, job: JobHandle) -> SyncJob:
        return SyncJob(self, job)


class SyncJob:
    """A job handle whose calls block; shows the same values as JobHandle."""

    def __init__(self, app: SyncApp, handle: JobHandle) -> None:
        self._app = app
        self._handle = handle

    refresh = Blocking(JobHandle.refresh)
    wait = Blocking(JobHandle.wait)
    cancel = Blocking(JobHandle.cancel)
    reschedule = Blocking(JobHandle.reschedule)
    retry = Blocking(JobHandle.retry)
    attempts = Blocking(JobHandle.attempts)
    output = Blocking(JobHandle.output)

    def carry_out(self, call: str, *arguments: Any, **named: Any) -> Any:
        """Through the app as it is open now: it may have been closed since the job was submitted, or this
        process forked."""

        async def work(app: AsyncApp) -> Any:
            return await getattr(self._handle.through(app), call)(*arguments, **named)

        if f"{call}_job" in IN_TRANSACTIONS:
            self._app.guard(f"{call}_job")
        answer = self._app._call(work)
        return (
            self
            if answer is self._handle
            else SyncJob(self._app, answer)
            if isinstance(answer, JobHandle)
            else answer
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def __repr__(self) -> str:
        return repr(self._handle)


async def _nothing(app: AsyncApp) -> None:
    return None


async def _carried_out(
    app: AsyncApp, work: Callable[[AsyncApp], Coroutine[Any, Any, Answer]], opened: bool
) -> Answer:
    if opened and not app.is_open:
        await app.open()
    return await work(app)


async def _end(app: AsyncApp) -> None:
    """Cancels the calls of other threads that are under way: they would wait without end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    while app.is_open:
        await app.close()


def _unlock() -> None:
    """Another thread may have held the lock when this process was forked, and does not exist here to release
    it."""
    for one in list(_all):
        one._lock = threading.Lock()


_all: weakref.WeakSet[SyncApp] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):  # not on every platform
    os.register_at_fork(after_in_child=_unlock)
