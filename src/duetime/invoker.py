"""The invoker contract: what runs a job's target, and the context it is given."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from logging import LoggerAdapter, getLogger
from typing import Any, Protocol
from uuid import UUID

from duetime.model.codec import decode
from duetime.model.instant import Micros, to_datetime
from duetime.model.job import Claimed, Delivery
from duetime.model.retry import Retry

_logger = getLogger("duetime.task")


@dataclass(frozen=True, slots=True)
class Policies:
    """How an attempt is bounded and what its failure leads to; a job's own overrides replace the target's defaults."""

    retry: Retry
    timeout: Micros | None
    delivery: Delivery


class Context:
    """What a running attempt knows of itself. Values are made when asked for: most tasks ask for few."""

    __slots__ = ("_job",)

    def __init__(self, job: Claimed) -> None:
        self._job = job

    @property
    def job_id(self) -> UUID:
        return self._job.id

    @property
    def schedule(self) -> str | None:
        """Name of the schedule this is a fire of; None for a one-off."""
        return self._job.schedule

    @property
    def fire_time(self) -> datetime:
        """The instant that was asked for; the same on every attempt."""
        return to_datetime(self._job.fire_time)

    @property
    def attempt(self) -> int:
        """Rises with every attempt of this job, and only rises: a fencing token for storage that can compare it."""
        return self._job.attempt

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt: let the other side use it to drop repeats."""
        return str(self._job.id)

    @property
    def payload(self) -> Any:
        return decode(self._job.payload)

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def log(self) -> LoggerAdapter[Any]:
        """A logger whose records carry job id, target and attempt."""
        return LoggerAdapter(_logger, {"job_id": str(self._job.id), "target": self._job.target, "attempt": self._job.attempt})


class Handler(Protocol):
    """Runs every job of one target on this node."""

    policies: Policies

    def invoke(self, context: Context, payload: Any) -> Awaitable[Any]:
        """One attempt. What it returns must be JSON; what it raises is a failure of the attempt."""
        ...
