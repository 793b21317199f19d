"""Lists of jobs, live and past together, newest fire first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import FINAL, Job, JobFilter, State
from duetime.stores.sqlite.rows import job_of, text_of
from duetime.stores.sqlite.session import Row, SqliteSession

_ID, _FIRE_TIME = 0, 4
_EQUAL = ("queue", "owner", "schedule", "target", "node")
_STATES = {
    frozenset({State.RUNNING}): "list_if_running",
    frozenset({State.DEAD}): "list_if_dead",
}  # those with an index of their own
_OTHER = ("due_after", "due_before", "fire_after", "fire_before", "label", "error", "error_group", "payload")
_PAIRS = ("label", "payload")


def jobs(
    session: SqliteSession, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None
) -> list[Job]:
    """The newest of each table; the newest of all of them are the result."""
    rows = [
        row
        for table in _tables(wanted)
        for row in _select(session, f"list_{table}", wanted, limit, before, "list_order")
    ]
    rows.sort(key=lambda row: (row[_FIRE_TIME], row[_ID]), reverse=True)
    return [job_of(row) for row in rows[:limit]]


def count(session: SqliteSession, wanted: JobFilter, limit: int) -> int:
    counted = 0
    for table in _tables(wanted):
        counted += _select(session, f"count_{table}", wanted, limit - counted, None, "count_limit")[0][0]
    return counted


def _select(
    session: SqliteSession,
    first: str,
    wanted: JobFilter,
    limit: int,
    before: tuple[Micros, UUID] | None,
    last: str,
) -> list[Row]:
    equal = [name for name in _EQUAL if getattr(wanted, name) is not None]
    return session.composed(
        first, equal, [*_conditions(wanted, before), last], _values(wanted, limit, before)
    )


def _tables(wanted: JobFilter) -> Iterator[str]:
    states = frozenset({State.DEAD}) if wanted.undisposed else wanted.states
    if states is None or states - FINAL:
        yield "live"
    if states is None or states & FINAL:
        yield "past"


def _conditions(wanted: JobFilter, before: tuple[Micros, UUID] | None) -> Iterator[str]:
    if wanted.undisposed:
        yield "list_if_undisposed"
    if wanted.states is not None:
        yield _STATES.get(wanted.states, "list_if_states")
    yield from (f"list_if_{name}" for name in _OTHER if getattr(wanted, name) is not None)
    if before is not None:
        yield "list_if_before"


def _values(wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None) -> dict[str, Any]:
    before_time, before_id = (None, None) if before is None else (before[0], before[1].bytes)
    key, value = wanted.label or (None, None)
    payload_path, payload_value = wanted.payload or (None, None)
    return {
        **{name: getattr(wanted, name) for name in ("tenant", *_EQUAL, *_OTHER) if name not in _PAIRS},
        "label_key": key,
        "label_value": value,
        "payload_path": payload_path,
        "payload_value": payload_value,
        "states": None if wanted.states is None else text_of(list(wanted.states)),
        "limit": limit,
        "before_time": before_time,
        "before_id": before_id,
    }
