"""Everything a store holds, as rows that every store can read and write: what a copy from one store to
another carries. Leases, the event log and the limits that nodes state when they start are left out: they
belong to running processes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Attempt, State
from duetime.model.lease import Node
from duetime.model.limit import Queue
from duetime.model.permits import KeyUse
from duetime.model.schedule import Schedule, ScheduleVersion


class Record(NamedTuple):
    """A small document: an API key, a remembered request, a secret. `kind` and `key` name it within its
    tenant."""

    kind: str
    tenant: str
    key: str
    value: bytes
    version: int
    expires_at: Micros | None


class QueueRow(NamedTuple):
    queue: Queue  # without counts and lanes
    tenants: tuple[str, ...]  # which have stored jobs under it, in order
    spent_until: Micros  # of its rate


class LimitKeyRow(NamedTuple):
    name: str
    use: KeyUse  # without permits: running jobs are counted


class JobRow(NamedTuple):
    """A job, live or finished, and what belongs to it. A flat tuple, because a copy reads millions of them:
    first the fields of `model.job.Job` in their order."""

    id: UUID
    tenant: str
    schedule_id: UUID | None
    schedule: str | None
    fire_time: Micros
    due_at: Micros
    queue: str
    priority: int
    overlap: str | None
    target: str
    target_spec: bytes | None
    payload: bytes
    policies: bytes | None
    owner: str | None
    labels: bytes | None
    unique_key: str | None
    retry_of: UUID | None
    limit_key: str | None
    state: State
    attempt: int
    failures: int
    losses: int
    node: int | None
    cancel_requested: bool
    checkpoint: bytes | None
    progress: bytes | None
    created_at: Micros
    claimed_at: Micros | None
    started_at: Micros | None  # only of a finished job
    finished_at: Micros | None
    result: bytes | None
    error: str | None
    disposition: str | None
    begun: bool
    waits_for: str | None  # of a pending job: the name of the permit
    permit: UUID | None  # of a running job with a limit key
    attempts: tuple[Attempt, ...] = ()  # that did not succeed, oldest first
    markers: tuple[tuple[str, UUID], ...] = ()  # once-markers: key and nonce, by key


StoredRow = Node | QueueRow | LimitKeyRow | Schedule | ScheduleVersion | JobRow | Record
RowKey = tuple[Any, ...]


class RowKind(StrEnum):
    """In the order in which they are copied. A cursor is read before the jobs that were fired up to it: a
    fire in between is planned again under the same id, none is lost."""

    NODES = "nodes"
    QUEUES = "queues"
    LIMIT_KEYS = "limit keys"
    SCHEDULES = "schedules"
    VERSIONS = "schedule versions"
    JOBS = "jobs"
    RECORDS = "records"


def row_key(row: StoredRow) -> RowKey:
    """What tells a row from others of its kind, and orders them: texts by code point, ids by their bytes."""
    match row:
        case JobRow():
            return (row.id,)
        case Schedule():
            return (row.draft.tenant, row.draft.name)
        case ScheduleVersion():
            return (row.draft.tenant, row.draft.name, row.version)
        case Record():
            return (row.kind, row.tenant, row.key)
        case QueueRow():
            return (row.queue.name,)
        case LimitKeyRow():
            return (row.name,)
        case Node():
            return (row.id,)
