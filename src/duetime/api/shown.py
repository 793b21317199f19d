"""Jobs, schedules, queues and nodes as answers show them: named fields only, so that nothing slips out that nobody meant to show (S39)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from duetime.model import definition
from duetime.model.attempt import Attempt
from duetime.model.codec import decode
from duetime.model.instant import Micros
from duetime.model.job import Job, JobDraft
from duetime.model.lease import Lease, Node
from duetime.model.limit import Queue, show_rate
from duetime.model.schedule import Schedule
from duetime.model.standing import standing
from duetime.model.when import describe
from duetime.store import QueueCount

iso, target, policies = definition.iso, definition.target, definition.policies


def job_summary(job: Job) -> dict[str, Any]:
    return {
        "id": str(job.id),
        "state": job.state.value,
        "target": target(job.target, job.target_spec),
        "schedule": job.schedule,
        "fire_time": iso(job.fire_time),
        "due_at": iso(job.due_at),
        "queue": job.queue,
        "priority": job.priority,
        "attempt": job.attempt,
        "failures": job.failures,
        "node": job.node,
        "owner": job.owner,
        "labels": decoded(job.labels) or {},
        "unique_key": job.unique_key,
        "retry_of": text(job.retry_of),
        "cancel_requested": job.cancel_requested,
        "created_at": iso(job.created_at),
        "claimed_at": iso(job.claimed_at),
        "started_at": iso(job.started_at),
        "finished_at": iso(job.finished_at),
        "error": job.error,
        "disposition": job.disposition,
    }


def job(one: Job, attempts: list[Attempt]) -> dict[str, Any]:
    return {
        **job_summary(one),
        "payload": decoded(one.payload),
        **policies(one.policies),
        "losses": one.losses,
        "checkpoint": decoded(one.checkpoint),
        "progress": decoded(one.progress),
        "result": decoded(one.result),
        "attempts": [attempt(each) for each in attempts],
    }


def attempt(one: Attempt) -> dict[str, Any]:
    return {
        "attempt": one.attempt,
        "ending": one.ending.value,
        "node": one.node,
        "started_at": iso(one.started_at),
        "finished_at": iso(one.finished_at),
        "error": one.error,
    }


def submitted(job_id: str, draft: JobDraft, known: Job | None, conflict: str | None) -> dict[str, Any]:
    """A job that is new, or `known`, the one that answers for it."""
    row: Job | JobDraft = draft if known is None else known
    fire_time = iso(row.fire_time)
    return {
        "id": job_id,
        "state": "pending" if known is None else known.state.value,
        "created": known is None,
        "conflict": conflict,
        "queue": row.queue,
        "priority": row.priority,
        "fire_time": fire_time,
        "due_at": fire_time if row.due_at == row.fire_time else iso(row.due_at),
    }


def schedule(one: Schedule, now: Micros) -> dict[str, Any]:
    draft, stands = one.draft, standing(one, now)
    return {
        "id": str(one.id),
        "name": draft.name,
        "version": one.version,
        "description": describe(draft.when),
        **definition.definition(draft),
        "paused": one.paused,
        "pause_note": one.pause_note,
        "runs": stands.runs,
        "next_fire_time": iso(stands.next_fire_time),
        "last_fire_time": iso(stands.last_fire_time),
        "created_at": iso(one.created_at),
        "updated_at": iso(one.updated_at),
    }


def queue(one: Queue, count: QueueCount | None) -> dict[str, Any]:
    return {
        "name": one.name,
        "paused": one.paused,
        "pause_note": one.pause_note,
        "paused_at": iso(one.paused_at),
        "most": one.most,
        "rate": None if one.rate is None else show_rate(one.rate),
        "pending": 0 if count is None else count.pending,
        "due": 0 if count is None else count.due,
        "running": 0 if count is None else count.running,
    }


def node(one: Node, now: Micros) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "state": "dead" if one.dead else "expired" if one.lease_until < now else "alive",
        "roles": list(one.roles),
        "version": one.version,
        "running": one.running,
        "started_at": iso(one.started_at),
        "lease_until": iso(one.lease_until),
    }


def lease(one: Lease) -> dict[str, Any]:
    return {"name": one.name, "holder": one.holder, "token": one.token, "expires_at": iso(one.expires_at)}


def text(identity: UUID | None) -> str | None:
    return None if identity is None else str(identity)


def decoded(stored: bytes | None) -> Any:
    return None if stored is None else decode(stored)
