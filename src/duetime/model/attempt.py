"""One try of a job: how it can end, and the record kept of those that end badly."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from duetime.model.instant import Micros

LONGEST_ERROR = 8_000
CUT = "\n... truncated ...\n"


class Ending(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the task raised
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"  # somebody asked for it
    RELEASED = "released"  # the worker shut down first; not the task's fault
    HANDED_OVER = "handed_over"  # goes on elsewhere, and its end will be reported; not written down among the attempts
    SNOOZED = "snoozed"  # the task asked to be run later; no failure
    LOST = "lost"  # the worker died or was fenced; not the task's fault


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended, before anybody decided what follows."""

    ending: Ending
    result: bytes | None = None
    error: str | None = None
    problem: BaseException | None = None  # what the task raised, for a retry policy that looks at it
    delay: Micros | None = None  # how long the task itself wants to wait, or has to report
    wish: Micros | None = None  # how long the other side wants us to wait; granted as far as the policy allows
    hopeless: bool = False  # no attempt can go better: what was submitted cannot be run


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that ended badly; the last attempt of a job lives on the job itself."""

    job_id: UUID
    attempt: int
    node: int | None
    ending: Ending
    started_at: Micros | None
    finished_at: Micros
    error: str | None


def error_text(said: object) -> str:
    """What a task says went wrong, as every store can hold it: whole characters, no NUL, and of a long text the beginning and the end.
    Settlements are written together, and one that is refused would hold up all the others."""
    try:
        text = str(said)
    except Exception:
        text = f"{type(said).__name__} (it cannot be shown)"
    text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    half = (LONGEST_ERROR - len(CUT)) // 2
    return text if len(text) <= LONGEST_ERROR else f"{text[:half]}{CUT}{text[-half:]}"
