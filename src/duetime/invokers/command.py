"""Command targets: programs of this machine. Each attempt runs in a child process, as an isolated task does,
which bounds it, ends with its worker, and is killed with everything it has started."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Iterable
from typing import IO, Any

from duetime.invoker import Context, Policies
from duetime.invokers.children import ChildProcesses
from duetime.invokers.isolation import Isolation
from duetime.model.codec import encode
from duetime.model.command import COMMAND, CommandTarget
from duetime.model.instant import SECOND
from duetime.model.limit import Limit
from duetime.model.output import Stream
from duetime.model.retry import Retry
from duetime.model.settle import AttemptFailed

MAX_OUTPUT = 32 * 1024  # bytes of each stream, the last ones
OUTPUT_TIMEOUT = 1.0  # seconds for the last output, which processes in the background may hold open
NO_INPUT = (b"null", b"{}")
# Those that cron gives, and what decides about language, time and temporary files.
USUAL_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")
# As under cron: no second attempt unless the job asks for it.
POLICIES = Policies(Retry(max_attempts=1), timeout=3_600 * SECOND)


class CommandHandler:
    limit: Limit | None = None

    def __init__(self, variables: Iterable[str] = (), policies: Policies = POLICIES) -> None:
        """`variables`: those of the node that programs get in addition to the usual ones."""
        self.policies = policies
        self._variables = [*USUAL_VARIABLES, *variables]
        self._children = ChildProcesses(run_command, COMMAND, Isolation(spare=False), None)

    async def invoke(self, context: Context, payload: bytes) -> Any:
        """A payload is sent to the standard input of the program, as JSON."""
        target = CommandTarget.from_spec(context.job.target_spec or b"{}")
        orders = {"argv": target.argv, "cwd": target.cwd, "variables": self._variables}
        text = None if payload in NO_INPUT else payload.decode()
        result = await self._children.run(context, encode({**orders, "text": text}))
        if result["status"] != 0:
            raise AttemptFailed(_failure(result), result)
        return result

    async def close(self) -> None:
        await self._children.close()


def _failure(result: dict[str, Any]) -> str:
    status = result["status"]
    ending = f"exit status {status}" if status > 0 else f"killed by {signal.Signals(-status).name}"
    last = (result["stderr"].strip() or result["stdout"].strip()).rpartition("\n")[2]
    return f"{ending}: {last}" if last else ending


def run_command(
    ctx: Context, argv: list[str], cwd: str | None, variables: list[str], text: str | None
) -> dict[str, Any]:
    """In the child process. Other variables of the node may be secret, and readers of jobs see what a program
    prints."""
    environment = {name: os.environ[name] for name in variables if name in os.environ}
    process = subprocess.Popen(  # noqa: S603  the operator allows commands on this node
        argv, cwd=cwd, env=environment, stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    outputs = [
        OutputTail(process.stdout, ctx, Stream.STDOUT, logging.INFO),
        OutputTail(process.stderr, ctx, Stream.STDERR, logging.WARNING),
    ]
    if process.stdin is not None and text is not None:
        threading.Thread(target=_feed, args=(process.stdin, text.encode()), daemon=True).start()
    status = process.wait()
    stdout, stderr = (output.read() for output in outputs)
    return {"status": status, "stdout": stdout, "stderr": stderr}


def _feed(pipe: IO[bytes], data: bytes) -> None:
    try:
        with pipe:
            pipe.write(data)
    except OSError:
        return  # the program does not read its input


class OutputTail:
    """The last part of a stream, and all of it as output of the attempt; the program never waits for it to be
    read."""

    def __init__(self, pipe: IO[bytes] | None, context: Context, stream: Stream, level: int) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._context = context
        self._about = (stream, level)
        self._begun = b""  # a line without its end
        self._kept = b""
        self._cut = False
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def read(self) -> str:
        self._thread.join(OUTPUT_TIMEOUT)
        text = self._kept.decode("utf-8", "replace").replace("\0", "\ufffd")
        return f"[...]{text}" if self._cut else text

    def _collect(self) -> None:
        while data := self._pipe.read(MAX_OUTPUT):
            whole = self._kept + data
            self._cut = self._cut or len(whole) > MAX_OUTPUT
            self._kept = whole[-MAX_OUTPUT:]
            *lines, self._begun = (self._begun + data).split(b"\n")
            if len(self._begun) > MAX_OUTPUT:
                lines, self._begun = [*lines, self._begun], b""
            self._print(lines)
        self._print([self._begun])

    def _print(self, lines: list[bytes]) -> None:
        for line in lines:
            if text := line.decode("utf-8", "replace").rstrip():
                self._context.keep_line(*self._about, text, False)
