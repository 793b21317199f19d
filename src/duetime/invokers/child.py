"""The child process of an isolated task: `python -m duetime.invokers.child`, started by the worker and by nobody else.

It ties itself to the worker's life, imports the function, runs one attempt in its main thread and reports how that ended.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any

from duetime.errors import InvalidInput
from duetime.invoker import Context
from duetime.invokers.confinement import ease_memory, limit_memory, tie_to_parent
from duetime.invokers.line import ChildDesk, Line
from duetime.invokers.signature import Signature
from duetime.invokers.threads import Interrupted
from duetime.invokers.wire import Message
from duetime.model.attempt import error_text
from duetime.model.codec import reader
from duetime.model.job import Claimed
from duetime.model.trace import trace
from duetime.model.verdict import Verdict

SCRIPT = "__mp_main__"  # the name under which a script sees itself here, as in multiprocessing: not "__main__", so that it does not run


def main() -> None:
    line_number, lifeline, parent = (int(argument) for argument in sys.argv[1:4])
    tie_to_parent(lifeline, parent)
    line = Line(socket.socket(fileno=line_number))
    try:
        orders = line.orders.get()
        function = prepare(orders, line)
        ending = attempt(function, orders["task"], line)
    except BaseException as problem:  # also Interrupted and SystemExit: the task's own affair
        ease_memory()
        ending = describe(problem)
    _tell(line, ending)
    sys.stdout.flush()
    sys.stderr.flush()


def _tell(line: Line, ending: Message) -> None:
    try:
        line.send(ending)
    except (TypeError, ValueError, RecursionError, OverflowError) as problem:
        line.send(describe(InvalidInput("result", f"the task returned something that is not JSON ({problem})")))


def prepare(orders: Message, line: Line) -> Callable[..., Any]:
    sys.path[:] = orders["path"]
    sys.argv[:] = orders["argv"]
    if orders["memory"] is not None:
        limit_memory(orders["memory"])
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, TextIOWrapper)
        stream.reconfigure(line_buffering=True)
    function = find(orders)
    forward_logs(line, orders["level"])
    return function


def find(orders: Message) -> Callable[..., Any]:
    for preparation in orders["before"]:
        module, _, function = preparation.partition(":")
        getattr(importlib.import_module(module), function)()
    found: Any = _run_script(orders["script"]) if orders["script"] else importlib.import_module(orders["module"])
    for part in orders["name"].split("."):
        found = getattr(found, part, None)
    function = found if inspect.isfunction(found) else getattr(found, "function", found)
    if not callable(function):
        raise InvalidInput("isolate", f"{orders['task']}: a fresh process finds no function {orders['name']} in {orders['module']}")
    return function


def _run_script(path: str) -> Any:
    """As multiprocessing does it. An event loop runs meanwhile, so that an unguarded `app.run()` is refused and does not start a worker."""
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
        problem.add_note('A script with isolated tasks is imported by their processes: put app.run() under `if __name__ == "__main__":`')
        raise
    return module


def forward_logs(line: Line, level: int) -> None:
    """The records go to the worker's log; a module that has set up logging of its own keeps it, and only the context's go there."""
    logger = logging.getLogger("duetime.task" if logging.getLogger().handlers else None)
    logger.addHandler(line)
    logger.setLevel(level)
    logger.propagate = False


def attempt(function: Callable[..., Any], task: str, line: Line) -> Message:
    job: Claimed = reader(Claimed)(line.orders.get()["job"].encode())
    signature = Signature(task, function)
    arguments = signature.read(job.payload)
    call = _run_async if inspect.iscoroutinefunction(function) else _run_plain
    try:
        result = call(job, line, lambda context: function(*((context,) if signature.wants_context else ()), **arguments))
    except Verdict as verdict:
        result = verdict
    return _verdict(result) if isinstance(result, Verdict) else {"kind": "result", "value": result}


def _run_async(job: Claimed, line: Line, call: Callable[[Context], Any]) -> Any:
    async def run() -> Any:
        loop = asyncio.get_running_loop()
        context = line.context = Context(job, ChildDesk(line, loop))
        running = asyncio.ensure_future(call(context))
        loop.add_signal_handler(signal.SIGTERM, running.cancel)
        return await running

    return asyncio.run(run())


def _run_plain(job: Claimed, line: Line, call: Callable[[Context], Any]) -> Any:
    """In the main thread, where it can be interrupted; its context's calls are carried out by an event loop in another."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="duetime-loop", daemon=True).start()
    context = line.context = Context(job, ChildDesk(line, loop))
    signal.signal(signal.SIGTERM, _interrupt)
    result = call(context)
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


def _interrupt(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: what it does in `finally` is not to be interrupted again
    raise Interrupted


async def _awaited(result: Any) -> Any:
    return await result


def _verdict(verdict: Verdict) -> Message:
    reason = getattr(verdict, "reason", None)
    return {
        "kind": "verdict",
        "name": type(verdict).__name__,
        "delay": getattr(verdict, "delay", None),
        "reason": None if reason is None else error_text(reason),
    }


def describe(problem: BaseException) -> Message:
    kind = type(problem)
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "") in (__name__, "__main__"):
        frames = frames.tb_next
    what = trace(problem, frames or problem.__traceback__)
    text = str(problem) or ("the task reached its memory limit" if kind is MemoryError else "")
    said = {"text": error_text(text), "trace": error_text(what)}
    return {"kind": "failed", "module": kind.__module__, "name": kind.__qualname__, **said}


if __name__ == "__main__":
    main()
