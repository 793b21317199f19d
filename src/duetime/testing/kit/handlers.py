"""Stands between the engine and the user's task in a test: injects faults, keeps exceptions, and serves sync
functions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol
from uuid import UUID

from duetime.errors import Fenced
from duetime.invoker import Context, Handler, OutputSink
from duetime.model.job import Claimed
from duetime.store import AttemptUpdate, OnceReply, TaskTransaction
from duetime.testing.kit.faults import FaultPlan
from duetime.testing.kit.recording_store import RecordingStore
from duetime.testing.kit.sync_bridge import inside_loop
from duetime.testing.one_step import WouldWait, run_in_one_step
from duetime.testing.processes import Killed, current_process


class AttemptMonitor(Protocol):
    """The part of a test session that handlers use."""

    @property
    def attempts(self) -> set[asyncio.Task[Any]]:
        """The asyncio tasks in which attempts run at present."""
        ...

    @property
    def faults(self) -> FaultPlan: ...

    @property
    def store(self) -> RecordingStore: ...

    @property
    def problems(self) -> dict[UUID, BaseException]:
        """The exception of each job's last attempt."""
        ...


class MonitoredHandler:
    """Reports each call of a handler to the session, and injects the faults planned for it."""

    def __init__(self, name: str, handler: Handler, is_sync: bool, monitor: AttemptMonitor) -> None:
        self._name = name
        self._handler = _in_this_process(handler)
        self._is_sync = is_sync
        self._monitor = monitor
        self.policies = handler.policies
        self.limit = handler.limit
        self.keeps_output = getattr(handler, "keeps_output", True)

    async def invoke(self, context: Context, payload: bytes) -> Any:
        monitor, attempt = self._monitor, asyncio.current_task()
        assert attempt is not None
        point = monitor.faults.reach("call", self._name)
        monitor.problems.pop(context.job_id, None)
        monitor.attempts.add(attempt)
        try:
            await point.before()
            result = await self._handler.invoke(
                InlineContext(context, monitor.store) if self._is_sync else context, payload
            )
            await point.after()
            return result
        except BaseException as problem:
            monitor.problems[context.job_id] = problem
            raise
        finally:
            monitor.attempts.discard(attempt)


def _in_this_process(handler: Any) -> Any:
    """A task with a process of its own in production runs in the test's process, where the test can watch and
    stop it."""
    if getattr(handler, "_children", None) is not None:
        handler._children = None
        handler.invoke = handler._choose()
    return handler


class InlineContext(Context):
    """For sync functions, which run on the loop's own thread here: each write is done immediately."""

    def __init__(self, context: Context, store: RecordingStore) -> None:
        self._inline_writer = InlineWriter(store, context)
        super().__init__(context.job, self._inline_writer)

    @property
    def sync(self) -> Any:
        return InlineSyncContext(self, self._inline_writer)


class InlineSyncContext:
    """The `ctx.sync` of such a function."""

    def __init__(self, context: InlineContext, writer: InlineWriter) -> None:
        self._context = context
        self._writer = writer

    def checkpoint(self, value: Any) -> None:
        self._run(self._context.save_checkpoint(value))

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        self._run(self._context.save_progress(done, total, note))

    def once(self, key: str) -> bool:
        return bool(self._run(self._context.take_once(key)))

    @property
    def connection(self) -> Any:
        self._run(self._writer.transact())
        raise AssertionError("the memory store refuses transactions")

    def _run(self, call: Coroutine[Any, Any, Any]) -> Any:
        with inside_loop(self._writer.loop):
            try:
                return run_in_one_step(call)
            except WouldWait:
                process = current_process()
                if process is not None and process.dead:
                    # A sync function cannot be suspended: this exception ends it.
                    raise Killed from None
                raise


class InlineWriter:
    """Writes immediately. The memory store answers without waiting, so batches are not needed."""

    def __init__(self, store: RecordingStore, context: Context) -> None:
        self._store = store
        self._context = context
        self._calls = 0
        self.loop = asyncio.get_running_loop()

    async def save(self, update: AttemptUpdate) -> None:
        if await self._store.save_progress([update]):
            raise _fenced(update.id, update.attempt)

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        self._calls += 1
        reply = await self._store.take_once(job_id, attempt, key, UUID(int=attempt << 64 | self._calls))
        if reply is OnceReply.REFUSED:
            raise _fenced(job_id, attempt)
        return reply is OnceReply.TAKEN

    async def transact(self) -> TaskTransaction:
        return await self._store.begin_transaction()

    def open_output(self, job: Claimed) -> OutputSink | None:
        return self._context.output


def _fenced(job_id: UUID, attempt: int) -> Fenced:
    return Fenced(f"job {job_id} no longer runs under attempt {attempt}")
