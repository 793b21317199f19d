"""The invoker contract: what runs a job's target, the context it is given, and the desk that writes down what an attempt has to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from logging import LoggerAdapter, getLogger
from typing import Any, Protocol, TypeVar
from uuid import UUID

from duetime.errors import Conflict, Fenced, InvalidInput
from duetime.model.codec import decode, encode_payload
from duetime.model.instant import Micros, to_datetime
from duetime.model.job import Claimed, Delivery
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.store import Note, Transaction

LONGEST_MARK = 512
OVER = "this attempt is over, and its connection with it: await everything you start before you return"
_logger = getLogger("duetime.task")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Policies:
    """How an attempt is bounded and what its failure leads to; a job's own overrides replace the target's defaults."""

    retry: Retry
    timeout: Micros | None
    delivery: Delivery


class Desk(Protocol):
    """Where attempts have things written down while they run. One desk serves all attempts of a node."""

    loop: asyncio.AbstractEventLoop  # which it works on; other threads hand their calls over to it

    async def save(self, note: Note) -> None:
        """A checkpoint is durable when this returns; progress alone may be written a moment later. Raises Fenced when the job does
        not run under this attempt number any more."""
        ...

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        """True for the one call that takes the mark. Raises Fenced as `save` does."""
        ...

    async def transact(self) -> Transaction: ...


class TaskConnection:
    """The store's own database: what a task writes here is committed together with its job's success, or not at all.

    The transaction begins with the first statement. The verbs are asyncpg's; `await connection` gives the driver's own object, whose
    other attributes are found here, too, once the transaction has begun. Never commit or roll back the whole of it yourself.
    """

    __slots__ = ("_begin", "_begun", "_closed", "_door")

    def __init__(self, begin: Callable[[], Awaitable[Transaction]]) -> None:
        self._begin = begin
        self._begun: Transaction | None = None
        self._closed = False
        self._door = asyncio.Lock()

    @property
    def begun(self) -> bool:
        return self._begun is not None

    async def execute(self, query: str, *arguments: Any, **options: Any) -> Any:
        return await (await self).execute(query, *arguments, **options)

    async def executemany(self, query: str, arguments: Any, **options: Any) -> Any:
        return await (await self).executemany(query, arguments, **options)

    async def fetch(self, query: str, *arguments: Any, **options: Any) -> Any:
        return await (await self).fetch(query, *arguments, **options)

    async def fetchrow(self, query: str, *arguments: Any, **options: Any) -> Any:
        return await (await self).fetchrow(query, *arguments, **options)

    async def fetchval(self, query: str, *arguments: Any, **options: Any) -> Any:
        return await (await self).fetchval(query, *arguments, **options)

    async def copy_records_to_table(self, table: str, **options: Any) -> Any:
        return await (await self).copy_records_to_table(table, **options)

    @asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[Any]:
        """A savepoint: an error that leaves the block undoes the block alone."""
        async with (await self).transaction(**options) as inner:
            yield inner

    def cursor(self, query: str, *arguments: Any, **options: Any) -> TaskCursor:
        return TaskCursor(self, query, arguments, options)

    def is_in_transaction(self) -> bool:
        return True

    def __await__(self) -> Generator[Any, None, Any]:
        return self._real().__await__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._begun is None:
            raise AttributeError(f"ctx.connection has no {name!r} before its first statement: begin with `await ctx.connection`")
        return getattr(self._begun.connection, name)

    async def close(self) -> Transaction | None:
        """The attempt is over: no more statements. The transaction, if there is one, for whoever ends it."""
        async with self._door:
            self._closed = True
            return self._begun

    async def _real(self) -> Any:
        if self._closed:
            raise Fenced(OVER)
        if self._begun is None:
            async with self._door:
                if self._begun is None and not self._closed:
                    self._begun = await self._begin()
            return await self._real()
        return self._begun.connection


class TaskCursor:
    """Iterate it, or await it for the driver's own cursor."""

    def __init__(self, connection: TaskConnection, query: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._connection = connection
        self._call = (query, arguments, options)

    async def __aiter__(self) -> AsyncIterator[Any]:
        query, arguments, options = self._call
        async for row in (await self._connection).cursor(query, *arguments, **options):
            yield row

    def __await__(self) -> Generator[Any, None, Any]:
        return self._open().__await__()

    async def _open(self) -> Any:
        query, arguments, options = self._call
        return await (await self._connection).cursor(query, *arguments, **options)


class Context:
    """What a running attempt knows of itself and can have written down. Values are made when asked for: most tasks ask for few."""

    __slots__ = ("_checkpoint", "_connection", "_desk", "_job", "over", "stop_requested", "used")

    def __init__(self, job: Claimed, desk: Desk) -> None:
        self._job = job
        self._desk = desk
        self._checkpoint = job.checkpoint
        self._connection: TaskConnection | None = None
        self.used = False  # something was written down, or a connection handed out: the end has more to do
        self.over = False  # the attempt has ended: whatever of it still runs can write nothing down and begin no transaction
        self.stop_requested = False  # timed out, cancelled or shutting down: a function in a thread should look at it now and then

    @property
    def job_id(self) -> UUID:
        return self._job.id

    @property
    def schedule(self) -> str | None:
        """Name of the schedule this is a fire of; None for a one-off."""
        return self._job.schedule

    @property
    def fire_time(self) -> datetime:
        """The instant that was asked for; the same on every attempt."""
        return to_datetime(self._job.fire_time)

    @property
    def attempt(self) -> int:
        """Rises with every attempt of this job, and only rises: a fencing token for storage that can compare it."""
        return self._job.attempt

    @property
    def failures(self) -> int:
        """Attempts of this job that failed so far."""
        return self._job.failures

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt: let the other side use it to drop repeats."""
        return str(self._job.id)

    @property
    def payload(self) -> Any:
        return decode(self._job.payload)

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def job(self) -> Claimed:
        """The job as the worker has it, for handlers and middleware."""
        return self._job

    @property
    def log(self) -> LoggerAdapter[Any]:
        """A logger whose records carry job id, target, attempt and schedule."""
        job = self._job
        return LoggerAdapter(_logger, {"job_id": str(job.id), "target": job.target, "attempt": job.attempt, "schedule": job.schedule})

    # -- written down -------------------------------------------------------------------------------------------------
    @property
    def last_checkpoint(self) -> Any:
        """What `checkpoint` saved last, in this attempt or an earlier one; None before the first."""
        return None if self._checkpoint is None else decode(self._checkpoint)

    def checkpoint(self, value: Any) -> Coroutine[Any, Any, None]:
        """Keep this for the next attempt, should this one not come to its end. Durable when it returns."""
        return _awaited(self.save_checkpoint(value), "checkpoint")

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> Coroutine[Any, Any, None]:
        """How far this is, for whoever looks. Call it as often as you like: it is written a few times a second."""
        return _awaited(self.save_progress(done, total, note), "progress")

    def once(self, key: str) -> Coroutine[Any, Any, bool]:
        """True for the first call with this key in all attempts of this job: do what must not be done twice only then. Should the
        worker die right after, it is not done at all."""
        return _awaited(self.take_mark(key), "once")

    async def save_checkpoint(self, value: Any) -> None:
        data = encode_payload(value, "checkpoint")
        self._refuse_when_over()
        self._refuse_within_transaction("a checkpoint would outlive writes that are undone")
        self.used = True
        await self._desk.save(Note(self._job.id, self._job.attempt, data, None))
        self._checkpoint = data

    async def save_progress(self, done: float, total: float | None, note: str | None) -> None:
        data = encode_payload({"done": done, "total": total, "note": note}, "progress")
        self._refuse_when_over()
        self.used = True
        await self._desk.save(Note(self._job.id, self._job.attempt, None, data))

    async def take_mark(self, key: str) -> bool:
        if not isinstance(key, str) or not key.isprintable() or not 1 <= len(key) <= LONGEST_MARK:
            raise InvalidInput("key", f"must be 1 to {LONGEST_MARK} printable characters")
        self._refuse_when_over()
        self._refuse_within_transaction("a mark would outlive writes that are undone")
        return await self._desk.mark(self._job.id, self._job.attempt, key)

    @property
    def connection(self) -> TaskConnection:
        """A connection to the store's database whose writes are committed together with this job's success, or not at all."""
        if self._connection is None:
            self._refuse_when_over()
            self._connection = TaskConnection(self._desk.transact)
            self.used = True
        return self._connection

    @property
    def sync(self) -> SyncContext:
        """The same calls for plain functions, which run in threads: each blocks until the node's event loop has done it."""
        return SyncContext(self, self._desk.loop)

    async def close(self) -> Transaction | None:
        """The attempt is over: nothing more can be begun. The transaction, if there is one, for whoever ends it."""
        return None if self._connection is None else await self._connection.close()

    def _refuse_when_over(self) -> None:
        """The desk has closed its books on this attempt: what came now would stay there."""
        if self.over:
            raise Fenced(OVER)

    def _refuse_within_transaction(self, reason: str) -> None:
        if self._connection is not None and self._connection.begun:
            raise Conflict(f"ctx.connection has an open transaction, and {reason}: call it before the first statement")


class SyncConnection:
    def __init__(self, connection: TaskConnection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop

    def execute(self, query: str, *arguments: Any, **options: Any) -> Any:
        return _blocking(self._connection.execute(query, *arguments, **options), self._loop)

    def executemany(self, query: str, arguments: Any, **options: Any) -> Any:
        return _blocking(self._connection.executemany(query, arguments, **options), self._loop)

    def fetch(self, query: str, *arguments: Any, **options: Any) -> Any:
        return _blocking(self._connection.fetch(query, *arguments, **options), self._loop)

    def fetchrow(self, query: str, *arguments: Any, **options: Any) -> Any:
        return _blocking(self._connection.fetchrow(query, *arguments, **options), self._loop)

    def fetchval(self, query: str, *arguments: Any, **options: Any) -> Any:
        return _blocking(self._connection.fetchval(query, *arguments, **options), self._loop)

    def copy_records_to_table(self, table: str, **options: Any) -> Any:
        return _blocking(self._connection.copy_records_to_table(table, **options), self._loop)

    @contextmanager
    def transaction(self, **options: Any) -> Iterator[None]:
        """A savepoint: an error that leaves the block undoes the block alone."""
        block = self._connection.transaction(**options)
        _blocking(block.__aenter__(), self._loop)
        try:
            yield
        except BaseException as problem:
            if not _blocking(block.__aexit__(type(problem), problem, problem.__traceback__), self._loop):
                raise
        else:
            _blocking(block.__aexit__(None, None, None), self._loop)


class SyncContext:
    """The awaitable calls of a context, blocking. For threads only: the event loop must stay free to carry them out."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop

    def checkpoint(self, value: Any) -> None:
        _blocking(self._context.save_checkpoint(value), self._loop)

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        _blocking(self._context.save_progress(done, total, note), self._loop)

    def once(self, key: str) -> bool:
        return _blocking(self._context.take_mark(key), self._loop)

    @property
    def connection(self) -> SyncConnection:
        return SyncConnection(self._context.connection, self._loop)


def _awaited(call: Coroutine[Any, Any, Answer], name: str) -> Coroutine[Any, Any, Answer]:
    """The call, for an event loop. In a plain function nobody would await it, and nothing would happen: say so."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        call.close()
        raise Conflict(f"ctx.{name}() is to be awaited, and a plain function cannot: write ctx.sync.{name}()") from None
    return call


def _blocking(call: Coroutine[Any, Any, Answer], loop: asyncio.AbstractEventLoop) -> Answer:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run_coroutine_threadsafe(call, loop).result()
    call.close()
    raise Conflict("ctx.sync blocks, and this is an event loop: await the same call of ctx itself")


class Handler(Protocol):
    """Runs every job of one target on this node."""

    policies: Policies
    limit: Limit | None  # how many jobs of one gate may run at once and start in a period

    def invoke(self, context: Context, payload: bytes) -> Awaitable[Any]:
        """One attempt. What it returns must be JSON or a verdict; what it raises is a failure of the attempt, or a verdict, too.
        A payload it cannot read is InvalidPayload: that job is dead at once, kept for repair."""
        ...
