"""Stored rows as values of tables, for the stores that have tables: their names, and the names of most
columns, are the same in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from duetime.model.job import Attempt, State
from duetime.model.lease import Node
from duetime.model.schedule import ScheduleDraft
from duetime.model.stored import JobRow, QueueRow, Record, RowKey, RowKind

Values = tuple[Any, ...]
_NODE_AT, _LIVED = (JobRow._fields.index(name) for name in ("node", "started_at"))
_LIVE_ONLY = slice(JobRow._fields.index("begun"), JobRow._fields.index("attempts"))
_PAST = JobRow._fields[: _LIVE_ONLY.start]
_LIVE = (*_PAST[:_LIVED], "error", *JobRow._fields[_LIVE_ONLY])
_ATTEMPT = tuple(field.name for field in fields(Attempt))
_attempt_values = attrgetter(*_ATTEMPT)
_LIMIT_KEY = ("name", "spent_until", "asks_at", "served_at")
_NODE = ("id", "name", "roles", "version", "started_at", "lease_until", "dead", "has_left")
_QUEUE = (
    "name", "paused", "pause_note", "paused_at", "max_running", "rate_count", "rate_period", "spent_until",
)  # fmt: skip
_CURSOR = (
    "version", "segment", "paused", "pause_note", "next_fire_time", "last_fire_time", "runs", "created_at",
    "updated_at",
)  # fmt: skip
_cursor_values = attrgetter(*_CURSOR)
_VERSION = ("version", "paused", "at", "author", "change")
_version_values = attrgetter(*_VERSION)


class TableRows(NamedTuple):
    """What a kind becomes in one table."""

    table: str
    columns: tuple[str, ...]
    values: list[Values]


# The columns that a key names, by table. Rows are deleted by them.
KEYS: dict[RowKind, dict[str, tuple[str, ...]]] = {
    RowKind.NODES: {"nodes": ("id",)},
    RowKind.QUEUES: {"queues": ("name",), "queue_tenants": ("queue",)},
    RowKind.LIMIT_KEYS: {"limit_keys": ("name",)},
    RowKind.SCHEDULES: {"schedules": ("tenant", "name")},
    RowKind.VERSIONS: {"schedule_versions": ("tenant", "name", "version")},
    RowKind.JOBS: {"jobs": ("id",), "history": ("id",), "attempts": ("job_id",), "once_markers": ("job_id",)},
    RowKind.RECORDS: {"records": ("kind", "tenant", "key")},
}
FIRST = {RowKind.NODES: (-1,), RowKind.VERSIONS: ("", "", -1), RowKind.JOBS: (UUID(int=0),)}


def start_of(kind: RowKind, after: RowKey | None) -> RowKey:
    """The key after which a page begins; without one, a key before all that exist."""
    return after or FIRST.get(kind) or ("",) * len(next(iter(KEYS[kind].values())))


def range_condition(
    columns: Sequence[str], after: RowKey | None, until: RowKey | None, mark: str
) -> tuple[str, list[Any]]:
    """The condition of a range of keys and its parameters; `mark` is the format of a parameter's number."""
    names, values, parts = ", ".join(columns), list[Any](), list[str]()
    for sign, key in ((">", after), ("<=", until)):
        if key is not None:
            marks = ", ".join(mark.format(len(values) + at) for at in range(1, len(key) + 1))
            parts.append(f"({names}) {sign} ({marks})")
            values += key
    return " AND ".join(parts) or "TRUE", values


def nested_range_condition(
    columns: Sequence[str], after: RowKey | None, until: RowKey | None
) -> tuple[str, list[Any]]:
    """The same for a server that finds the range in an index only by single columns; marks are ?1, ?2."""
    values, parts = list[Any](), list[str]()
    for sign, last, key in ((">", ">", after), ("<", "<=", until)):
        if key is None:
            continue
        numbers = range(len(values) + 1, len(values) + len(key) + 1)
        *before, (column, number) = zip(columns, numbers, strict=True)
        condition = f"{column} {last} ?{number}"
        for column, number in reversed(before):
            condition = f"({column} {sign} ?{number} OR {column} = ?{number} AND {condition})"
        parts.append(condition)
        values += key
    return " AND ".join(parts) or "TRUE", values


@dataclass(frozen=True, slots=True)
class RowDialect:
    """What the tables of a store have differently."""

    definition: tuple[str, ...]  # the columns of a schedule as its author defines it
    define: Callable[[ScheduleDraft], Values]  # their values
    roles: Callable[[tuple[str, ...]], Any]  # of a node

    def tables(self, kind: RowKind, rows: Sequence[Any]) -> Iterator[TableRows]:
        match kind:
            case RowKind.JOBS:
                yield from _job_tables(rows)
            case RowKind.QUEUES:
                yield from _queue_tables(rows)
            case RowKind.LIMIT_KEYS:
                yield TableRows("limit_keys", _LIMIT_KEY, [(row.name, *row.use[1:]) for row in rows])
            case RowKind.RECORDS:
                yield TableRows("records", Record._fields, list(rows))
            case RowKind.NODES:
                yield TableRows("nodes", _NODE, [self._node(node) for node in rows])
            case RowKind.SCHEDULES:
                values = [(*self.define(row.draft), *_cursor_values(row)) for row in rows]
                yield TableRows("schedules", (*self.definition, *_CURSOR), values)
            case RowKind.VERSIONS:
                values = [(*self.define(row.draft), *_version_values(row)) for row in rows]
                yield TableRows("schedule_versions", (*self.definition, *_VERSION), values)

    def _node(self, node: Node) -> Values:
        life = (node.version, node.started_at, node.lease_until, node.dead, node.has_left)
        return (node.id, node.name, self.roles(node.roles), *life)


def _job_tables(rows: Iterable[JobRow]) -> Iterator[TableRows]:
    live: list[Values] = []
    past: list[Values] = []
    attempts: list[Values] = []
    markers: list[Values] = []
    for row in rows:
        if row.state.final:
            past.append(row[: len(_PAST)])
        else:
            live.append(_live_values(row))
        attempts += map(_attempt_values, row.attempts)
        markers += ((row.id, key, nonce) for key, nonce in row.markers)
    yield TableRows("jobs", _LIVE, live)
    yield TableRows("history", _PAST, past)
    yield TableRows("attempts", _ATTEMPT, attempts)
    yield TableRows("once_markers", ("job_id", "key", "nonce"), markers)


def _live_values(row: JobRow) -> Values:
    """In tables the node of an external job is 0."""
    values: Values = row
    node = 0 if row.node is None and row.state is State.RUNNING else row.node
    return (*values[:_NODE_AT], node, *values[_NODE_AT + 1 : _LIVED], row.error, *values[_LIVE_ONLY])


def _queue_tables(rows: Sequence[QueueRow]) -> Iterator[TableRows]:
    yield TableRows("queues", _QUEUE, [_queue_values(row) for row in rows])
    pairs = [(tenant, row.queue.name) for row in rows for tenant in row.tenants]
    yield TableRows("queue_tenants", ("tenant", "queue"), pairs)


def _queue_values(row: QueueRow) -> Values:
    queue, rate = row.queue, row.queue.rate or (None, None)
    settings = (queue.name, queue.paused, queue.pause_note, queue.paused_at, queue.max_running)
    return (*settings, *rate, row.spent_until)


def by_owner(rows: Iterable[tuple[Any, Any]]) -> dict[Any, tuple[Any, ...]]:
    """Second values that belong to the same first value, in their order."""
    found: dict[Any, tuple[Any, ...]] = {}
    for owner, value in rows:
        found[owner] = (*found.get(owner, ()), value)
    return found
