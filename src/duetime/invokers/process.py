"""One child process: started in a session of its own, tied to the life of this one, killed with everything it has started."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, Any

from duetime.invokers.wire import HEAD, Message, length_in, pack, unpack

POLITE = 0.25  # seconds between asking and SIGTERM
GRACE = 0.4  # seconds between SIGTERM and SIGKILL
EXIT_WITHIN = 1.0  # seconds for a process whose task is done to end by itself
KILL_WITHIN = 5.0  # seconds for the kernel to end a process that was killed
LAST_OUTPUT = 0.3  # seconds for what it has printed to arrive
LONGEST_LINE = 8_000
_logger = logging.getLogger("duetime.task")


class ChildProcess:
    """Messages go both ways until `exited`. `end` must be awaited in every case."""

    def __init__(self, process: subprocess.Popen[bytes], lifeline: int, line: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        loop = asyncio.get_running_loop()
        self._process = process
        _lifelines.add(lifeline)
        self._lifeline = lifeline  # the child's group is killed once this end is closed, whatever death we die
        self._reader, self._writer = line
        self._status = 0  # as a shell has it, but negative for a signal
        self._outputs: list[asyncio.ReadTransport] = []
        self._talking = 0
        self._silent = asyncio.Event()
        self.log: Any = _logger  # where its output goes
        self.exited: asyncio.Future[None] = loop.create_future()
        threading.Thread(target=self._watch, args=(loop,), name=f"duetime-child-{process.pid}", daemon=True).start()

    @staticmethod
    async def start(orders: Message) -> ChildProcess:
        ours, its = socket.socketpair()
        its_lifeline, our_lifeline = os.pipe()
        try:
            process = _spawn(its.fileno(), its_lifeline)
        except BaseException:
            ours.close()
            os.close(our_lifeline)
            raise
        finally:
            its.close()
            os.close(its_lifeline)
        try:
            child = ChildProcess(process, our_lifeline, await asyncio.open_connection(sock=ours))
        except BaseException:
            ours.close()
            os.close(our_lifeline)
            with process:  # closes its pipes, and waits for its end
                os.killpg(process.pid, signal.SIGKILL)
            raise
        try:
            child.send(orders)
            await child._forward(process.stdout, logging.INFO)
            await child._forward(process.stderr, logging.WARNING)
        except BaseException:  # too many open files, for one: what is left open would make that worse
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
        """The next message; EOFError when there will be none."""
        try:
            head = await self._reader.readexactly(HEAD)
            return unpack(await self._reader.readexactly(length_in(head)))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise EOFError from None

    async def stop(self) -> None:
        """Ask, then tell, then kill. Takes no longer than a worker that shuts down waits for the interrupted."""
        self.send({"kind": "stop"})
        if not await self._exits(POLITE):
            self._signal(signal.SIGTERM)
            await self._exits(GRACE)
        self.kill()

    def kill(self) -> None:
        """The process and everything it has started that has not made itself independent on purpose."""
        self._signal(signal.SIGKILL)

    async def end(self) -> None:
        """Nothing of it stays."""
        await self._exits(EXIT_WITHIN)
        self.kill()
        if not await self._exits(KILL_WITHIN):
            _logger.error("child process %d cannot be killed", self.pid)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_OUTPUT):
                await self._silent.wait()
        self._release()

    def outcome(self) -> str:
        """How it ended, in words; to be asked once it has exited."""
        if self._status >= 0:
            return f"the process ended with status {self._status} before the task was done"
        hint = ": out of memory?" if -self._status == signal.SIGKILL else ""
        return f"the process was killed by signal {-self._status} ({signal.Signals(-self._status).name}){hint}"

    def said_everything(self) -> None:
        self._talking -= 1
        if self._talking == 0:
            self._silent.set()

    def _release(self) -> None:
        self._writer.close()
        for output in self._outputs:
            output.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()  # nothing to do where its output has done so
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
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know
            loop.call_soon_threadsafe(self._has_exited)

    def _has_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    async def _forward(self, pipe: IO[bytes] | None, level: int) -> None:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: Lines(self, level), pipe)
        self._outputs.append(transport)
        self._talking += 1


class Lines(asyncio.Protocol):
    """What a child prints, line by line in the log."""

    def __init__(self, child: ChildProcess, level: int) -> None:
        self._child = child
        self._level = level
        self._begun = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._say(line)
        if len(self._begun) > LONGEST_LINE:
            self._say(self._begun)
            self._begun = b""

    def connection_lost(self, problem: Exception | None) -> None:
        self._say(self._begun)
        self._child.said_everything()

    def _say(self, line: bytes) -> None:
        if text := line.decode("utf-8", "replace").rstrip():
            self._child.log.log(self._level, "%s", text[:LONGEST_LINE])


def _await_exit(process: subprocess.Popen[bytes]) -> int:
    """Where possible it is left a zombie: until it is reaped, its group number is nobody else's."""
    if not hasattr(os, "waitid"):
        return process.wait()
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert found is not None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


_lifelines: set[int] = set()


def _let_go() -> None:
    """A forked copy of the worker must not keep its children alive."""
    while _lifelines:
        with suppress(OSError):
            os.close(_lifelines.pop())


os.register_at_fork(after_in_child=_let_go)


def _spawn(line: int, lifeline: int) -> subprocess.Popen[bytes]:
    # -P: no file of the current folder may stand in for a module of Python's. The path comes with the orders.
    command = [sys.executable, "-P", "-m", "duetime.invokers.child", str(line), str(lifeline), str(os.getpid())]
    return subprocess.Popen(  # noqa: S603  our own module, started by our own interpreter
        command, pass_fds=(line, lifeline), start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
