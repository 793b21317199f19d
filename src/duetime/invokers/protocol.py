"""The protocol between a worker and its child processes: JSON messages, each after its length. A message
cannot carry code.

To the child: orders, job, reply, stop. To the worker: call, log, and at the end result, directive or failed.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

from duetime import errors
from duetime.errors import DuetimeError, InvalidPayload, TaskError
from duetime.model.codec import decode, encode
from duetime.model.job import error_text
from duetime.model.settle import Cancel, Directive, RetryAfter, Snooze

HEADER_BYTES = 4
MAX_MESSAGE = 2 * 1024**2  # bytes; results, checkpoints and log records are much smaller
Message = dict[str, Any]


def pack(message: Message) -> bytes:
    body = encode(message)
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def body_length(header: bytes) -> int:
    return int.from_bytes(header, "big")


def unpack(body: bytes) -> Message:
    message: Message = decode(body)
    return message


def directive_message(directive: Directive) -> Message:
    reason = getattr(directive, "reason", None)
    return {
        "kind": "directive",
        "name": type(directive).__name__,
        "delay": getattr(directive, "delay", None),
        "reason": None if reason is None else error_text(reason),
    }


def read_directive(message: Message) -> Directive:
    if message["name"] == "Cancel":
        return Cancel(message["reason"])
    kind = Snooze if message["name"] == "Snooze" else RetryAfter
    return kind(timedelta(microseconds=message["delay"]), message["reason"])


def error_message(problem: BaseException, traceback: str) -> Message:
    kind = type(problem)
    text = error_text(problem) or ("the task reached its memory limit" if kind is MemoryError else "")
    named = {"module": kind.__module__, "name": kind.__qualname__}
    return {"kind": "failed", **named, "text": text, "trace": error_text(traceback)}


def read_error(message: Message) -> BaseException:
    """An object of the error's own class if this process has it, so that retry_on and give_up_on work; with
    the child's traceback."""
    found: Any = sys.modules.get(message["module"])
    for part in message["name"].split("."):
        found = getattr(found, part, None)
    if (
        isinstance(found, type)
        and issubclass(found, Exception)
        and (problem := _rebuilt(found, message["text"])) is not None
    ):
        problem.add_note(message["trace"])
        return problem
    return TaskError(f"{message['name']}: {message['text']}\n{message['trace']}")


def known_error(name: str, text: str) -> DuetimeError:
    """One of our own errors, raised again on the other side."""
    kind = getattr(errors, name)
    problem: DuetimeError = kind.__new__(kind, text)
    DuetimeError.__init__(problem, text)
    return problem


def _rebuilt(kind: type[Exception], text: str) -> Exception | None:
    """Skips the class's own __init__, which may require any arguments. If the class makes its own
    text, as CalledProcessError does of what __init__ has stored, a subclass shows the text from the child."""
    if issubclass(kind, InvalidPayload):
        return None  # the task raised it about something else: the worker has already read the payload
    if issubclass(kind, DuetimeError):
        return known_error(kind.__name__, text) if hasattr(errors, kind.__name__) else None
    try:
        if kind.__str__ is not Exception.__str__:
            same = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
            kind = type(kind.__name__, (kind,), {**same, "__str__": lambda _: text})
        problem: Exception = kind.__new__(kind, text)
    except Exception:
        return None
    problem.args = (text,)
    return problem
