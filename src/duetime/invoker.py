"""The invoker contract: the handler that runs a job's target, the context of an attempt, and the writer of
its checkpoints and progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from duetime.errors import Conflict, Fenced, InvalidInput, StoreUnavailable
from duetime.model.codec import decode, encode_payload
from duetime.model.instant import Micros, to_datetime
from duetime.model.job import Claimed, Delivery
from duetime.model.limit import Limit
from duetime.model.output import Stream
from duetime.model.retry import Retry
from duetime.model.settle import HandOver
from duetime.store import AttemptUpdate, TaskTransaction
from duetime.task_log import TaskLog

MAX_ONCE_KEY = 512
REPORT_TIMEOUT = "1h"  # for jobs without their own timeout
ATTEMPT_IS_OVER = (
    "this attempt has ended and can write nothing more: await everything you start before the task returns"
)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Policies:
    """The timeout of an attempt and what follows from its failure. A job's own policies replace those of its
    target."""

    retry: Retry = field(default_factory=Retry)
    timeout: Micros | None = None
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    expires: str | None = None  # as `model.expiry` reads it; only jobs have it


class OutputSink(Protocol):
    """Takes the output of one attempt, from any thread."""

    def add(self, stream: Stream, level: int, text: str, logged: bool, age: Micros = 0) -> None:
        """A line that was printed so long ago."""
        ...

    def leave_out(self, lines: int) -> None:
        """So many lines came too quickly and were dropped."""
        ...


class AttemptWriter(Protocol):
    """Writes checkpoints, progress, once-marks and output of running attempts. One writer serves all attempts
    of a node."""

    loop: asyncio.AbstractEventLoop  # the loop it runs on; other threads pass their calls to it

    async def save(self, note: AttemptUpdate) -> None:
        """A checkpoint is durable when this returns; progress alone may be written a little later. Raises
        Fenced when the job no longer runs under this attempt number."""
        ...

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        """True for the one call that takes the once-mark. Raises Fenced as `save` does."""
        ...

    async def transact(self) -> TaskTransaction: ...

    def open_output(self, job: Claimed) -> OutputSink | None:
        """None: the output of this target is not kept."""
        ...


def _verb(name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A method of the driver's connection, which begins the transaction if necessary."""

    def verb(self: TaskConnection, *arguments: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        return _awaited(self.perform(name, *arguments, **options), f"connection.{name}")

    return verb


class TaskConnection:
    """A connection to the store's own database. Its writes are committed together with the job's success, or
    not at all.

    The transaction begins with the first statement. The verbs are those of asyncpg. `await connection` gives
    the driver's own object; its other attributes are available here, too, once the transaction has begun.
    Never commit or roll back the transaction yourself.
    """

    __slots__ = ("_begin", "_begun", "_closed", "_lock")

    def __init__(self, begin: Callable[[], Awaitable[TaskTransaction]]) -> None:
        self._begin = begin
        self._begun: TaskTransaction | None = None
        self._closed = False
        self._lock = asyncio.Lock()

    @property
    def begun(self) -> bool:
        return self._begun is not None

    execute, executemany, fetch = _verb("execute"), _verb("executemany"), _verb("fetch")
    fetchrow, fetchval, copy_records_to_table = (
        _verb("fetchrow"),
        _verb("fetchval"),
        _verb("copy_records_to_table"),
    )

    async def perform(self, verb: str, *arguments: Any, **options: Any) -> Any:
        return await getattr(await self, verb)(*arguments, **options)

    @asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[Any]:
        """A savepoint: an error that leaves the block undoes only the block."""
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
            raise AttributeError(
                f"ctx.connection has no {name!r} before its first statement: first `await ctx.connection`"
            )
        return getattr(self._begun.connection, name)

    async def close(self) -> TaskTransaction | None:
        """Allow no more statements. Returns the transaction, if there is one, for the caller to end."""
        async with self._lock:
            self._closed = True
            return self._begun

    async def _real(self) -> Any:
        if self._closed:
            raise Fenced(ATTEMPT_IS_OVER)
        if self._begun is None:
            async with self._lock:
                if self._begun is None and not self._closed:
                    self._begun = await self._begin()
            return await self._real()
        return self._begun.connection


class TaskCursor:
    """Iterate over it, or await it to get the driver's own cursor."""

    def __init__(
        self, connection: TaskConnection, query: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
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
    """What a running attempt knows about itself, and what it can write. Values are made on demand, because
    most tasks use few of them."""

    __slots__ = (
        "_checkpoint", "_connection", "_job", "_output", "_writer", "over", "stop_requested",
        "store_away", "unstored", "used",
    )  # fmt: skip

    def __init__(self, job: Claimed, writer: AttemptWriter) -> None:
        self._job = job
        self._writer = writer
        self._checkpoint = job.checkpoint
        self._connection: TaskConnection | None = None
        self._output: OutputSink | None = None
        # something was written, or a connection was used: the end of the attempt has more to do
        self.used = False
        self.unstored: str | None = None  # why the result of the attempt cannot be stored
        self.store_away = False  # the last call could not reach the store
        self.over = False  # the attempt has ended: code of it that still runs can write nothing more
        # timed out, cancelled or shutting down: a function in a thread should check it regularly
        self.stop_requested = False

    @property
    def job_id(self) -> UUID:
        return self._job.id

    @property
    def schedule(self) -> str | None:
        """The name of the schedule that fired this job; None for a one-off job."""
        return self._job.schedule

    @property
    def fire_time(self) -> datetime:
        """The instant the job was scheduled for; the same on every attempt."""
        return to_datetime(self._job.fire_time)

    @property
    def attempt(self) -> int:
        """Increases with every attempt of this job: a fencing token for storage that can compare it."""
        return self._job.attempt

    @property
    def failures(self) -> int:
        """The number of attempts of this job that have failed so far."""
        return self._job.failures

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt, so that a receiver can detect repeats."""
        return str(self._job.id)

    @property
    def payload(self) -> Any:
        return decode(self._job.payload)

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def job(self) -> Claimed:
        """The job as the worker sees it, for handlers and middleware."""
        return self._job

    @property
    def log(self) -> TaskLog:
        """A logger whose records carry job id, target, attempt and schedule, and are kept as the output of
        this attempt. It can be called, too: `ctx.log("text", name=value)`."""
        job = self._job
        return TaskLog(
            {"job_id": str(job.id), "target": job.target, "attempt": job.attempt, "schedule": job.schedule},
            self.keep_line,
        )

    def keep_line(self, stream: Stream, level: int, text: str, logged: bool) -> None:
        """Keep a line as output. Code of an attempt that has ended keeps nothing more."""
        output = self.output
        if output is not None:
            output.add(stream, level, text, logged)

    def lose_result(self, reason: str) -> None:
        """What the task returned cannot be stored: the attempt succeeds without a result, and says so."""
        self.unstored = f"succeeded without a result: {reason.removeprefix('result: ')}"
        self.used = True
        self.log.warning("%s", self.unstored)

    @property
    def output(self) -> OutputSink | None:
        if self._output is None and not self.over:
            self._output = self._writer.open_output(self._job)
            self.used = True
        return None if self.over else self._output

    @property
    def last_checkpoint(self) -> Any:
        """The last value `checkpoint` saved, in this attempt or an earlier one; None before the first."""
        return None if self._checkpoint is None else decode(self._checkpoint)

    def checkpoint(self, value: Any) -> Coroutine[Any, Any, None]:
        """Save this value for the next attempt, in case this one does not finish. Durable when it returns."""
        return _awaited(self.save_checkpoint(value), "checkpoint")

    def progress(
        self, done: float, total: float | None = None, note: str | None = None
    ) -> Coroutine[Any, Any, None]:
        """Report progress. Call it as often as you like: it is written a few times a second."""
        return _awaited(self.save_progress(done, total, note), "progress")

    def once(self, key: str) -> Coroutine[Any, Any, bool]:
        """True for the first call with this key in all attempts of this job. Do only then what must not be
        done twice. If the worker dies right after the call, it is not done at all."""
        return _awaited(self.take_once(key), "once")

    async def save_checkpoint(self, value: Any) -> None:
        data = encode_payload(value, "checkpoint")
        self._refuse_when_over()
        self._refuse_within_transaction("a checkpoint would survive a rollback")
        self.used = True
        await self._ask(self._writer.save(AttemptUpdate(self._job.id, self._job.attempt, data, None)))
        self._checkpoint = data

    async def save_progress(self, done: float, total: float | None, note: str | None) -> None:
        data = encode_payload({"done": done, "total": total, "note": note}, "progress")
        self._refuse_when_over()
        self.used = True
        await self._writer.save(AttemptUpdate(self._job.id, self._job.attempt, None, data))

    async def take_once(self, key: str) -> bool:
        if not isinstance(key, str) or not key.isprintable() or not 1 <= len(key) <= MAX_ONCE_KEY:
            raise InvalidInput("key", f"must be 1 to {MAX_ONCE_KEY} printable characters")
        self._refuse_when_over()
        self._refuse_within_transaction("a once-mark would survive a rollback")
        return await self._ask(self._writer.mark(self._job.id, self._job.attempt, key))

    @property
    def connection(self) -> TaskConnection:
        """A connection to the store's database whose writes are committed together with this job's success,
        or not at all."""
        if self._connection is None:
            self._refuse_when_over()
            self._connection = TaskConnection(lambda: self._ask(self._writer.transact()))
            self.used = True
        return self._connection

    @property
    def sync(self) -> SyncContext:
        """The same calls for plain functions, which run in threads. Each blocks until the node's event loop
        has done it."""
        return SyncContext(self, self._writer.loop)

    async def close(self) -> TaskTransaction | None:
        """Allow no more statements. Returns the transaction, if there is one, for the caller to end."""
        return None if self._connection is None else await self._connection.close()

    async def _ask(self, call: Awaitable[Result]) -> Result:
        self.store_away = False
        try:
            return await call
        except StoreUnavailable:
            self.store_away = True
            raise

    def _refuse_when_over(self) -> None:
        if self.over:
            raise Fenced(ATTEMPT_IS_OVER)

    def _refuse_within_transaction(self, reason: str) -> None:
        if self._connection is not None and self._connection.begun:
            raise Conflict(
                f"ctx.connection has an open transaction, and {reason}: call it before the first statement"
            )


def _blocking_verb(name: str) -> Callable[..., Any]:
    def verb(self: SyncConnection, *arguments: Any, **options: Any) -> Any:
        return _blocking(self._connection.perform(name, *arguments, **options), self._loop)

    return verb


class SyncConnection:
    """The verbs of a TaskConnection, blocking."""

    def __init__(self, connection: TaskConnection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop

    execute, executemany, fetch = (
        _blocking_verb("execute"),
        _blocking_verb("executemany"),
        _blocking_verb("fetch"),
    )
    fetchrow, fetchval = _blocking_verb("fetchrow"), _blocking_verb("fetchval")
    copy_records_to_table = _blocking_verb("copy_records_to_table")

    @contextmanager
    def transaction(self, **options: Any) -> Iterator[None]:
        """A savepoint: an error that leaves the block undoes only the block."""
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
    """The awaitable calls of a context, blocking. For threads only: the event loop must be free to run
    them."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop

    def checkpoint(self, value: Any) -> None:
        _blocking(self._context.save_checkpoint(value), self._loop)

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        _blocking(self._context.save_progress(done, total, note), self._loop)

    def once(self, key: str) -> bool:
        return _blocking(self._context.take_once(key), self._loop)

    @property
    def connection(self) -> SyncConnection:
        return SyncConnection(self._context.connection, self._loop)


def _awaited(call: Coroutine[Any, Any, Result], name: str) -> Coroutine[Any, Any, Result]:
    """The call itself on an event loop. A plain function cannot await it, so the call fails there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        call.close()
        raise Conflict(
            f"ctx.{name}() must be awaited, and a plain function cannot await: write ctx.sync.{name}()"
        ) from None
    return call


def _blocking(call: Coroutine[Any, Any, Result], loop: asyncio.AbstractEventLoop) -> Result:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run_coroutine_threadsafe(call, loop).result()
    call.close()
    raise Conflict("ctx.sync would block the event loop: await the same call of ctx itself")


def await_report(job: Claimed) -> HandOver:
    """The attempt goes on elsewhere, for as long as the job's own timeout allows."""
    own = None if job.policies is None else decode(job.policies).get("timeout")
    return HandOver(own or REPORT_TIMEOUT)


class DirectCall(NamedTuple):
    """All that `invoke` of a handler does for a job without policies of its own: `function(context, **read(
    payload))`, or without the context. Who stands between them can do it with one call less."""

    function: Callable[..., Awaitable[Any]]
    with_context: bool
    read: Callable[[bytes], dict[str, Any]]


class Handler(Protocol):
    """Runs every job of one target on this node."""

    policies: Policies
    limit: Limit | None  # how many jobs of one limit key may run at the same time and start in a period

    def invoke(self, context: Context, payload: bytes) -> Awaitable[Any]:
        """One attempt. It returns JSON or a directive, or raises a directive. Any other error is a failure of
        the attempt. InvalidPayload means that the payload cannot be read: the job becomes a dead letter
        immediately."""
        ...
