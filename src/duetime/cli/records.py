"""Jobs, schedules, attempts and nodes as JSON: the stable fields of every `--json`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from duetime.model import duration
from duetime.model.attempt import Attempt
from duetime.model.codec import decode
from duetime.model.instant import Micros, to_datetime
from duetime.model.job import Job
from duetime.model.lease import Node
from duetime.model.limit import Queue, show_rate
from duetime.model.schedule import Schedule
from duetime.model.when import describe, to_json
from duetime.store import QueueCount


def job_summary(job: Job) -> dict[str, Any]:
    return {
        "id": str(job.id),
        "state": job.state.value,
        "task": job.target,
        "schedule": job.schedule,
        "queue": job.queue,
        "priority": job.priority,
        "fire_time": iso(job.fire_time),
        "due_at": iso(job.due_at),
        "attempt": job.attempt,
        "failures": job.failures,
        "node": job.node,
        "owner": job.owner,
        "labels": decoded(job.labels) or {},
        "unique_key": job.unique_key,
        "gate": job.gate,
        "retry_of": None if job.retry_of is None else str(job.retry_of),
        "created_at": iso(job.created_at),
        "started_at": iso(job.started_at),
        "finished_at": iso(job.finished_at),
        "error": job.error,
        "disposition": job.disposition,
    }


def job_details(job: Job, attempts: list[Attempt], waits_for: str | None = None) -> dict[str, Any]:
    return {
        **job_summary(job),
        "waits_for": waits_for,
        "payload": decoded(job.payload),
        "policies": decoded(job.policies) or {},
        "losses": job.losses,
        "cancel_requested": job.cancel_requested,
        "checkpoint": decoded(job.checkpoint),
        "progress": decoded(job.progress),
        "result": decoded(job.result),
        "attempts": [attempt_record(attempt) for attempt in attempts],
    }


def attempt_record(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.attempt,
        "ending": attempt.ending.value,
        "node": attempt.node,
        "started_at": iso(attempt.started_at),
        "finished_at": iso(attempt.finished_at),
        "error": attempt.error,
    }


def schedule_record(schedule: Schedule) -> dict[str, Any]:
    draft = schedule.draft
    return {
        "id": str(schedule.id),
        "name": draft.name,
        "version": schedule.version,
        "task": draft.target,
        "when": to_json(draft.when),
        "description": describe(draft.when),
        "payload": decoded(draft.payload),
        "queue": draft.queue,
        "priority": draft.priority,
        "overlap": draft.overlap or "allow",
        "missed": draft.missed.to_json(),
        "jitter": duration.show(draft.jitter),
        "policies": decoded(draft.policies) or {},
        "start_at": iso(draft.start_at),
        "end_at": iso(draft.end_at),
        "max_runs": draft.max_runs,
        "owner": draft.owner,
        "labels": decoded(draft.labels) or {},
        "paused": schedule.paused,
        "pause_note": schedule.pause_note,
        "runs": schedule.runs,
        "next_fire_time": None if schedule.paused else iso(schedule.next_fire_time),
        "last_fire_time": iso(schedule.last_fire_time),
        "created_at": iso(schedule.created_at),
        "updated_at": iso(schedule.updated_at),
    }


def queue_record(queue: Queue, count: QueueCount) -> dict[str, Any]:
    return {
        "name": queue.name,
        "paused": queue.paused,
        "pause_note": queue.pause_note,
        "paused_at": iso(queue.paused_at),
        "most": queue.most,
        "rate": None if queue.rate is None else show_rate(queue.rate),
        "pending": count.pending,
        "due": count.due,
        "running": count.running,
    }


def node_record(node: Node, now: Micros) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": node.name,
        "state": node_state(node, now),
        "roles": list(node.roles),
        "version": node.version,
        "running": node.running,
        "started_at": iso(node.started_at),
        "lease_until": iso(node.lease_until),
    }


def node_state(node: Node, now: Micros) -> str:
    return "dead" if node.dead else "expired" if node.lease_until < now else "alive"


def moment_of(micros: Micros | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)


def iso(micros: Micros | None) -> str | None:
    return None if micros is None else to_datetime(micros).isoformat().replace("+00:00", "Z")


def decoded(stored: bytes | None) -> Any:
    return None if stored is None else decode(stored)
