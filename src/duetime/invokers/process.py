"""One child process: it runs in its own session, ends when this process ends, and is killed with everything
it has started. What it sends and prints is bounded, so that it cannot occupy its worker."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, cast

from duetime.errors import ProcessDied
from duetime.invoker import Context
from duetime.invokers.protocol import HEADER_BYTES, MAX_MESSAGE, Message, body_length, pack, unpack
from duetime.model.ids import random_bytes
from duetime.model.output import Stream

STOP_TIMEOUT = 0.25  # seconds between asking and SIGTERM
TERMINATE_TIMEOUT = 0.4  # seconds between SIGTERM and SIGKILL
EXIT_TIMEOUT = 1.0  # seconds for a process to end by itself once its task is done
KILL_TIMEOUT = 5.0  # seconds for the kernel to end a killed process
OUTPUT_TIMEOUT = 0.3  # seconds for its last output to arrive
MAX_OUTPUT_LINE = 8_000
WINDOW = 0.1  # seconds; the next three are per window and child
MAX_LINES = 100  # lines of output and log records that are logged; the rest is counted and left out
MAX_OUTPUT_BYTES = 256 * 1024  # bytes of output that are read before the child has to wait
MAX_MESSAGE_UNITS = 500  # messages that are read before the child has to wait; each KiB counts as one more
MARK = "_DUETIME_CHILD"  # names the child in the environment of everything it starts
WORKER_ONLY = ("DUETIME_SECRET_KEYS", "DUETIME_API_KEY")  # variables that a task does not get
_logger = logging.getLogger("duetime.task")


class Allowance:
    """So many units in each window of time."""

    def __init__(self, units: int) -> None:
        self._units = self._left = units
        self._ends = 0.0

    def take(self, units: int = 1) -> bool:
        now = asyncio.get_running_loop().time()
        if now >= self._ends:
            self._left, self._ends = self._units, now + WINDOW
        self._left -= units
        return self._left >= 0

    def until_next(self) -> float:
        """Seconds."""
        return max(0.0, self._ends - asyncio.get_running_loop().time())


class ChildGone(Exception):
    """The child has closed its end. A class of its own: every built-in error may be the task's."""


class ChildProcess:
    """Messages go both ways until `exited`. The owner must await `end` in every case."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        mark: str,
        lifeline: int,
        pipe: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        loop = asyncio.get_running_loop()
        self._process = process
        self._mark = mark
        _lifelines.add(lifeline)
        self._lifeline = (
            lifeline  # the kernel kills the child's group when this end closes, however this process ends
        )
        self._reader, self._writer = pipe
        self._status = 0  # as in a shell, but negative for a signal
        self._outputs: list[OutputLines] = []
        self._messages = Allowance(MAX_MESSAGE_UNITS)
        self._lines = Allowance(MAX_LINES)
        self._left_out = 0
        self._log: Any = _logger  # where its output goes
        self._context: Context | None = None
        self.exited: asyncio.Future[None] = loop.create_future()
        threading.Thread(
            target=self._watch, args=(loop,), name=f"duetime-child-{process.pid}", daemon=True
        ).start()

    @staticmethod
    async def start(orders: Message) -> ChildProcess:
        ours, theirs = socket.socketpair()
        their_lifeline, our_lifeline = os.pipe()
        mark = random_bytes(16).hex()
        with ExitStack() as undo:
            undo.callback(os.close, our_lifeline)
            undo.callback(ours.close)
            try:
                process = _spawn(theirs.fileno(), their_lifeline, mark)
            finally:
                theirs.close()
                os.close(their_lifeline)
            undo.enter_context(process)  # closes its pipes and waits for its end
            undo.callback(os.killpg, process.pid, signal.SIGKILL)
            child = ChildProcess(process, mark, our_lifeline, await asyncio.open_connection(sock=ours))
            undo.pop_all()
        try:
            child.send(orders)
            await child._forward(process.stdout, logging.INFO, Stream.STDOUT)
            await child._forward(process.stderr, logging.WARNING, Stream.STDERR)
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
        """The next message. Raises ChildGone when the child has closed the pipe."""
        try:
            length = body_length(await self._reader.readexactly(HEADER_BYTES))
            if length > MAX_MESSAGE:
                self.kill()
                raise ProcessDied(f"the process sent {length:,} bytes at once; the limit is {MAX_MESSAGE:,}")
            if not self._messages.take(1 + length // 1024):
                await self._exits(self._messages.until_next())
            return unpack(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ChildGone from None

    def print_to(self, context: Context) -> None:
        """From now on, what it prints is output of this attempt."""
        self._context = context
        self._log = logging.LoggerAdapter(_logger, context.log.extra)

    def print_line(self, level: int, text: str, stream: Stream) -> bool:
        return self.log_line(self._log, level, text, stream)

    def log_line(self, logger: Any, level: int, text: str, stream: Stream, **options: Any) -> bool:
        """Log a line of it and keep it as output, unless it has logged too many just now."""
        if not self._lines.take():
            self.leave_out(1)
            return False
        self._tell_left_out()
        logger.log(level, "%s", text[:MAX_OUTPUT_LINE], **options)
        if self._context is not None:
            self._context.keep_line(stream, level, text, True)
        return True

    def keep_lines(self, lines: Sequence[Sequence[Any]], left_out: int) -> None:
        """Lines that are output and not logged."""
        output = None if self._context is None else self._context.output
        if output is not None:
            for stream, level, age, text in lines:
                output.add(Stream(stream), level, text, False, age)
            if left_out:
                output.leave_out(left_out)

    def leave_out(self, lines: int) -> None:
        self._left_out += lines

    def _tell_left_out(self) -> None:
        if self._left_out:
            output = None if self._context is None else self._context.output
            if output is not None:
                output.leave_out(self._left_out)
            self._log.warning(
                "%d lines left out: the task logs more than %d per second",
                self._left_out,
                MAX_LINES / WINDOW,
            )
            self._left_out = 0

    async def stop(self) -> None:
        """Ask the child to stop, then send SIGTERM, then kill it. Takes less time than a worker waits for
        interrupted tasks at shutdown."""
        self.send({"kind": "stop"})
        if not await self._exits(STOP_TIMEOUT):
            self._signal(signal.SIGTERM)
            await self._exits(TERMINATE_TIMEOUT)
        self.kill()

    def kill(self) -> None:
        """Kill the process and its group. `end` kills the processes that left the group."""
        self._signal(signal.SIGKILL)

    async def end(self) -> None:
        """Make sure that nothing of it is left."""
        await self._exits(EXIT_TIMEOUT)
        self.kill()
        if not await self._exits(KILL_TIMEOUT):
            _logger.error("child process %d cannot be killed", self.pid)
        await asyncio.to_thread(_kill_marked, self._mark)
        if self._outputs:
            await asyncio.wait([output.ended for output in self._outputs], timeout=OUTPUT_TIMEOUT)
        self._tell_left_out()
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

    async def _forward(self, pipe: IO[bytes] | None, level: int, stream: Stream) -> None:
        _, output = await asyncio.get_running_loop().connect_read_pipe(
            lambda: OutputLines(self, level, stream), pipe
        )
        self._outputs.append(output)


class OutputLines(asyncio.Protocol):
    """Writes the output of a child to the log, line by line."""

    transport: asyncio.ReadTransport

    def __init__(self, child: ChildProcess, level: int, stream: Stream) -> None:
        self._child = child
        self._level = level
        self._stream = stream
        self._bytes = Allowance(MAX_OUTPUT_BYTES)
        self._begun = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        for index, line in enumerate(lines):
            if not self._log(line):
                self._child.leave_out(len(lines) - index - 1)
                break
        if not self._bytes.take(len(data)):
            self.transport.pause_reading()
            asyncio.get_running_loop().call_later(self._bytes.until_next(), self._resume)
        if len(self._begun) > MAX_OUTPUT_LINE:
            # Between two words, so that a secret is not cut in two.
            end = self._begun.rfind(b" ") + 1 or len(self._begun)
            self._log(self._begun[:end])
            self._begun = self._begun[end:]

    def connection_lost(self, problem: Exception | None) -> None:
        self._log(self._begun)
        if not self.ended.done():
            self.ended.set_result(None)

    def _resume(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _log(self, line: bytes) -> bool:
        text = line.decode("utf-8", "replace").rstrip()
        return not text or self._child.print_line(self._level, text, self._stream)


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


def _kill_marked(mark: str) -> None:
    """Kill everything that a child has started, also processes that left its group and its session. Only
    Linux shows the environment of a process."""
    sought, found = f"{MARK}={mark}".encode(), True
    while found:  # what is found may have started more in the meantime
        found = False
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # gone, or of another user
                if sought in (folder / "environ").read_bytes():
                    os.kill(int(folder.name), signal.SIGKILL)
                    found = True


def _spawn(pipe: int, lifeline: int, mark: str) -> subprocess.Popen[bytes]:
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
    environment = {name: value for name, value in os.environ.items() if name not in WORKER_ONLY}
    return subprocess.Popen(  # noqa: S603  our own module, started by our own interpreter
        command, env={**environment, MARK: mark}, pass_fds=(pipe, lifeline), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
