"""The client: what an open app can be asked for. It submits, reads and changes, and runs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from duetime import stores
from duetime.app.audience import Audience
from duetime.app.discovery import groups_in, import_all
from duetime.app.hearsay import Hearsay
from duetime.app.statistics import Statistics
from duetime.app.waiting import Waiting
from duetime.engine.calm import without_collecting
from duetime.engine.checks import check_count, check_id, check_name, check_note, check_priority, check_state
from duetime.engine.clock import NodeClock
from duetime.engine.commands import Commands
from duetime.engine.drafts import (
    JOB_OPTIONS,
    Defaults,
    NewJob,
    check_schedule_options,
    declared,
    fire_time_of,
    job_draft,
    job_drafts,
    refuse_rule,
    rule_of,
    schedule_draft,
)
from duetime.errors import ConfigError, Conflict, InvalidInput, NotOpen, TaskNotFound
from duetime.handle import AttemptView, JobHandle, ScheduleView
from duetime.model.duration import Duration
from duetime.model.ids import Ids
from duetime.model.job import DEFAULT_TENANT, CancelReply, Job, JobDraft, JobFilter
from duetime.model.lease import Node as NodeRecord
from duetime.model.limit import Limit, Queue
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.model.unique import Rule
from duetime.model.when import When
from duetime.observer import Observer, Observers
from duetime.observers.telling import TellingStore
from duetime.store import Migration, Store
from duetime.task import Task, Tasks


class Door:
    """Two coroutines may open at once, or one while another closes: the store is opened for all of them once. An app may be used on one
    event loop after another, and each needs a lock of its own."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()

    @property
    def lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock


class Client(Tasks):
    """Tasks and a store. Opened as often as it is closed."""

    _is_app = True

    def __init__(self, store: str | Store, tenant: str = DEFAULT_TENANT, observers: Sequence[Observer] = ()) -> None:
        super().__init__()
        self._observers = Observers(observers)
        self._tenant = check_name(tenant, "tenant")
        self._clock = NodeClock()
        self._ids = Ids()
        self._opened = 0
        self._door = Door()
        self.use_store(store)

    # -- jobs ---------------------------------------------------------------------------------------------------------
    async def submit(self, task: Task[..., Any] | str, /, *, connection: Any = None, **arguments: Any) -> JobHandle:
        """Store one job; when this returns it is durable. Arguments that are no options are the task's. With a `connection` of your
        own the job belongs to the transaction open there: it is durable when you commit."""
        draft, rule = await self.draft_job(task, arguments)
        if connection is not None:
            refuse_rule(rule)
            return self.handles([draft], await self._commands.submit_within(connection, [draft]))[0]
        if rule is not None:
            admission = await self._commands.admit(draft, rule)
            return JobHandle(self, admission.id, None, admission.conflict)
        stored = await self._commands.submit(draft)
        return JobHandle(self, stored, None, None if stored == draft.id else "skipped")

    async def submit_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[JobHandle]:
        """Store all of them or none, at bulk speed."""
        drafts = await self.draft_jobs(jobs)
        if connection is not None:
            return self.handles(drafts, await self._commands.submit_within(connection, drafts))
        return self.handles(drafts, await self._commands.submit_many(drafts))

    async def draft_job(self, task: Task[..., Any] | str, arguments: dict[str, Any]) -> tuple[JobDraft, Rule | None]:
        """A job as it would be stored, and the rule it is unique by if it has one of its own."""
        name, known = self._resolve(task)
        options: dict[str, Any] = {}
        if known is None or arguments.keys() != known.signature.names:
            options = {option: arguments.pop(option) for option in JOB_OPTIONS if option in arguments}
            if known is not None:
                known.signature.check(arguments, JOB_OPTIONS)
        self._require_open()
        new, defaults = NewJob(name, arguments, **options), await self._defaults_of(name) if known is None else known.defaults
        return job_draft(self._ids, self._tenant, new, defaults, await self._commands.now()), rule_of(new, defaults)

    async def draft_jobs(self, jobs: Iterable[NewJob]) -> list[JobDraft]:
        self._require_open()
        now = await self._commands.now()
        with without_collecting():
            jobs = list(jobs)
        heard = {task: await self._hearsay.terms_of(task) for task in self._unknown(jobs)}
        with without_collecting():
            return job_drafts(self._ids, self._tenant, self._read_new(jobs, heard), now)

    async def get_job(self, job_id: UUID | str) -> JobHandle:
        job = await self.read_job(check_id(job_id))
        return JobHandle(self, job.id, job)

    async def jobs(
        self, *, state: str | None = None, queue: str | None = None, schedule: str | None = None, limit: int = 100
    ) -> list[JobHandle]:
        """The newest jobs that match, live and past."""
        self._require_open()
        states = None if state is None else frozenset({check_state(state)})
        queue = None if queue is None else check_name(queue, "queue")
        schedule = None if schedule is None else check_name(schedule, "schedule")
        wanted = JobFilter(self._tenant, states=states, queue=queue, schedule=schedule)
        return [JobHandle(self, job.id, job) for job in await self._store.list_jobs(wanted, check_count(limit, "limit"))]

    async def read_job(self, job_id: UUID) -> Job:
        self._require_open()
        return await self._commands.get_job(self._tenant, job_id)

    async def read_attempts(self, job_id: UUID | str) -> list[AttemptView]:
        """The attempts of a job that ended badly, oldest first."""
        job = await self.read_job(check_id(job_id))
        return [AttemptView.of(attempt) for attempt in await self._store.list_attempts(job.id)]

    async def cancel_job(self, job_id: UUID | str, reason: str = "cancelled by the caller") -> CancelReply:
        self._require_open()
        return await self._commands.cancel_job(self._tenant, check_id(job_id), reason)

    async def move_job(
        self, job_id: UUID | str, *, at: datetime | None = None, delay: Duration | None = None, priority: int | None = None
    ) -> JobHandle:
        """Another due time or priority for a job that is pending."""
        self._require_open()
        due_at = None if at is None and delay is None else fire_time_of(at, delay, await self._commands.now())
        wanted = None if priority is None else check_priority(priority)
        await self._commands.move_job(self._tenant, check_id(job_id), due_at, wanted)
        return await self.get_job(job_id)

    async def retry_job(self, job_id: UUID | str, payload: Any = None) -> JobHandle:
        """Run a dead letter again, as a new job linked to it; with another payload, if one is given."""
        self._require_open()
        new_id = await self._commands.retry_job(self._tenant, check_id(job_id), payload, self._defaults_of)
        return JobHandle(self, new_id)

    async def discard_job(self, job_id: UUID | str) -> None:
        """Take a dead letter off the list; its record stays."""
        self._require_open()
        await self._commands.discard_job(self._tenant, check_id(job_id))

    async def wait_for(self, job_id: UUID, timeout: Duration | None = None) -> Job:
        """The job once it is final."""
        return await self._waiting.wait_for(job_id, self.read_job, timeout)

    # -- queues -------------------------------------------------------------------------------------------------------
    async def queues(self) -> list[Queue]:
        """Every queue a job was ever stored under or that was set, by name."""
        self._require_open()
        return await self._store.queues()

    async def pause_queue(self, name: str, note: str | None = None) -> Queue:
        """Start nothing more of this queue, on any node; what runs goes on."""
        self._require_open()
        return await self._commands.pause_queue(check_name(name, "queue"), check_note(note))

    async def resume_queue(self, name: str) -> Queue:
        self._require_open()
        return await self._commands.resume_queue(check_name(name, "queue"))

    async def limit_queue(self, name: str, most: int | None = None, rate: str | None = None) -> Queue:
        """At most so many of its jobs at once and so many starts in a period ("100/1m"), over all nodes; what is None is not limited."""
        self._require_open()
        limit = None if most is None and rate is None else Limit(most, rate=rate)
        return await self._commands.limit_queue(check_name(name, "queue"), most, None if limit is None else limit.parsed_rate)

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def schedule(
        self, name: str, task: Task[..., Any] | str, when: When, *, replace: bool = False, author: str | None = None, **options: Any
    ) -> ScheduleView:
        """Declare a recurring job. Declaring the same again changes nothing; a different one under the same name needs replace=True.

        Options: payload, missed, overlap, jitter, start_at, end_at, max_runs, queue, priority, timeout, retry, delivery, owner, labels.
        `author` is noted in its versions.
        """
        task_name, known = self._resolve(task)
        if known is not None:
            check_schedule_options(options, known.signature.names)
            known.signature.check(options.get("payload", {}))
        self._require_open()
        defaults = await self._defaults_of(task_name) if known is None else known.defaults
        draft = schedule_draft(self._ids, self._tenant, name, task_name, when, defaults, await self._commands.now(), options)
        stored = await self._commands.put_schedule(draft, replace, declared=lambda draft: declared(draft, options), author=author)
        return await self._view(stored)

    async def get_schedule(self, name: str) -> ScheduleView:
        self._require_open()
        return await self._view(await self._commands.get_schedule(self._tenant, name))

    async def schedules(self, *, limit: int = 100, after: str | None = None) -> list[ScheduleView]:
        """By name; `after` is the last name already seen."""
        self._require_open()
        wanted = ScheduleFilter(self._tenant)
        found = await self._store.list_schedules(wanted, check_count(limit, "limit"), after)
        now = await self._commands.now()
        return [ScheduleView.of(one, now) for one in found]

    async def pause(self, name: str, note: str | None = None, *, author: str | None = None) -> ScheduleView:
        """No more fires until resumed; those planned and not started are withdrawn. `note` says why, `author` who."""
        self._require_open()
        return await self._view(await self._commands.pause_schedule(self._tenant, name, check_note(note), author))

    async def resume(self, name: str, *, author: str | None = None) -> ScheduleView:
        """Fires from now on; what fell into the pause stays out."""
        self._require_open()
        return await self._view(await self._commands.resume_schedule(self._tenant, name, author))

    async def trigger(self, name: str) -> JobHandle:
        """One job of this schedule now, beside its own fires."""
        self._require_open()
        return JobHandle(self, await self._commands.trigger_schedule(self._tenant, name))

    async def remove(self, name: str, *, author: str | None = None) -> None:
        """No more fires; a running job finishes, history stays."""
        self._require_open()
        await self._commands.remove_schedule(self._tenant, name, author)

    async def nodes(self) -> list[NodeRecord]:
        """The processes of the fleet, living and recently dead."""
        self._require_open()
        return await self._store.nodes()

    # -- life ---------------------------------------------------------------------------------------------------------
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

    def use_store(self, store: str | Store) -> None:
        """Keep the tasks and work on another store; only before the app is opened."""
        if self._opened:
            raise Conflict("the app is open already: choose its store before that")
        self._store = stores.from_url(store) if isinstance(store, str) else _checked(store)
        self._commands = Commands(cast(Store, TellingStore(self._store, self._observers)), self._clock, self._ids)
        self._waiting = Waiting(self._store, self._clock)
        self._audience = Audience(self._store, self._clock)
        self._statistics = Statistics(self._store, self._clock)
        self._hearsay = Hearsay(self._store, self._clock)

    async def open(self) -> None:
        """Connect as a client: submits, reads, runs nothing."""
        async with self._door.lock:
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
        async with self._door.lock:
            self._opened = max(0, self._opened - 1)
            if self._opened == 0:
                await self._disconnect()

    async def _disconnect(self) -> None:
        self._waiting.close()
        await self._audience.close()
        self._statistics.close()
        await self._store.close()

    async def migrate(self) -> Migration:
        """Create or upgrade the schema; safe from many processes at once."""
        return await self._store.migrate()

    def discover(self, package: str) -> None:
        """Import this module and, if it is a package, all its modules, so that their tasks are registered; groups of tasks that stand
        in them are included."""
        for group in groups_in(import_all(package)):
            self.include(group)

    # -- inside -------------------------------------------------------------------------------------------------------
    def _keep(self, task: Task[..., Any]) -> None:
        super()._keep(task)
        task.belong_to(self)

    def _resolve(self, task: Task[..., Any] | str) -> tuple[str, Task[..., Any] | None]:
        if isinstance(task, Task):
            return task.name, task
        if not isinstance(task, str):
            raise TaskNotFound(f'{task!r} is no task: decorate the function with @app.task("name") or give a task\'s name')
        known = self.tasks.get(task)
        return (task, known) if known is not None else (check_name(task, "task"), None)

    async def _defaults_of(self, task: str) -> Defaults:
        """What the task says for jobs that do not say otherwise."""
        known = self.tasks.get(task)
        return await self._hearsay.terms_of(task) if known is None else known.defaults

    def _unknown(self, jobs: Iterable[NewJob]) -> set[str]:
        """The names among their tasks that are not registered here."""
        named = {new.task for new in jobs if isinstance(new, NewJob) and isinstance(new.task, str)}
        return {self._resolve(task)[0] for task in named - self.tasks.keys()}

    def _read_new(self, jobs: Iterable[NewJob], heard: Mapping[str, Defaults]) -> Iterator[tuple[NewJob, Defaults]]:
        """Each with what its task says; there are few tasks and many jobs."""
        tasks: dict[Any, tuple[str, Defaults]] = {}
        for new in jobs:
            if not isinstance(new, NewJob):
                raise InvalidInput("jobs", f"{new!r} is not a NewJob: write dt.NewJob(task, payload)")
            task, payload = new.task, new.payload
            found = tasks.get(task) if isinstance(task, str | Task) else None
            if found is None:
                name, known = self._resolve(task)
                found = tasks[task] = (name, heard[name] if known is None else known.defaults)
            name, defaults = found
            refuse_rule(rule_of(new, defaults))
            if name is task and payload is not None:
                yield new, defaults
            else:
                yield new._replace(task=name, payload={} if payload is None else payload), defaults  # as if it had come so

    def handles(self, drafts: Sequence[JobDraft], stored: Sequence[UUID]) -> list[JobHandle]:
        """One for each draft and the id under which it was stored, or that of the job that answers for it."""
        with without_collecting():
            return [
                JobHandle(self, job_id, None, None if job_id is draft.id or job_id == draft.id else "skipped")
                for job_id, draft in zip(stored, drafts, strict=True)
            ]

    async def _view(self, schedule: Schedule) -> ScheduleView:
        return ScheduleView.of(schedule, await self._commands.now())

    def _require_open(self) -> None:
        if self._opened == 0:
            raise NotOpen("the app is not open: use `async with app.running()`, or `await app.open()` first")


def _checked(store: Store) -> Store:
    if not hasattr(store, "capabilities"):
        raise ConfigError(f"store: {store!r} is neither a URL nor a store: {stores.KNOWN}")
    return store
