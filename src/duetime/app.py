"""App: the composition root and the async API. Tasks are registered here, work is submitted here, nodes are started from here."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from duetime import stores
from duetime.engine.clock import NodeClock
from duetime.engine.commands import Commands
from duetime.engine.drafts import (
    JOB_OPTIONS,
    NO_DEFAULTS,
    Defaults,
    NewJob,
    check_delivery,
    check_name,
    check_priority,
    check_retry,
    job_draft,
    job_drafts,
    refuse_unknown,
    schedule_draft,
)
from duetime.engine.heart import ThreadedHeart
from duetime.engine.node import Node
from duetime.engine.options import NodeOptions
from duetime.engine.signals import Signals
from duetime.errors import Conflict, DuplicateTask, InvalidInput, JobNotFound, NotOpen, TaskNotFound, WaitTimeout
from duetime.handle import JobHandle, ScheduleView, Waiters
from duetime.invoker import Policies
from duetime.invokers.task import TaskHandler
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.ids import Ids
from duetime.model.instant import SECOND
from duetime.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, DEFAULT_TENANT, CancelReply, Delivery, Job, JobFilter, State
from duetime.model.lease import Node as NodeRecord
from duetime.model.retry import Retry
from duetime.model.when import When
from duetime.observer import Observer, Observers
from duetime.observers.log import log_event
from duetime.store import Migration, Store
from duetime.sync import SyncApp
from duetime.task import Task
from duetime.version import VERSION

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

FIRST_LOOK = SECOND // 100
LONGEST_LOOK = SECOND // 2
NODE_OPTIONS = tuple(option.name for option in fields(NodeOptions) if option.name != "version")


class App:
    """One program's view of Duetime. Opening it makes a client; `running()` and `run()` make a node that plans and works, too."""

    def __init__(
        self, store: str | Store = stores.DEFAULT_URL, *, tenant: str = DEFAULT_TENANT, observers: Sequence[Observer] = ()
    ) -> None:
        self._store = stores.from_url(store) if isinstance(store, str) else store
        self._tenant = check_name(tenant, "tenant")
        self._observers = Observers([log_event, *observers])
        self._clock = NodeClock()
        self._ids = Ids()
        self._commands = Commands(self._store, self._clock, self._ids)
        self._waiters = Waiters()
        self._threads: ThreadPoolExecutor | None = None
        self._most_threads = 1
        self._opened = 0
        self._door = asyncio.Lock()  # two coroutines may open at once; the store is opened for both of them once
        self.tasks: dict[str, Task[..., Any]] = {}
        self.sync = SyncApp(self._twin)

    # -- tasks --------------------------------------------------------------------------------------------------------
    def task(
        self,
        name: str,
        *,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        timeout: Duration | None = None,
        retry: Retry | None = None,
        delivery: str = Delivery.AT_LEAST_ONCE,
    ) -> Callable[[Callable[Parameters, Result]], Task[Parameters, Result]]:
        """Register a function under a name that stays when the function moves: stored jobs refer to it."""
        check_name(name, "name")
        chosen = check_delivery(delivery)
        policies = Policies(
            retry=check_retry(retry or Retry()),
            timeout=None if timeout is None else duration.positive(timeout, "timeout"),
            delivery=chosen,
        )
        carried = chosen.value if chosen is Delivery.AT_MOST_ONCE else None
        defaults = Defaults(check_name(queue, "queue"), check_priority(priority), carried)

        def register(function: Callable[Parameters, Result]) -> Task[Parameters, Result]:
            if name in self.tasks:
                raise DuplicateTask(f"task {name!r} is registered already, by {self.tasks[name].function!r}: names must be unique")
            task = Task(self, name, function, policies, defaults)
            self.tasks[name] = task
            return task

        return register

    # -- jobs ---------------------------------------------------------------------------------------------------------
    async def submit(self, task: Task[..., Any] | str, /, **arguments: Any) -> JobHandle:
        """Store one job; when this returns it is durable. Arguments that are no options are the task's."""
        name, known = self._resolve(task)
        options: dict[str, Any] = {}
        if known is None or arguments.keys() != known.signature.names:
            options = {option: arguments.pop(option) for option in JOB_OPTIONS if option in arguments}
            if known is not None:
                known.signature.check(arguments, JOB_OPTIONS)
        self._require_open()
        draft = job_draft(self._ids, self._tenant, NewJob(name, arguments, **options), self._defaults(known), await self._commands.now())
        stored = await self._commands.submit(draft)
        return JobHandle(self, stored, created=stored == draft.id)

    async def submit_many(self, jobs: Iterable[NewJob]) -> list[JobHandle]:
        """Store all of them or none, at bulk speed."""
        self._require_open()
        wanted = []
        for new in jobs:
            if not isinstance(new, NewJob):
                raise InvalidInput("jobs", f"{new!r} is not a NewJob: write dt.NewJob(task, payload)")
            _, known = self._resolve(new.task)
            if known is not None:
                known.signature.check({} if new.payload is None else new.payload)
            wanted.append((new, self._defaults(known)))
        drafts = job_drafts(self._ids, self._tenant, wanted, await self._commands.now())
        stored = await self._commands.submit_many(drafts)
        return [
            JobHandle(self, job_id, None, job_id is draft.id or job_id == draft.id) for job_id, draft in zip(stored, drafts, strict=True)
        ]

    async def get_job(self, job_id: UUID | str) -> JobHandle:
        job = await self.read_job(_uuid(job_id))
        return JobHandle(self, job.id, job)

    async def jobs(
        self, *, state: str | None = None, queue: str | None = None, schedule: str | None = None, limit: int = 100
    ) -> list[JobHandle]:
        """The newest jobs that match, live and past."""
        self._require_open()
        states = None if state is None else frozenset({_state(state)})
        found = await self._store.list_jobs(JobFilter(self._tenant, states=states, queue=queue, schedule=schedule), _limit(limit))
        return [JobHandle(self, job.id, job) for job in found]

    async def read_job(self, job_id: UUID) -> Job:
        self._require_open()
        return await self._commands.get_job(self._tenant, job_id)

    async def cancel_job(self, job_id: UUID | str, reason: str = "cancelled by the caller") -> CancelReply:
        self._require_open()
        return await self._commands.cancel_job(self._tenant, _uuid(job_id), reason)

    async def retry_job(self, job_id: UUID | str) -> JobHandle:
        """Run a dead letter again, as a new job linked to it."""
        self._require_open()
        return JobHandle(self, await self._commands.retry_job(self._tenant, _uuid(job_id)))

    async def discard_job(self, job_id: UUID | str) -> None:
        """Take a dead letter off the list; its record stays."""
        self._require_open()
        await self._commands.discard_job(self._tenant, _uuid(job_id))

    async def wait_for(self, job_id: UUID, timeout: Duration | None = None) -> Job:
        """The job once it is final. A worker in this process tells at once; elsewhere the store is asked, less and less often."""
        deadline = None if timeout is None else self._clock.monotonic() + duration.parse(timeout, "timeout")
        settled = asyncio.Event()
        self._waiters.add(job_id, settled.set)
        look = FIRST_LOOK
        try:
            while not (job := await self.read_job(job_id)).state.final:
                left = look if deadline is None else min(look, deadline - self._clock.monotonic())
                if left <= 0:
                    raise WaitTimeout(f"job {job_id} is still {job.state} after {timeout}")
                await _wait(settled, left / SECOND)
                settled.clear()
                look = min(look * 3 // 2, LONGEST_LOOK)
            return job
        finally:
            self._waiters.remove(job_id, settled.set)

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def schedule(self, name: str, task: Task[..., Any] | str, when: When, *, replace: bool = False, **options: Any) -> ScheduleView:
        """Declare a recurring job. Declaring the same again changes nothing; a different one under the same name needs replace=True.

        Options: payload, missed, overlap, jitter, start_at, end_at, max_runs, queue, priority, timeout, retry, delivery, owner, labels.
        """
        task_name, known = self._resolve(task)
        if known is not None:
            known.signature.check(options.get("payload", {}))
        self._require_open()
        draft = schedule_draft(self._ids, self._tenant, name, task_name, when, self._defaults(known), await self._commands.now(), options)
        return ScheduleView.of(await self._commands.put_schedule(draft, replacing=replace))

    async def get_schedule(self, name: str) -> ScheduleView:
        self._require_open()
        return ScheduleView.of(await self._commands.get_schedule(self._tenant, name))

    async def schedules(self, *, limit: int = 100, after: str | None = None) -> list[ScheduleView]:
        """By name; `after` is the last name already seen."""
        self._require_open()
        return [ScheduleView.of(schedule) for schedule in await self._store.list_schedules(self._tenant, _limit(limit), after)]

    async def pause(self, name: str, note: str | None = None) -> ScheduleView:
        """No more fires until resumed; those planned and not started are withdrawn."""
        self._require_open()
        return ScheduleView.of(await self._commands.pause_schedule(self._tenant, name, note))

    async def resume(self, name: str) -> ScheduleView:
        """Fires from now on; what fell into the pause stays out."""
        self._require_open()
        return ScheduleView.of(await self._commands.resume_schedule(self._tenant, name))

    async def trigger(self, name: str) -> JobHandle:
        """One job of this schedule now, beside its own fires."""
        self._require_open()
        return JobHandle(self, await self._commands.trigger_schedule(self._tenant, name))

    async def remove(self, name: str) -> None:
        """No more fires; a running job finishes, history stays."""
        self._require_open()
        await self._commands.remove_schedule(self._tenant, name)

    async def nodes(self) -> list[NodeRecord]:
        """The processes of the fleet, living and recently dead."""
        self._require_open()
        return await self._store.nodes()

    @property
    def is_open(self) -> bool:
        return self._opened > 0

    @property
    def store(self) -> Store:
        """The store itself, for what is read of it beyond the calls above."""
        return self._store

    @property
    def tenant(self) -> str:
        return self._tenant

    # -- life ---------------------------------------------------------------------------------------------------------
    def use_store(self, store: str | Store) -> None:
        """Keep the tasks and work on another store; only before the app is opened."""
        if self._opened:
            raise Conflict("the app is open already: choose its store before that")
        self._store = stores.from_url(store) if isinstance(store, str) else store
        self._commands = Commands(self._store, self._clock, self._ids)

    async def open(self) -> None:
        """Connect as a client: submits, reads, runs nothing."""
        async with self._door:
            if self._opened == 0:
                await self._connect()
            self._opened += 1

    async def _connect(self) -> None:
        try:
            await self._store.open()
            await self._clock.follow(self._store.time)
        except BaseException:
            await self._store.close()
            raise

    async def close(self) -> None:
        """Undo one `open`; the last one disconnects."""
        async with self._door:
            self._opened = max(0, self._opened - 1)
            if self._opened == 0:
                await self._store.close()
                self._dismiss_threads()
        if self._opened == 0:
            self._door = asyncio.Lock()  # the next event loop needs one of its own

    async def migrate(self) -> Migration:
        """Create or upgrade the schema; safe from many processes at once."""
        return await self._store.migrate()

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[Node]:
        """A planner and worker inside this process, until the block ends. Options: see NodeOptions."""
        node = self._node(**options)
        await self.open()
        life = asyncio.create_task(node.run(), name="duetime-node")
        try:
            await _first(life, node.started)
            yield node
        finally:
            node.stop()
            try:
                await life
            finally:
                await self.close()

    async def run_async(self, **options: Any) -> None:
        """Plan and work until cancelled. For a loop of your own; signals are yours to handle."""
        async with self.running(**options) as node:
            await node.ended.wait()

    def run(self, **options: Any) -> None:
        """Plan and work until SIGINT or SIGTERM; a second signal ends it without waiting for running jobs."""
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._run_until_signal(options))

    async def _run_until_signal(self, options: dict[str, Any]) -> None:
        with Signals() as signals:
            async with self.running(**options) as node:
                signals.again = node.interrupt
                await signals.wait(node.ended)

    # -- inside -------------------------------------------------------------------------------------------------------
    def _node(self, **options: Any) -> Node:
        settings = NodeOptions(**{"name": f"{socket.gethostname()}-{os.getpid()}", "version": VERSION, **_parsed(options)})
        self._most_threads = max(self._most_threads, settings.concurrency)
        handlers = {name: TaskHandler(task.function, task.signature, task.policies, self._thread_pool) for name, task in self.tasks.items()}

        def heart() -> ThreadedHeart:
            return ThreadedHeart(self._store, self._clock, self._observers)

        return Node(self._store, self._clock, handlers, settings, self._observers, heart, self._waiters.settled)

    def _thread_pool(self) -> Executor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._most_threads, thread_name_prefix="duetime-task")
        return self._threads

    def _dismiss_threads(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    def _twin(self) -> App:
        """Another app on the same store and tasks, for another event loop."""
        twin = App(self._store.twin(), tenant=self._tenant)
        twin.tasks = self.tasks
        return twin

    def _resolve(self, task: Task[..., Any] | str) -> tuple[str, Task[..., Any] | None]:
        if isinstance(task, Task):
            return task.name, task
        if not isinstance(task, str):
            raise TaskNotFound(f'{task!r} is no task: decorate the function with @app.task("name") or give a task\'s name')
        known = self.tasks.get(task)
        return (task, known) if known is not None else (check_name(task, "task"), None)

    def _defaults(self, task: Task[..., Any] | None) -> Defaults:
        return NO_DEFAULTS if task is None else task.defaults

    def _require_open(self) -> None:
        if self._opened == 0:
            raise NotOpen("the app is not open: use `async with app.running()`, or `await app.open()` first")


async def _first(life: asyncio.Task[None], started: asyncio.Event) -> None:
    """Until the node has joined; what prevents it is raised here."""
    joined = asyncio.ensure_future(started.wait())
    await asyncio.wait([life, joined], return_when=asyncio.FIRST_COMPLETED)
    joined.cancel()
    if life.done():
        life.result()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _parsed(options: dict[str, Any]) -> dict[str, Any]:
    refuse_unknown(options, NODE_OPTIONS)
    return {name: _node_option(name, value) for name, value in options.items()}


def _node_option(name: str, value: Any) -> Any:
    match name:
        case "lease" | "lookahead" | "grace" | "retention":
            return duration.parse(value, name)
        case "roles" | "queues":
            if isinstance(value, str) or not all(isinstance(part, str) for part in value):
                raise InvalidInput(name, f"{value!r} is not a list of names: write {name}=[...]")
            return tuple(value)
        case "concurrency" if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput(name, f"{value!r} must be a whole number")
        case _:
            return value


def _limit(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput("limit", f"{value!r} must be a whole number of at least 1")
    return value


def _uuid(value: UUID | str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise JobNotFound(f"{value!r} is no job id: ids look like 01935c2e-7b3a-7000-8000-000000000000") from None


def _state(value: str) -> State:
    try:
        return State(value)
    except ValueError:
        raise InvalidInput("state", f"{value!r} is not one of {', '.join(State)}") from None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop
