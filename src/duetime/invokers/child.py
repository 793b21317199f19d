"""The child process of an isolated task. Only the worker starts it, as `python -m duetime.invokers.child`.

It ties itself to the worker's life, imports the function, runs one attempt in its main thread and reports how
the attempt ended.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import importlib.util
import inspect
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from io import TextIOWrapper
from itertools import count
from queue import SimpleQueue
from typing import Any
from uuid import UUID

from duetime.clock import monotonic_micros
from duetime.errors import Conflict, InvalidInput
from duetime.invoker import Context, OutputSink
from duetime.invokers.protocol import (
    HEADER_BYTES,
    MAX_MESSAGE,
    Message,
    body_length,
    directive_message,
    error_message,
    known_error,
    pack,
    unpack,
)
from duetime.invokers.signature import Signature
from duetime.invokers.threads import Interrupted
from duetime.model.codec import encode_result, reader
from duetime.model.instant import Micros
from duetime.model.job import Claimed, trace
from duetime.model.output import OutputBuffer, Stream
from duetime.model.settle import Directive
from duetime.store import AttemptUpdate, TaskTransaction

# The child's end of the pipe to its worker: a thread receives orders and replies; everything else is
# sent.


OUTPUT_INTERVAL = 0.25  # seconds


class ChildPipe(logging.Handler):
    """When the pipe breaks, the worker is gone, and the whole process group of the child is killed."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._sending = threading.Lock()
        self._numbers = count()
        self._calls: dict[int, Future[Any]] = {}
        self.orders: SimpleQueue[Message] = SimpleQueue()
        self.context: Context | None = None
        self.output = ChildOutput(self)
        threading.Thread(target=self._receive, name="duetime-pipe", daemon=True).start()

    def send(self, message: Message) -> None:
        data = pack(message)
        if len(data) > MAX_MESSAGE:
            raise ValueError(f"{len(data):,} bytes is over the limit of {MAX_MESSAGE:,}")
        with self._sending:
            self._connection.sendall(data)

    async def call(self, verb: str, value: Any) -> Any:
        """Ask the worker for something, and wait for its reply."""
        number = next(self._numbers)
        reply = self._calls[number] = Future()
        self.send({"kind": "call", "number": number, "verb": verb, "value": value})
        return await asyncio.wrap_future(reply)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.send(
                {"kind": "log", "logger": record.name, "level": record.levelno, "text": self.format(record)}
            )
        except Exception:
            self.handleError(record)

    def _receive(self) -> None:
        while (header := self._read(HEADER_BYTES)) and (body := self._read(body_length(header))):
            self._handle_message(unpack(body))
        os.killpg(os.getpgrp(), signal.SIGKILL)

    def _handle_message(self, message: Message) -> None:
        match message["kind"]:
            case "reply" if "error" in message:
                self._calls.pop(message["number"]).set_exception(
                    known_error(message["error"], message["text"])
                )
            case "reply":
                self._calls.pop(message["number"]).set_result(message["value"])
            case "stop":
                if self.context is not None:
                    self.context.stop_requested = True
            case _:
                self.orders.put(message)

    def _read(self, length: int) -> bytes:
        """This many bytes, or none if the worker is gone."""
        data = b""
        while len(data) < length:
            try:
                more = self._connection.recv(length - len(data))
            except OSError:
                return b""
            if not more:
                return b""
            data += more
        return data


class ChildAttemptWriter:
    """The worker's attempt writer, over the pipe."""

    def __init__(self, pipe: ChildPipe, loop: asyncio.AbstractEventLoop) -> None:
        self._pipe = pipe
        self.loop = loop

    async def save(self, note: AttemptUpdate) -> None:
        for verb, data in (("checkpoint", note.checkpoint), ("progress", note.progress)):
            if data is not None:
                await self._pipe.call(verb, data.decode())

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        return bool(await self._pipe.call("once", key))

    async def transact(self) -> TaskTransaction:
        raise Conflict(
            "ctx.connection belongs to the worker's process: a task that needs it cannot have isolate=True"
        )

    def open_output(self, job: Claimed) -> OutputSink:
        return self._pipe.output


class ChildOutput:
    """Lines that are output but not logged; the others go with their log records. They are sent a few times a
    second, so that a program that prints never waits: what is too much is counted and left out."""

    def __init__(self, pipe: ChildPipe) -> None:
        self._pipe = pipe
        self._buffer = OutputBuffer()
        self._sending = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, stream: Stream, level: int, text: str, logged: bool, age: Micros = 0) -> None:
        if logged:
            return
        self._buffer.add(monotonic_micros() - age, stream, str(level), text)
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_regularly, name="duetime-output", daemon=True)
            self._thread.start()

    def leave_out(self, lines: int) -> None:
        self._buffer.leave_out(lines)

    def flush(self) -> None:
        with self._sending:
            lines, left_out = self._buffer.drain()
            if not lines and not left_out:
                return
            now = monotonic_micros()
            rows = [[line.stream, int(line.level), now - line.at, line.text] for line in lines]
            self._pipe.send({"kind": "output", "lines": rows, "left_out": left_out})

    def _send_regularly(self) -> None:
        while True:
            threading.Event().wait(OUTPUT_INTERVAL)
            self.flush()


# Limits a child process sets for itself before anything else: it cannot outlive its worker, nor exceed its
# memory limit.


MEMORY_RESERVE = 32 * 1024**2  # bytes beyond the limit, to report that it was reached
OOM_SCORE = "500"  # the kernel kills the child before the worker when the machine runs out of memory


def tie_to_parent(lifeline: int, parent: int) -> None:
    """On Linux the kernel kills the whole process group when the lifeline closes, however busy it is.
    Elsewhere the broken pipe does."""
    os.set_inheritable(lifeline, False)
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        # No PR_SET_PDEATHSIG as well: it could kill this process first, and its lifeline would be gone before
        # it has killed the rest.
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write(OOM_SCORE)
    if os.getppid() != parent:
        os._exit(1)  # the worker died before the lifeline was set up


def limit_memory(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit + MEMORY_RESERVE))


def lift_memory_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


# a script's name for itself in this process, as in multiprocessing: not "__main__", so that it does not run
SCRIPT = "__mp_main__"


def main() -> None:
    pipe_number, lifeline, parent = (int(argument) for argument in sys.argv[1:4])
    tie_to_parent(lifeline, parent)
    pipe = ChildPipe(socket.socket(fileno=pipe_number))
    try:
        orders = pipe.orders.get()
        function = prepare(orders, pipe)
        ending = attempt(function, orders, pipe)
    except BaseException as problem:  # including Interrupted and SystemExit, which the task may raise
        lift_memory_limit()
        ending = describe(problem)
    pipe.output.flush()
    pipe.send(ending)
    sys.stdout.flush()
    sys.stderr.flush()


def prepare(orders: Message, pipe: ChildPipe) -> Callable[..., Any]:
    sys.path[:] = orders["path"]
    sys.argv[:] = orders["argv"]
    if orders["memory"] is not None:
        limit_memory(orders["memory"])
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, TextIOWrapper)
        stream.reconfigure(line_buffering=True)
    function = find_function(orders)
    # Log records go to the worker's log. If a module has set up logging of its own, only the records of
    # ctx.log do.
    logger = logging.getLogger("duetime.task" if logging.getLogger().handlers else None)
    logger.addHandler(pipe)
    logger.setLevel(orders["level"])
    logger.propagate = False
    return function


def find_function(orders: Message) -> Callable[..., Any]:
    for preparation in orders["before"]:
        module, _, function = preparation.partition(":")
        getattr(importlib.import_module(module), function)()
    found: Any = (
        _run_script(orders["script"]) if orders["script"] else importlib.import_module(orders["module"])
    )
    for part in orders["name"].split("."):
        found = getattr(found, part, None)
    function = found if inspect.isfunction(found) else getattr(found, "function", found)
    if not callable(function):
        raise InvalidInput(
            "isolate",
            f"{orders['task']}: a new process finds no function {orders['name']} in {orders['module']}",
        )
    return function


def _run_script(path: str) -> Any:
    """Imports the script as multiprocessing does. An event loop is running, so that an unguarded `app.run()`
    fails."""
    spec = importlib.util.spec_from_file_location(SCRIPT, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[SCRIPT] = sys.modules["__main__"] = module

    async def load(execute: Callable[[Any], None]) -> None:
        execute(module)

    try:
        asyncio.run(load(spec.loader.exec_module))
    except RuntimeError as problem:
        problem.add_note(
            'Child processes import the script: put app.run() under `if __name__ == "__main__":`'
        )
        raise
    return module


def attempt(function: Callable[..., Any], orders: Message, pipe: ChildPipe) -> Message:
    job: Claimed = reader(Claimed)(pipe.orders.get()["job"].encode())
    signature = Signature(orders["task"], function)
    arguments = signature.read(job.payload)
    run = _run_async if inspect.iscoroutinefunction(function) else _run_plain
    try:
        result = run(
            job, pipe, lambda context: function(*((context,) if signature.wants_context else ()), **arguments)
        )
    except Directive as directive:
        result = directive
    if isinstance(result, Directive):
        return directive_message(result)
    return result_message(result if orders["store_result"] else None)


def result_message(result: Any) -> Message:
    try:
        encode_result(result)
    except InvalidInput as problem:
        return {"kind": "result", "value": None, "unstored": str(problem)}
    return {"kind": "result", "value": result, "unstored": None}


def _run_async(job: Claimed, pipe: ChildPipe, call: Callable[[Context], Any]) -> Any:
    async def run() -> Any:
        loop = asyncio.get_running_loop()
        context = pipe.context = Context(job, ChildAttemptWriter(pipe, loop))
        running = asyncio.ensure_future(call(context))
        loop.add_signal_handler(signal.SIGTERM, running.cancel)
        return await running

    return asyncio.run(run())


def _run_plain(job: Claimed, pipe: ChildPipe, call: Callable[[Context], Any]) -> Any:
    """Runs the function in the main thread, where it can be interrupted. Calls of its context run on an event
    loop in another thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="duetime-loop", daemon=True).start()
    context = pipe.context = Context(job, ChildAttemptWriter(pipe, loop))
    signal.signal(signal.SIGTERM, _interrupt)
    result = call(context)
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


def _interrupt(number: int, frame: Any) -> None:
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # once only: a `finally` block must not be interrupted again
    raise Interrupted


async def _awaited(result: Any) -> Any:
    return await result


def describe(problem: BaseException) -> Message:
    """The error without the frames of this module."""
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "") in (__name__, "__main__"):
        frames = frames.tb_next
    return error_message(problem, trace(problem, frames or problem.__traceback__))


if __name__ == "__main__":
    main()
