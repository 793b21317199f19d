"""One child process: it runs in its own session, ends when this process ends, and is killed with everything
it has started."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from typing import IO, Any, cast

from duetime.invokers.protocol import HEADER_BYTES, Message, body_length, pack, unpack

STOP_TIMEOUT = 0.25  # seconds between asking and SIGTERM
TERMINATE_TIMEOUT = 0.4  # seconds between SIGTERM and SIGKILL
EXIT_TIMEOUT = 1.0  # seconds for a process to end by itself once its task is done
KILL_TIMEOUT = 5.0  # seconds for the kernel to end a killed process
OUTPUT_TIMEOUT = 0.3  # seconds for its last output to arrive
MAX_OUTPUT_LINE = 8_000
_logger = logging.getLogger("duetime.task")


class ChildProcess:
    """Messages go both ways until `exited`. The owner must await `end` in every case."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        lifeline: int,
        pipe: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        loop = asyncio.get_running_loop()
        self._process = process
        _lifelines.add(lifeline)
        self._lifeline = (
            lifeline  # the kernel kills the child's group when this end closes, however this process ends
        )
        self._reader, self._writer = pipe
        self._status = 0  # as in a shell, but negative for a signal
        self._outputs: list[OutputLines] = []
        self.log: Any = _logger  # where its output goes
        self.exited: asyncio.Future[None] = loop.create_future()
        threading.Thread(
            target=self._watch, args=(loop,), name=f"duetime-child-{process.pid}", daemon=True
        ).start()

    @staticmethod
    async def start(orders: Message) -> ChildProcess:
        ours, theirs = socket.socketpair()
        their_lifeline, our_lifeline = os.pipe()
        with ExitStack() as undo:
            undo.callback(os.close, our_lifeline)
            undo.callback(ours.close)
            try:
                process = _spawn(theirs.fileno(), their_lifeline)
            finally:
                theirs.close()
                os.close(their_lifeline)
            undo.enter_context(process)  # closes its pipes and waits for its end
            undo.callback(os.killpg, process.pid, signal.SIGKILL)
            child = ChildProcess(process, our_lifeline, await asyncio.open_connection(sock=ours))
            undo.pop_all()
        try:
            child.send(orders)
            await child._forward(process.stdout, logging.INFO)
            await child._forward(process.stderr, logging.WARNING)
        except BaseException:  # too many open files, for example: leaving some open would make it worse
            child.kill()
            await child.end()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: Message) -> None:
        self._writer.write(pack(message))

    async def receive(self) -> Message:
        """The next message. Raises EOFError when the child has closed the pipe."""
        try:
            header = await self._reader.readexactly(HEADER_BYTES)
            return unpack(await self._reader.readexactly(body_length(header)))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise EOFError from None

    async def stop(self) -> None:
        """Ask the child to stop, then send SIGTERM, then kill it. Takes less time than a worker waits for
        interrupted tasks at shutdown."""
        self.send({"kind": "stop"})
        if not await self._exits(STOP_TIMEOUT):
            self._signal(signal.SIGTERM)
            await self._exits(TERMINATE_TIMEOUT)
        self.kill()

    def kill(self) -> None:
        """Kill the process and everything it has started, except processes that left its group on purpose."""
        self._signal(signal.SIGKILL)

    async def end(self) -> None:
        """Make sure that nothing of it is left."""
        await self._exits(EXIT_TIMEOUT)
        self.kill()
        if not await self._exits(KILL_TIMEOUT):
            _logger.error("child process %d cannot be killed", self.pid)
        if self._outputs:
            await asyncio.wait([output.ended for output in self._outputs], timeout=OUTPUT_TIMEOUT)
        self._release()

    def outcome(self) -> str:
        """How it ended, in words. Valid once it has exited."""
        if self._status >= 0:
            return f"the process ended with status {self._status} before the task was done"
        hint = ": out of memory?" if -self._status == signal.SIGKILL else ""
        return (
            f"the process was killed by signal {-self._status} ({signal.Signals(-self._status).name}){hint}"
        )

    def _release(self) -> None:
        self._writer.close()
        for output in self._outputs:
            output.transport.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()  # has no effect if the transport closed it
        _lifelines.discard(self._lifeline)
        os.close(self._lifeline)
        if self.exited.done():
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _exits(self, within: float) -> bool:
        await asyncio.wait({self.exited}, timeout=within)
        return self.exited.done()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(ChildProcessError):
            self._status = _await_exit(self._process)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._has_exited)

    def _has_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    async def _forward(self, pipe: IO[bytes] | None, level: int) -> None:
        _, output = await asyncio.get_running_loop().connect_read_pipe(lambda: OutputLines(self, level), pipe)
        self._outputs.append(output)


class OutputLines(asyncio.Protocol):
    """Writes the output of a child to the log, line by line."""

    transport: asyncio.ReadTransport

    def __init__(self, child: ChildProcess, level: int) -> None:
        self._child = child
        self._level = level
        self._begun = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._log(line)
        if len(self._begun) > MAX_OUTPUT_LINE:
            self._log(self._begun)
            self._begun = b""

    def connection_lost(self, problem: Exception | None) -> None:
        self._log(self._begun)
        if not self.ended.done():
            self.ended.set_result(None)

    def _log(self, line: bytes) -> None:
        if text := line.decode("utf-8", "replace").rstrip():
            self._child.log.log(self._level, "%s", text[:MAX_OUTPUT_LINE])


def _await_exit(process: subprocess.Popen[bytes]) -> int:
    """Leaves a zombie where possible: until it is reaped, no other process can get its group number."""
    if not hasattr(os, "waitid"):
        return process.wait()
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert found is not None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


_lifelines: set[int] = set()


def _close_lifelines() -> None:
    """A forked copy of the worker must not keep its children alive."""
    while _lifelines:
        with suppress(OSError):
            os.close(_lifelines.pop())


os.register_at_fork(after_in_child=_close_lifelines)


def _spawn(pipe: int, lifeline: int) -> subprocess.Popen[bytes]:
    # -P: a file in the current folder must not replace a module of Python. The path comes with the orders.
    command = [
        sys.executable,
        "-P",
        "-m",
        "duetime.invokers.child",
        str(pipe),
        str(lifeline),
        str(os.getpid()),
    ]
    return subprocess.Popen(  # noqa: S603  our own module, started by our own interpreter
        command, pass_fds=(pipe, lifeline), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
