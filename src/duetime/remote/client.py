"""The two clients: the same calls, blocking or awaited."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from duetime.errors import DuetimeError, InvalidInput, ServiceUnreachable
from duetime.model.duration import Duration
from duetime.model.views import EventView
from duetime.remote.async_transport import AsyncTransport
from duetime.remote.calls import alerts as of_alerts
from duetime.remote.calls import bulk, fleet, planning, work
from duetime.remote.calls import jobs as of_jobs
from duetime.remote.calls import schedules as of_schedules
from duetime.remote.endpoint import Endpoint
from duetime.remote.event_parser import SILENCE_TIMEOUT, EventParser
from duetime.remote.request import Call, Pause, Reply, RetryPolicy, run_call
from duetime.remote.sync_transport import SyncTransport

P = ParamSpec("P")
Answer = TypeVar("Answer")
PAUSED = Reply(0, {}, b"")


class CallMethod(Generic[P, Answer]):
    """A call as a method of both clients: a `Client` blocks until it has the answer, an `AsyncClient` awaits
    it."""

    def __init__(self, call: Callable[P, Call[Answer]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Call[Answer]]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, Answer]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, Answer]]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> Callable[P, Any]:
        if client is None:
            return self._call

        @wraps(self._call)
        def blocking(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(self._call(*args, **kwargs))

        @wraps(self._call)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            return await blocking(*args, **kwargs)

        return awaited if isinstance(client, AsyncClient) else blocking


class ServiceCalls:
    submit = CallMethod(of_jobs.submit)
    submit_many = CallMethod(of_jobs.submit_many)
    get_job = CallMethod(of_jobs.get_job)
    jobs = CallMethod(of_jobs.jobs)
    cancel_job = CallMethod(of_jobs.cancel_job)
    reschedule_job = CallMethod(of_jobs.reschedule_job)
    run_job = CallMethod(of_jobs.run_job)
    retry_job = CallMethod(of_jobs.retry_job)
    discard_job = CallMethod(of_jobs.discard_job)
    wait_for = CallMethod(of_jobs.wait_for)
    job_output = CallMethod(of_jobs.job_output)
    why_job = CallMethod(of_jobs.why_job)
    dead_letters = CallMethod(of_jobs.dead_letters)
    dead_groups = CallMethod(of_jobs.dead_groups)
    complete = CallMethod(of_jobs.complete)
    fail = CallMethod(of_jobs.fail)
    heartbeat = CallMethod(of_jobs.heartbeat)
    bulk_jobs = CallMethod(bulk.bulk_jobs)

    schedule = CallMethod(of_schedules.schedule)
    edit_schedule = CallMethod(of_schedules.edit_schedule)
    get_schedule = CallMethod(of_schedules.get_schedule)
    schedules = CallMethod(of_schedules.schedules)
    pause = CallMethod(of_schedules.pause)
    resume = CallMethod(of_schedules.resume)
    trigger = CallMethod(of_schedules.trigger)
    remove = CallMethod(of_schedules.remove)
    why_schedule = CallMethod(of_schedules.why_schedule)
    preview_when = CallMethod(planning.preview_when)
    preview_schedule = CallMethod(planning.preview_schedule)
    plan_schedule = CallMethod(planning.plan_schedule)
    plan_new_schedule = CallMethod(planning.plan_new_schedule)
    schedule_versions = CallMethod(planning.schedule_versions)
    restore_schedule = CallMethod(planning.restore_schedule)
    backfill = CallMethod(planning.backfill)
    bulk_schedules = CallMethod(bulk.bulk_schedules)

    queues = CallMethod(fleet.queues)
    pause_queue = CallMethod(fleet.pause_queue)
    resume_queue = CallMethod(fleet.resume_queue)
    limit_queue = CallMethod(fleet.limit_queue)
    queue_depth = CallMethod(fleet.queue_depth)
    known_tasks = CallMethod(fleet.known_tasks)
    nodes = CallMethod(fleet.nodes)
    broker = CallMethod(fleet.broker)
    leases = CallMethod(fleet.leases)
    stats = CallMethod(fleet.stats)
    calendar = CallMethod(fleet.calendar)
    me = CallMethod(fleet.me)
    keys = CallMethod(fleet.keys)
    create_key = CallMethod(fleet.create_key)
    revoke_key = CallMethod(fleet.revoke_key)

    alerts = CallMethod(of_alerts.alerts)
    close_alert = CallMethod(of_alerts.close_alert)
    snooze_alert = CallMethod(of_alerts.snooze_alert)
    alert_deliveries = CallMethod(of_alerts.alert_deliveries)
    alert_channels = CallMethod(of_alerts.alert_channels)
    set_alert_channel = CallMethod(of_alerts.set_alert_channel)
    remove_alert_channel = CallMethod(of_alerts.remove_alert_channel)
    test_alert_channel = CallMethod(of_alerts.test_alert_channel)
    alert_rules = CallMethod(of_alerts.alert_rules)
    set_alert_rule = CallMethod(of_alerts.set_alert_rule)
    remove_alert_rule = CallMethod(of_alerts.remove_alert_rule)
    alert_mutes = CallMethod(of_alerts.alert_mutes)
    mute_alerts = CallMethod(of_alerts.mute_alerts)
    unmute_alerts = CallMethod(of_alerts.unmute_alerts)

    join_worker = CallMethod(work.join_worker)
    leave_worker = CallMethod(work.leave_worker)
    claim_jobs = CallMethod(work.claim_jobs)
    heartbeat_worker = CallMethod(work.heartbeat_worker)
    add_output = CallMethod(work.add_output)
    complete_jobs = CallMethod(work.complete_jobs)
    fail_jobs = CallMethod(work.fail_jobs)
    snooze_jobs = CallMethod(work.snooze_jobs)
    release_jobs = CallMethod(work.release_jobs)


class Client(ServiceCalls):
    """A Duetime service, for programs without an event loop. Threads may share a client; it reuses
    connections.

    `timeout` is for one request. The client repeats a request that got no reply, 429 or 503 up to
    `retries` times, with the same idempotency key. `tls` verifies the certificate of the service if the
    authorities of the system do not know it.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: Duration = "30s",
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._transport = SyncTransport(Endpoint.of(url, key, timeout, tls))
        self._policy = _retry_policy(retries)

    def events(
        self, types: Sequence[str] | None = None, *, after: int | None = None
    ) -> Generator[EventView, None, None]:
        """Events as they happen; `after` is the id of the last event already seen. The client reconnects
        after interruptions."""
        parser = EventParser(types, after, self._policy)
        while True:
            problem: DuetimeError | None = None
            try:
                yield from self._stream(parser)
            except DuetimeError as raised:
                problem = raised
            self._transport.pause(parser.interrupted(problem))

    def _stream(self, parser: EventParser) -> Iterator[EventView]:
        stream = self._transport.open(parser.request(), SILENCE_TIMEOUT)
        try:
            if stream.status != 200:
                parser.check(stream.status, stream.headers, stream.read())
            while data := stream.read():
                yield from parser.feed(data)
        finally:
            stream.close()

    def run(self, call: Call[Answer]) -> Answer:
        """Send the requests of the call until it has its answer."""
        steps = run_call(call, self._policy)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self._transport.pause(step.seconds)
                    step = steps.send(PAUSED)
                    continue
                try:
                    reply = self._transport.send(step)
                except ServiceUnreachable as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(reply)
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    def close(self) -> None:
        """Close the connections. Calls in progress end."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(ServiceCalls):
    """A Duetime service, for asyncio. For one event loop; it reuses connections, at most `connections` at a
    time.

    Everything else is as for `Client`.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: Duration = "30s",
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
        connections: int = 100,
    ) -> None:
        self._transport = AsyncTransport(Endpoint.of(url, key, timeout, tls), connections)
        self._policy = _retry_policy(retries)

    async def events(
        self, types: Sequence[str] | None = None, *, after: int | None = None
    ) -> AsyncGenerator[EventView, None]:
        """Events as they happen; `after` is the id of the last event already seen. The client reconnects
        after interruptions."""
        parser = EventParser(types, after, self._policy)
        while True:
            problem: DuetimeError | None = None
            try:
                async for event in self._stream(parser):
                    yield event
            except DuetimeError as raised:
                problem = raised
            await self._transport.pause(parser.interrupted(problem))

    async def _stream(self, parser: EventParser) -> AsyncIterator[EventView]:
        stream = await self._transport.open(parser.request(), SILENCE_TIMEOUT)
        try:
            if stream.status != 200:
                parser.check(stream.status, stream.headers, await stream.read())
            while data := await stream.read():
                for event in parser.feed(data):
                    yield event
        finally:
            await stream.close()

    async def run(self, call: Call[Answer]) -> Answer:
        """Send the requests of the call until it has its answer."""
        steps = run_call(call, self._policy)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    await self._transport.pause(step.seconds)
                    step = steps.send(PAUSED)
                    continue
                try:
                    reply = await self._transport.send(step)
                except ServiceUnreachable as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(reply)
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _retry_policy(retries: int) -> RetryPolicy:
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= 100:
        raise InvalidInput("retries", f"{retries!r} must be a whole number from 0 to 100")
    return RetryPolicy(retries)
