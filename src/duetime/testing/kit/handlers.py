"""What stands between the engine and the user's task in a test: accidents, what was raised, and a context for plain functions."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any
from uuid import UUID

from duetime.errors import Fenced
from duetime.invoker import Context, Handler
from duetime.store import MarkReply, Note, Transaction
from duetime.testing.kit.plain import Suspended, in_one_step, inside_of
from duetime.testing.simulation.loop import Killed, current_process

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from duetime.testing.kit.recorder import RecordingStore
    from duetime.testing.kit.stage import Stage


class Watched:
    """A handler whose calls are counted and can come to grief."""

    def __init__(self, name: str, handler: Handler, stage: Stage) -> None:
        self._name = name
        self._handler = _at_home(handler)
        self._stage = stage
        self._plain = not inspect.iscoroutinefunction(stage.app.tasks[name].function)
        self.policies = handler.policies
        self.limit = handler.limit

    async def invoke(self, context: Context, payload: bytes) -> Any:
        attempts, me = self._stage.takeover.processes.attempts, asyncio.current_task()
        assert me is not None
        point = self._stage.accidents.reach("call", self._name)
        self._stage.problems.pop(context.job_id, None)
        attempts.add(me)
        try:
            await point.before()
            result = await self._handler.invoke(self._fitting(context), payload)
            await point.after()
            return result
        except BaseException as problem:
            self._stage.problems[context.job_id] = problem
            raise
        finally:
            attempts.discard(me)

    def _fitting(self, context: Context) -> Context:
        return PlainContext(context, self._stage.store) if self._plain else context


def _at_home(handler: Any) -> Any:
    """A task that has a process of its own in production runs in the test's, where it can be seen and stopped."""
    if getattr(handler, "_children", None) is not None:
        handler._children = None
        handler.invoke = handler._choose()
    return handler


class PlainContext(Context):
    """For plain functions, which run on the loop's own thread here: what blocks a thread is carried out on the spot."""

    def __init__(self, context: Context, store: RecordingStore) -> None:
        super().__init__(context.job, DirectDesk(store))

    @property
    def sync(self) -> Any:
        return OnTheSpot(self)


class OnTheSpot:
    """The face of `ctx.sync`."""

    def __init__(self, context: PlainContext) -> None:
        self._context = context

    def checkpoint(self, value: Any) -> None:
        self._carry_out(self._context.save_checkpoint(value))

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        self._carry_out(self._context.save_progress(done, total, note))

    def once(self, key: str) -> bool:
        return bool(self._carry_out(self._context.take_mark(key)))

    @property
    def connection(self) -> Any:
        self._carry_out(self._context._desk.transact())
        raise AssertionError("the memory store refuses transactions")

    def _carry_out(self, call: Coroutine[Any, Any, Any]) -> Any:
        with inside_of(self._context._desk.loop):
            try:
                return in_one_step(call)
            except Suspended:
                process = current_process()
                if process is not None and process.dead:
                    # A plain function cannot be left standing where it is: this takes it down.
                    raise Killed from None
                raise


class DirectDesk:
    """Has it written at once. The memory store keeps nobody waiting, so that no groups are needed."""

    def __init__(self, store: RecordingStore) -> None:
        self._store = store
        self._calls = 0
        self.loop = asyncio.get_running_loop()

    async def save(self, note: Note) -> None:
        if await self._store.save([note]):
            raise _late(note.id, note.attempt)

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        self._calls += 1
        reply = await self._store.mark(job_id, attempt, key, UUID(int=attempt << 64 | self._calls))
        if reply is MarkReply.REFUSED:
            raise _late(job_id, attempt)
        return reply is MarkReply.TAKEN

    async def transact(self) -> Transaction:
        return await self._store.transact()


def _late(job_id: UUID, attempt: int) -> Fenced:
    return Fenced(f"job {job_id} does not run under attempt {attempt} any more")
