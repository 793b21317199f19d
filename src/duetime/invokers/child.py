"""The child process of an isolated task. Only the worker starts it, as `python -m duetime.invokers.child`.

It ties itself to the worker's life, imports the function, runs one attempt in its main thread and reports how
the attempt ended.
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
from duetime.invokers.child_pipe import ChildAttemptWriter, ChildPipe
from duetime.invokers.protocol import Message, directive_message, error_message
from duetime.invokers.sandbox import lift_memory_limit, limit_memory, tie_to_parent
from duetime.invokers.signature import Signature
from duetime.invokers.threads import Interrupted
from duetime.model.attempt import trace
from duetime.model.codec import reader
from duetime.model.directives import Directive
from duetime.model.job import Claimed

# a script's name for itself in this process, as in multiprocessing: not "__main__", so that it does not run
SCRIPT = "__mp_main__"


def main() -> None:
    pipe_number, lifeline, parent = (int(argument) for argument in sys.argv[1:4])
    tie_to_parent(lifeline, parent)
    pipe = ChildPipe(socket.socket(fileno=pipe_number))
    try:
        orders = pipe.orders.get()
        function = prepare(orders, pipe)
        ending = attempt(function, orders["task"], pipe)
    except BaseException as problem:  # including Interrupted and SystemExit, which the task may raise
        lift_memory_limit()
        ending = describe(problem)
    try:
        pipe.send(ending)
    except (TypeError, ValueError, RecursionError, OverflowError) as problem:
        pipe.send(
            describe(InvalidInput("result", f"the task returned something that is not JSON ({problem})"))
        )
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


def attempt(function: Callable[..., Any], task: str, pipe: ChildPipe) -> Message:
    job: Claimed = reader(Claimed)(pipe.orders.get()["job"].encode())
    signature = Signature(task, function)
    arguments = signature.read(job.payload)
    run = _run_async if inspect.iscoroutinefunction(function) else _run_plain
    try:
        result = run(
            job, pipe, lambda context: function(*((context,) if signature.wants_context else ()), **arguments)
        )
    except Directive as directive:
        result = directive
    return directive_message(result) if isinstance(result, Directive) else {"kind": "result", "value": result}


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
