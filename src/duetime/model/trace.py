"""Tracebacks as they are stored with a job."""

from __future__ import annotations

import traceback
from types import TracebackType


def trace(problem: BaseException, frames: TracebackType | None) -> str:
    """The traceback, ending with the line that says what went wrong. By its last line an error is listed and grouped, and Python ends with
    another one where the message has several lines, where there are notes, and for groups of exceptions."""
    text = "".join(traceback.format_exception(type(problem), problem, frames)).rstrip()
    what = _what(problem)
    return text if text.rpartition("\n")[2] == what else f"{text}\n{what}"


def _what(problem: BaseException) -> str:
    lines = "".join(traceback.format_exception_only(problem)).splitlines()
    # Above a SyntaxError stands where it is, indented.
    return next((line.rstrip() for line in lines if not line.startswith(" ")), type(problem).__name__)
