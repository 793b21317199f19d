"""How long finished jobs are kept, and their form in an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from duetime.model.codec import decode, encode
from duetime.model.instant import Micros, to_iso
from duetime.model.job import Attempt, State
from duetime.model.schedule import target
from duetime.model.stored import JobRow

FORMAT = 1  # of a line


@dataclass(frozen=True, slots=True)
class KeepRules:
    """The most specific one holds: that of the task, of the queue, the general one. Dead letters may be kept
    longer than all others."""

    keep: Micros
    failed: Micros | None = None
    queues: Mapping[str, Micros] = field(default_factory=dict)
    targets: Mapping[str, Micros] = field(default_factory=dict)

    def keep_for(self, row: JobRow) -> Micros:
        own = self.targets.get(row.target, self.queues.get(row.queue, self.keep))
        return max(own, self.failed or 0) if row.state is State.DEAD else own

    def is_old(self, row: JobRow, now: Micros) -> bool:
        return row.finished_at is not None and row.finished_at < now - self.keep_for(row)


# Fields of a job and of its attempts that every format of an archive has as they are
_JOB = (
    "tenant", "schedule", "queue", "priority", "owner", "unique_key", "limit_key", "attempt", "failures",
    "losses", "node", "error", "disposition",
)  # fmt: skip
_JOB_INSTANTS = ("fire_time", "due_at", "created_at", "claimed_at", "started_at", "finished_at")
_ATTEMPT = ("attempt", "node", "error")
_ATTEMPT_INSTANTS = ("started_at", "finished_at")


def archived(
    row: JobRow, instant: Callable[[Micros | None], Any], json: Callable[[bytes | None], Any]
) -> dict[str, Any]:
    """A job for an archive whose format has a form of its own for instants and JSON. It has no secret: those
    of targets stay behind."""
    return {
        "id": str(row.id),
        **_fields(row, _JOB, _JOB_INSTANTS, instant),
        "target": target(row.target, row.target_spec),
        "payload": json(row.payload),
        "labels": json(row.labels),
        "retry_of": None if row.retry_of is None else str(row.retry_of),
        "state": str(row.state),
        "result": json(row.result),
        "attempts": [
            {
                **_fields(one, _ATTEMPT, _ATTEMPT_INSTANTS, instant),
                "ending": str(one.ending),
                "result": json(one.result),
            }
            for one in row.attempts
        ],
    }


def job_line(row: JobRow) -> bytes:
    """One line of JSON."""
    fields = archived(row, _iso, _json)
    return encode({"format": FORMAT, **fields, "labels": fields["labels"] or {}})


def _fields(
    row: JobRow | Attempt,
    names: Iterable[str],
    instants: Iterable[str],
    instant: Callable[[Micros | None], Any],
) -> dict[str, Any]:
    plain = {name: getattr(row, name) for name in names}
    return plain | {name: instant(getattr(row, name)) for name in instants}


def _json(stored: bytes | None) -> Any:
    return None if stored is None else decode(stored)


def _iso(at: Micros | None) -> str | None:
    return None if at is None else to_iso(at)
