"""How long finished jobs are kept, and their form in an archive."""

from __future__ import annotations

from collections.abc import Mapping
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


def job_line(row: JobRow) -> bytes:
    """One line of JSON. It has no secret: those of targets stay behind."""
    return encode(
        {
            "format": FORMAT,
            "id": str(row.id),
            "tenant": row.tenant,
            "schedule": row.schedule,
            "fire_time": to_iso(row.fire_time),
            "due_at": to_iso(row.due_at),
            "queue": row.queue,
            "priority": row.priority,
            "target": target(row.target, row.target_spec),
            "payload": _json(row.payload),
            "owner": row.owner,
            "labels": _json(row.labels) or {},
            "unique_key": row.unique_key,
            "retry_of": None if row.retry_of is None else str(row.retry_of),
            "limit_key": row.limit_key,
            "state": str(row.state),
            "attempt": row.attempt,
            "failures": row.failures,
            "losses": row.losses,
            "node": row.node,
            "created_at": to_iso(row.created_at),
            "claimed_at": _iso(row.claimed_at),
            "started_at": _iso(row.started_at),
            "finished_at": _iso(row.finished_at),
            "result": _json(row.result),
            "error": row.error,
            "disposition": row.disposition,
            "attempts": [_attempt(one) for one in row.attempts],
        }
    )


def _attempt(one: Attempt) -> dict[str, Any]:
    return {
        "attempt": one.attempt,
        "node": one.node,
        "ending": str(one.ending),
        "started_at": _iso(one.started_at),
        "finished_at": to_iso(one.finished_at),
        "error": one.error,
        "result": _json(one.result),
    }


def _json(stored: bytes | None) -> Any:
    return None if stored is None else decode(stored)


def _iso(instant: Micros | None) -> str | None:
    return None if instant is None else to_iso(instant)
