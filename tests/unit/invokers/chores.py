"""Functions that are run in child processes, found there by their names."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from duetime.invoker import Context
from duetime.model.settle import Cancel, RetryAfter, Snooze


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Hiccup(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{reason} ({code})")
        self.code = code


def plain(ctx: Context, day: date, n: int = 2) -> dict[str, Any]:
    before = ctx.last_checkpoint
    ctx.sync.checkpoint({"at": n})
    ctx.sync.progress(1, 2, "half")
    return {
        "year": day.year, "before": before, "after": ctx.last_checkpoint, "once": [ctx.sync.once("a"), ctx.sync.once("a")],
        "attempt": ctx.attempt, "pid": os.getpid(), "folder": os.getcwd(), "argv": sys.argv,
    }  # fmt: skip


async def awaited(ctx: Context, n: int) -> int:
    await ctx.checkpoint(n)
    return n + int(await ctx.once("a"))


def chatty(ctx: Context) -> None:
    sys.stdout.write("printed\n")
    sys.stderr.write("complained\n")
    os.write(1, b"half a li")
    os.write(1, b"ne\nunfinished")
    ctx.log.warning("logged")


def pid() -> int:
    return os.getpid()


def ending(how: str) -> Any:
    match how:
        case "hiccup":
            raise Hiccup(7, "no luck")
        case "local":
            raise type("Strange", (Exception,), {})("odd")
        case "snooze":
            raise Snooze("5s", "later")
        case "again":
            return RetryAfter("7s", "busy")
        case "cancel":
            return Cancel("done already")
        case "half a character":
            return Cancel("no file \udcff.csv")
        case "unwritable":
            raise ValueError("no file \udcff.csv")
        case "end of file":
            input()
        case "tool":
            subprocess.run(["false"], check=True)
        case "bytes":
            b"\xff".decode()
        case "mute":
            raise Mute
        case "exit":
            sys.exit(4)
        case "no json":
            return object()
        case "nan":
            return {"mean": float("nan")}
        case "vanish":
            os._exit(3)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
    return how


def fenced(ctx: Context) -> None:
    ctx.sync.checkpoint(1)


def connected(ctx: Context) -> None:
    ctx.sync.connection.execute("SELECT 1")


def greedy() -> int:
    return len(bytearray(1_000_000_000))


def polite(ctx: Context, notes: str) -> None:
    _begin(notes)
    while not ctx.stop_requested:
        time.sleep(0.001)
    _note(notes, "ended by itself")


def tidy(notes: str) -> None:
    _begin(notes)
    try:
        while True:
            time.sleep(0.01)
    finally:
        _note(notes, "cleaned up")


async def tidy_async(notes: str) -> None:
    import asyncio

    _begin(notes)
    try:
        await asyncio.Event().wait()
    finally:
        _note(notes, "cleaned up")


def stubborn(notes: str) -> None:
    """Deaf to everything: the regular expression holds the interpreter for longer than anybody waits."""
    _begin(notes)
    re.match("(a+)+$", "a" * 60 + "b")


def littering(notes: str) -> str:
    """Leaves a process behind."""
    _begin(notes)
    return "done"


def escaping(notes: str) -> str:
    """Leaves a process behind that has left the group and has no parent any more."""
    _begin(notes, start_new_session=True)
    return "done"


def escaping_and_busy(notes: str) -> None:
    _begin(notes, start_new_session=True)
    time.sleep(600)


def printing(seconds: float, text: str) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if text:
            sys.stdout.write(text * 1000)
        else:
            time.sleep(0.01)


def logging_much(ctx: Context, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ctx.log.info("again")


def long_result() -> str:
    return "x" * 50_000_000


def endless_message() -> None:
    """Writes to the pipe of the worker, past the protocol."""
    pipe = next(each for each in gc.get_objects() if type(each).__name__ == "ChildPipe")._connection
    pipe.sendall(b"\xff\xff\xff\xff")
    while True:
        pipe.sendall(bytes(1024**2))


def variables() -> list[str]:
    return sorted(os.environ)


def _begin(notes: str, start_new_session: bool = False) -> None:
    started = subprocess.Popen(["sleep", "600"], start_new_session=start_new_session)
    # Renamed into place, so that a reader never sees half of it.
    Path(f"{notes}.new").write_text(f"{os.getpid()} {started.pid}\n")
    Path(f"{notes}.new").rename(notes)
    started.returncode = 0  # no process waits for it: that is the point


def _note(notes: str, text: str) -> None:
    with Path(notes).open("a") as file:
        file.write(text)
