"""The two clients: the same calls, one that blocks and one to be awaited."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from duetime.errors import DuetimeError, InvalidInput, ServiceUnreachable
from duetime.model.duration import Duration
from duetime.remote import awaiting, blocking
from duetime.remote.calls import bulk, fleet, planning
from duetime.remote.calls import jobs as of_jobs
from duetime.remote.calls import schedules as of_schedules
from duetime.remote.feed import SILENCE, Feed
from duetime.remote.message import Line
from duetime.remote.results import Event
from duetime.remote.talk import Patience, Pause, Reply, Talk, converse

P = ParamSpec("P")
Answer = TypeVar("Answer")


class Blocks(Generic[P, Answer]):
    """A call as a method that blocks."""

    def __init__(self, call: Callable[P, Talk[Answer]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Talk[Answer]]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, Answer]: ...
    def __get__(self, client: Client | None, owner: type) -> Callable[P, Any]:
        if client is None:
            return self._call

        @wraps(self._call)
        def method(*args: P.args, **kwargs: P.kwargs) -> Answer:
            return client.carry_out(self._call(*args, **kwargs))

        return method


class Awaits(Generic[P, Answer]):
    """A call as a method to be awaited."""

    def __init__(self, call: Callable[P, Talk[Answer]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Talk[Answer]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, Answer]]: ...
    def __get__(self, client: AsyncClient | None, owner: type) -> Callable[P, Any]:
        if client is None:
            return self._call

        @wraps(self._call)
        async def method(*args: P.args, **kwargs: P.kwargs) -> Answer:
            return await client.carry_out(self._call(*args, **kwargs))

        return method


class Client:
    """A Duetime service, for programs without an event loop. May be shared by threads; connections are reused.

    `timeout` is for one request. A request that got no answer, 429 or 503 is sent again, `retries` times at most, with the same
    idempotency key. `tls` is how the service's certificate is checked, where the system's own authorities do not know it.
    """

    def __init__(
        self, url: str, key: str | None = None, *, timeout: Duration = "30s", retries: int = 4, tls: ssl.SSLContext | None = None
    ) -> None:
        self._wire = blocking.Wire(Line.of(url, key, timeout, tls))
        self._patience = _patience(retries)

    submit = Blocks(of_jobs.submit)
    submit_many = Blocks(of_jobs.submit_many)
    get_job = Blocks(of_jobs.get_job)
    jobs = Blocks(of_jobs.jobs)
    cancel_job = Blocks(of_jobs.cancel_job)
    move_job = Blocks(of_jobs.move_job)
    run_job = Blocks(of_jobs.run_job)
    retry_job = Blocks(of_jobs.retry_job)
    discard_job = Blocks(of_jobs.discard_job)
    wait_for = Blocks(of_jobs.wait_for)
    why_job = Blocks(of_jobs.why_job)
    dead_letters = Blocks(of_jobs.dead_letters)
    dead_groups = Blocks(of_jobs.dead_groups)
    complete = Blocks(of_jobs.complete)
    fail = Blocks(of_jobs.fail)
    heartbeat = Blocks(of_jobs.heartbeat)
    bulk_jobs = Blocks(bulk.bulk_jobs)

    schedule = Blocks(of_schedules.schedule)
    edit_schedule = Blocks(of_schedules.edit_schedule)
    get_schedule = Blocks(of_schedules.get_schedule)
    schedules = Blocks(of_schedules.schedules)
    pause = Blocks(of_schedules.pause)
    resume = Blocks(of_schedules.resume)
    trigger = Blocks(of_schedules.trigger)
    remove = Blocks(of_schedules.remove)
    why_schedule = Blocks(of_schedules.why_schedule)
    preview_when = Blocks(planning.preview_when)
    preview_schedule = Blocks(planning.preview_schedule)
    plan_schedule = Blocks(planning.plan_schedule)
    schedule_versions = Blocks(planning.schedule_versions)
    restore_schedule = Blocks(planning.restore_schedule)
    backfill = Blocks(planning.backfill)
    bulk_schedules = Blocks(bulk.bulk_schedules)

    queues = Blocks(fleet.queues)
    pause_queue = Blocks(fleet.pause_queue)
    resume_queue = Blocks(fleet.resume_queue)
    limit_queue = Blocks(fleet.limit_queue)
    known_tasks = Blocks(fleet.known_tasks)
    nodes = Blocks(fleet.nodes)
    leases = Blocks(fleet.leases)
    stats = Blocks(fleet.stats)
    calendar = Blocks(fleet.calendar)
    me = Blocks(fleet.me)
    keys = Blocks(fleet.keys)
    create_key = Blocks(fleet.create_key)
    revoke_key = Blocks(fleet.revoke_key)

    def events(self, types: Sequence[str] | None = None, *, after: int | None = None) -> Generator[Event, None, None]:
        """What happens, as it happens; `after` is the id of the last event already seen. Interruptions are bridged."""
        feed = Feed(types, after, self._patience)
        while True:
            problem: DuetimeError | None = None
            try:
                yield from self._followed(feed)
            except DuetimeError as raised:
                problem = raised
            self._wire.pause(feed.interrupted(problem))

    def _followed(self, feed: Feed) -> Iterator[Event]:
        stream = self._wire.open(feed.request(), SILENCE)
        try:
            if stream.status != 200:
                feed.check(stream.status, stream.headers, stream.read())
            while data := stream.read():
                yield from feed.take(data)
        finally:
            stream.close()

    def carry_out(self, talk: Talk[Answer]) -> Answer:
        """Do what the talk asks for, until it has its answer."""
        steps = converse(talk, self._patience)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self._wire.pause(step.seconds)
                    step = steps.send(PAUSED)
                    continue
                try:
                    reply = self._wire.send(step)
                except ServiceUnreachable as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(reply)
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    def close(self) -> None:
        """Let go of the connections; calls under way end."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncClient:
    """A Duetime service, for asyncio. For one event loop; connections are reused, at most `connections` at a time.

    The rest is as for `Client`.
    """

    def __init__(
        self, url: str, key: str | None = None, *, timeout: Duration = "30s", retries: int = 4, tls: ssl.SSLContext | None = None,
        connections: int = 100,
    ) -> None:  # fmt: skip
        self._wire = awaiting.Wire(Line.of(url, key, timeout, tls), connections)
        self._patience = _patience(retries)

    submit = Awaits(of_jobs.submit)
    submit_many = Awaits(of_jobs.submit_many)
    get_job = Awaits(of_jobs.get_job)
    jobs = Awaits(of_jobs.jobs)
    cancel_job = Awaits(of_jobs.cancel_job)
    move_job = Awaits(of_jobs.move_job)
    run_job = Awaits(of_jobs.run_job)
    retry_job = Awaits(of_jobs.retry_job)
    discard_job = Awaits(of_jobs.discard_job)
    wait_for = Awaits(of_jobs.wait_for)
    why_job = Awaits(of_jobs.why_job)
    dead_letters = Awaits(of_jobs.dead_letters)
    dead_groups = Awaits(of_jobs.dead_groups)
    complete = Awaits(of_jobs.complete)
    fail = Awaits(of_jobs.fail)
    heartbeat = Awaits(of_jobs.heartbeat)
    bulk_jobs = Awaits(bulk.bulk_jobs)

    schedule = Awaits(of_schedules.schedule)
    edit_schedule = Awaits(of_schedules.edit_schedule)
    get_schedule = Awaits(of_schedules.get_schedule)
    schedules = Awaits(of_schedules.schedules)
    pause = Awaits(of_schedules.pause)
    resume = Awaits(of_schedules.resume)
    trigger = Awaits(of_schedules.trigger)
    remove = Awaits(of_schedules.remove)
    why_schedule = Awaits(of_schedules.why_schedule)
    preview_when = Awaits(planning.preview_when)
    preview_schedule = Awaits(planning.preview_schedule)
    plan_schedule = Awaits(planning.plan_schedule)
    schedule_versions = Awaits(planning.schedule_versions)
    restore_schedule = Awaits(planning.restore_schedule)
    backfill = Awaits(planning.backfill)
    bulk_schedules = Awaits(bulk.bulk_schedules)

    queues = Awaits(fleet.queues)
    pause_queue = Awaits(fleet.pause_queue)
    resume_queue = Awaits(fleet.resume_queue)
    limit_queue = Awaits(fleet.limit_queue)
    known_tasks = Awaits(fleet.known_tasks)
    nodes = Awaits(fleet.nodes)
    leases = Awaits(fleet.leases)
    stats = Awaits(fleet.stats)
    calendar = Awaits(fleet.calendar)
    me = Awaits(fleet.me)
    keys = Awaits(fleet.keys)
    create_key = Awaits(fleet.create_key)
    revoke_key = Awaits(fleet.revoke_key)

    async def events(self, types: Sequence[str] | None = None, *, after: int | None = None) -> AsyncGenerator[Event, None]:
        """What happens, as it happens; `after` is the id of the last event already seen. Interruptions are bridged."""
        feed = Feed(types, after, self._patience)
        while True:
            problem: DuetimeError | None = None
            try:
                async for event in self._followed(feed):
                    yield event
            except DuetimeError as raised:
                problem = raised
            await self._wire.pause(feed.interrupted(problem))

    async def _followed(self, feed: Feed) -> AsyncIterator[Event]:
        stream = await self._wire.open(feed.request(), SILENCE)
        try:
            if stream.status != 200:
                feed.check(stream.status, stream.headers, await stream.read())
            while data := await stream.read():
                for event in feed.take(data):
                    yield event
        finally:
            await stream.close()

    async def carry_out(self, talk: Talk[Answer]) -> Answer:
        steps = converse(talk, self._patience)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    await self._wire.pause(step.seconds)
                    step = steps.send(PAUSED)
                    continue
                try:
                    reply = await self._wire.send(step)
                except ServiceUnreachable as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(reply)
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    async def close(self) -> None:
        """Let go of the connections."""
        await self._wire.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


PAUSED = Reply(0, {}, b"")


def _patience(retries: int) -> Patience:
    if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= 100:
        raise InvalidInput("retries", f"{retries!r} must be a whole number from 0 to 100")
    return Patience(retries)
