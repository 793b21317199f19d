"""One attempt of a job: how it can end, and the record of one that did not succeed."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from uuid import UUID

from duetime.model.instant import Micros

MAX_ERROR = 8_000
CUT = "\n... truncated ...\n"


class Ending(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the task raised
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"  # by a user, an operator or the task itself
    RELEASED = "released"  # the worker shut down first; not a failure of the task
    HANDED_OVER = "handed_over"  # continues outside, and its end will be reported; leaves no record
    SNOOZED = "snoozed"  # the task asked to run later; not a failure
    LOST = "lost"  # the worker died or was fenced; not a failure of the task


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended, before it is decided what follows."""

    ending: Ending
    result: bytes | None = None
    error: str | None = None
    problem: BaseException | None = None  # what the task raised, for the retry policy
    delay: Micros | None = None  # how long the task wants to wait, or the time for the report
    wish: Micros | None = None  # the delay that the target asked for; granted as far as the policy allows
    hopeless: bool = False  # no attempt can succeed: the job cannot be run as it was submitted


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that did not succeed. The last attempt of a job is stored in the job itself."""

    job_id: UUID
    attempt: int
    node: int | None
    ending: Ending
    started_at: Micros | None
    finished_at: Micros
    error: str | None


def error_text(error: object) -> str:
    """An error text that every store can hold: valid characters, no NUL; a long text is cut in the middle.
    Settlements are written in batches, and one that the store rejects would block all the others."""
    try:
        text = str(error)
    except Exception:
        text = f"{type(error).__name__} (its text cannot be read)"
    text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    half = (MAX_ERROR - len(CUT)) // 2
    return text if len(text) <= MAX_ERROR else f"{text[:half]}{CUT}{text[-half:]}"


def trace(problem: BaseException, frames: TracebackType | None) -> str:
    """The traceback, ending with the line that says what went wrong. Errors are listed and grouped by their
    last line, and Python ends with another line if the message has several lines, if there are notes, and for
    exception groups."""
    text = "".join(traceback.format_exception(type(problem), problem, frames)).rstrip()
    what = _what(problem)
    return text if text.rpartition("\n")[2] == what else f"{text}\n{what}"


def _what(problem: BaseException) -> str:
    lines = "".join(traceback.format_exception_only(problem)).splitlines()
    # A SyntaxError begins with its location, indented.
    return next((line.rstrip() for line in lines if not line.startswith(" ")), type(problem).__name__)
