"""External jobs: the end of one that its caller cancels."""

from __future__ import annotations

from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Ending, State
from duetime.model.settle import Settlement


def cancellation(
    job_id: UUID, attempt: int, due_at: Micros, failures: int, losses: int, now: Micros, reason: str
) -> Settlement:
    """What its worker would have written, if it had one to ask."""
    return Settlement(
        job_id, attempt, State.CANCELLED, due_at, failures, losses, Ending.CANCELLED, None, now, None, reason
    )
