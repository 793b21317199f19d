"""The child processes of one isolated task: each runs one attempt and ends. One spare may wait, already
started, for the next."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from duetime.errors import DuetimeError, ProcessDied
from duetime.invoker import Context
from duetime.invokers.isolation import Isolation, origin_of, preparations
from duetime.invokers.process import ChildGone, ChildProcess
from duetime.invokers.protocol import Message, read_directive, read_error
from duetime.invokers.resources import ResourceBox
from duetime.model.codec import decode, encode
from duetime.model.output import Stream

SPARE_TIMEOUT = 60.0  # seconds an unused spare is kept
REPLY_TIMEOUT = 1.0  # seconds for the last messages of a process that has ended


class ChildProcesses:
    """There is a spare only with a resource box, because closing the box ends the spare."""

    def __init__(
        self,
        function: Callable[..., Any],
        task: str,
        isolation: Isolation,
        resources: ResourceBox | None,
        store_result: bool = True,
    ) -> None:
        self._origin = origin_of(function, task)
        self._task = task
        self._store_result = store_result
        self._memory = isolation.memory_bytes
        self._keeps_spare = isolation.spare and resources is not None
        self._spare: ChildProcess | None = None
        self._starting = False
        self._expiry: asyncio.TimerHandle | None = None
        self._background: set[asyncio.Task[None]] = set()
        if resources is not None:
            resources.at_close(self.close)

    async def run(self, context: Context, payload: bytes) -> Any:
        """Run one attempt. When cancelled, this stops the process and kills everything it has started."""
        child = self._take_spare() or await self._started()
        child.print_to(context)
        try:
            return await self._result(child, context, payload)
        except asyncio.CancelledError:
            context.stop_requested = True
            await child.stop()
            raise
        finally:
            self._in_background(self._refill())
            await asyncio.shield(self._end(child))  # a second cancellation must not leave it half done

    async def close(self) -> None:
        self._keeps_spare = False
        self._end_spare()
        while self._background:
            await asyncio.wait(self._background)

    async def _start(self) -> ChildProcess:
        return await ChildProcess.start(
            {
                "kind": "orders", "module": self._origin.module, "name": self._origin.name,
                "script": self._origin.script,
                "task": self._task, "memory": self._memory, "path": sys.path, "argv": sys.argv,
                "before": preparations, "store_result": self._store_result,
                "level": logging.getLogger().getEffectiveLevel(),
            }
        )  # fmt: skip

    async def _started(self) -> ChildProcess:
        starting = asyncio.ensure_future(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._in_background(_abandon(starting))
            raise

    async def _result(self, child: ChildProcess, context: Context, payload: bytes) -> Any:
        talk = asyncio.ensure_future(_converse(child, context, payload))
        try:
            await asyncio.wait({talk, child.exited}, return_when=asyncio.FIRST_COMPLETED)
            if not talk.done():
                child.kill()  # a process it has started may keep its end of the pipe open
                await asyncio.wait({talk}, timeout=REPLY_TIMEOUT)
            if talk.done() and not isinstance(talk.exception(), ChildGone):
                return talk.result()
        finally:
            talk.cancel()
        await child.exited
        raise ProcessDied(child.outcome())

    def _take_spare(self) -> ChildProcess | None:
        child, self._spare = self._spare, None
        if self._expiry is not None:
            self._expiry.cancel()
        if child is not None and child.exited.done():
            self._end(child)
            return None
        return child

    async def _refill(self) -> None:
        if self._keeps_spare and self._spare is None and not self._starting:
            self._starting = True
            try:
                self._spare = await self._start()
            finally:
                self._starting = False
            self._expiry = asyncio.get_running_loop().call_later(SPARE_TIMEOUT, self._end_spare)
            if not self._keeps_spare:  # closed during the start
                self._end_spare()

    def _end_spare(self) -> None:
        child = self._take_spare()
        if child is not None:
            child.kill()
            self._end(child)

    def _end(self, child: ChildProcess) -> asyncio.Task[None]:
        return self._in_background(child.end())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


async def _abandon(starting: asyncio.Future[ChildProcess]) -> None:
    child = await starting
    child.kill()
    await child.end()


async def _converse(child: ChildProcess, context: Context, payload: bytes) -> Any:
    """The task's result, or the error the task raised. Raises ChildGone when the child closes the
    pipe first."""
    child.send({"kind": "job", "job": encode(context.job._replace(payload=payload)).decode()})
    while True:
        message = await child.receive()
        match message["kind"]:
            case "call":
                child.send({"kind": "reply", "number": message["number"], **await _reply(context, message)})
            case "log":
                logger = logging.getLogger(message["logger"])
                text, level = message["text"], message["level"]
                child.log_line(logger, level, text, Stream.LOG, extra=context.log.extra)
            case "output":
                child.keep_lines(message["lines"], message["left_out"])
            case "result":
                if message["unstored"] is not None:
                    context.lose_result(message["unstored"])
                return message["value"]
            case "directive":
                raise read_directive(message)
            case _:
                raise read_error(message)


async def _reply(context: Context, message: Message) -> Message:
    """Goes through the worker's own context, which knows what to do at the end of the attempt."""
    try:
        match message["verb"]:
            case "checkpoint":
                await context.checkpoint(decode(message["value"]))
                return {"value": None}
            case "progress":
                await context.progress(**decode(message["value"]))
                return {"value": None}
            case verb:
                assert verb == "once"
                return {"value": await context.once(message["value"])}
    except DuetimeError as problem:
        return {"error": type(problem).__name__, "text": problem.message}
