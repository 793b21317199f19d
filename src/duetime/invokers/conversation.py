"""What a worker and a child say to each other during one attempt: the job, what its context asks for, and how it ended."""

from __future__ import annotations

import sys
from datetime import timedelta
from logging import getLogger
from typing import Any

from duetime import errors
from duetime.errors import DuetimeError, InvalidPayload, TaskError
from duetime.invoker import Context
from duetime.invokers.process import ChildProcess
from duetime.invokers.wire import Message
from duetime.model.codec import decode, encode
from duetime.model.verdict import Cancel, RetryAfter, Snooze, Verdict


async def converse(child: ChildProcess, context: Context, payload: bytes) -> Any:
    """The task's result; raises what the task raised. EOFError when the child falls silent."""
    child.send({"kind": "job", "job": encode(context.job._replace(payload=payload)).decode()})
    while True:
        message = await child.receive()
        match message["kind"]:
            case "call":
                child.send({"kind": "reply", "number": message["number"], **await _answer(context, message)})
            case "log":
                getLogger(message["logger"]).log(message["level"], "%s", message["text"], extra=context.log.extra)
            case "result":
                return message["value"]
            case "verdict":
                raise _verdict(message)
            case _:
                raise _problem(message)


async def _answer(context: Context, message: Message) -> Message:
    """Through the context of this process, which knows what there is to be done at the end of the attempt."""
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


def known_error(name: str, text: str) -> DuetimeError:
    """One of our own errors, raised again on the other side."""
    kind = getattr(errors, name)
    problem: DuetimeError = kind.__new__(kind, text)
    DuetimeError.__init__(problem, text)
    return problem


def _verdict(message: Message) -> Verdict:
    if message["name"] == "Cancel":
        return Cancel(message["reason"])
    kind = Snooze if message["name"] == "Snooze" else RetryAfter
    return kind(timedelta(microseconds=message["delay"]), message["reason"])


def _problem(message: Message) -> BaseException:
    """As an object of its own class where this process has that, so that retry_on and give_up_on can tell; with the child's traceback."""
    found: Any = sys.modules.get(message["module"])
    for part in message["name"].split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, Exception) and (problem := _revived(found, message["text"])) is not None:
        problem.add_note(message["trace"])
        return problem
    return TaskError(f"{message['name']}: {message['text']}\n{message['trace']}")


def _revived(kind: type[Exception], text: str) -> Exception | None:
    """Without its own __init__, which may want anything."""
    if issubclass(kind, InvalidPayload):
        return None  # raised by the task about something else: its own payload has been read here before
    if issubclass(kind, DuetimeError):
        return known_error(kind.__name__, text) if hasattr(errors, kind.__name__) else None
    try:
        problem: Exception = kind.__new__(kind, text)
    except Exception:
        return None
    problem.args = (text,)
    return problem
