"""The services of an app, one for each noun, and the documented calls as short delegates to them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from duetime.app.alerts import AppAlerts
from duetime.app.backfill import Backfill
from duetime.app.bulk import BulkActions
from duetime.app.calendar import FireCalendar
from duetime.app.context import AppContext
from duetime.app.dead import DeadLetters
from duetime.app.event_feed import FeedEvent, check_types
from duetime.app.jobs import AppJobs
from duetime.app.keys import Keys
from duetime.app.nodes import AppNodes, AppQueues
from duetime.app.previews import Previews
from duetime.app.schedules import AppSchedules, ScheduleVersions
from duetime.app.stats import check_times
from duetime.app.why import Explanations
from duetime.handle import JobHandle
from duetime.model.duration import Duration
from duetime.model.instant import Micros
from duetime.model.views import Stats
from duetime.observers.event_log import KINDS
from duetime.store import Store
from duetime.task import AnyTask

P = ParamSpec("P")
Answer = TypeVar("Answer")
Service = TypeVar("Service")


def delegate(
    service: str, method: Callable[Concatenate[Service, P], Answer]
) -> Callable[Concatenate[Any, P], Answer]:
    """The method of a service as a method of the object that has the service."""

    @wraps(method)
    def call(view: Any, /, *arguments: P.args, **named: P.kwargs) -> Answer:
        return method(getattr(view, service), *arguments, **named)

    return call


class Services:
    """An app as one tenant sees it. Services that share a name with a listing are called for it: `await
    view.jobs(state="dead")`."""

    def __init__(self, context: AppContext) -> None:
        self.context = context
        self.jobs = AppJobs(context, self)
        self.schedules = AppSchedules(context, self)
        self.previews = Previews(context)
        self.versions = ScheduleVersions(context)
        self.backfill = Backfill(context)
        self.bulk = BulkActions(context)
        self.why = Explanations(context)
        self.calendar = FireCalendar(context)
        self.dead = DeadLetters(context)
        self.queues = AppQueues(context)
        self.nodes = AppNodes(context)
        self.keys = Keys(context)
        self.alerts = AppAlerts(context)
        self.event_feed = context.shared.event_feed
        self.remote_work = context.shared.remote_work

    submit_many = delegate("jobs", AppJobs.submit_many)
    get_job = delegate("jobs", AppJobs.get)
    read_job = delegate("jobs", AppJobs.read)
    read_attempts = delegate("jobs", AppJobs.attempts)
    job_output = delegate("jobs", AppJobs.output)
    wait_for = delegate("jobs", AppJobs.wait)
    cancel_job = delegate("jobs", AppJobs.cancel)
    reschedule_job = delegate("jobs", AppJobs.reschedule)
    retry_job = delegate("jobs", AppJobs.retry)
    discard_job = delegate("jobs", AppJobs.discard)
    schedule = delegate("schedules", AppSchedules.declare)
    declare_schedules = delegate("schedules", AppSchedules.declare_set)
    get_schedule = delegate("schedules", AppSchedules.get)
    pause = delegate("schedules", AppSchedules.pause)
    resume = delegate("schedules", AppSchedules.resume)
    trigger = delegate("schedules", AppSchedules.trigger)
    remove = delegate("schedules", AppSchedules.remove)
    pause_queue = delegate("queues", AppQueues.pause)
    resume_queue = delegate("queues", AppQueues.resume)
    limit_queue = delegate("queues", AppQueues.limit)

    async def submit(self, task: AnyTask | str, /, *, connection: Any = None, **arguments: Any) -> JobHandle:
        """Store one job; when this returns it is durable. Arguments that are not options are the task's. With
        a `connection` of your own the job belongs to the transaction open there: it is durable when you
        commit."""
        return await self.jobs.submit(task, arguments, connection)

    @property
    def store(self) -> Store:
        """The store itself, for reads beyond the calls of the app."""
        return self.context.shared.store

    @property
    def tenant(self) -> str:
        return self.context.tenant

    async def now(self) -> Micros:
        """The store's time."""
        return await self.context.now()

    async def stats(self, since: Duration = "1h", step: Duration = "1m") -> Stats:
        """Live jobs, what the fleet did during `since` in steps of this length, failing targets, late jobs
        and the next fires.

        Each process writes its counts every ten seconds; a killed process loses those since the last time."""
        shared, span = self.context.shared, check_times(since, step)
        found = await shared.stats.read(self.tenant, *span, await self.now(), shared.telemetry)
        return replace(found, read_store=await shared.read_state())

    async def events(
        self, types: Iterable[str] = KINDS, after: int | None = None
    ) -> AsyncGenerator[FeedEvent, None]:
        """What happens in the fleet from now on, or after the event with this id: changes of jobs, schedules,
        nodes and queues."""
        self.context.require_open()
        feed = self.event_feed
        subscription, position = await feed.subscribe(self.tenant, check_types(types))
        try:
            async with aclosing(feed.events(subscription, position, after)) as events:
                async for event in events:
                    yield event
        finally:
            subscription.leave()
