"""Listings of jobs, live and past together, newest fire first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import FINAL, Job, JobFilter, State
from duetime.stores.sqlite.rows import STATES, job_of, text_of
from duetime.stores.sqlite.session import STATEMENTS, Row, Session

_ID, _FIRE_TIME = 0, 4
_EQUAL = ("queue", "owner", "schedule", "target", "node", "due_after", "due_before", "fire_after", "fire_before")


def jobs(session: Session, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None) -> list[Job]:
    """Each table gives its newest; of all those the newest are the answer."""
    values = _values(wanted, limit, before)
    conditions = [STATEMENTS[f"list_if_{name}"] for name in _conditions(wanted, before)]
    rows: list[Row] = []
    for table in _tables(wanted):
        statement = "\n".join([STATEMENTS[f"list_{table}"], *conditions, STATEMENTS["list_order"]])
        rows += session.connection.execute(statement, values).fetchall()
    rows.sort(key=lambda row: (row[_FIRE_TIME], row[_ID]), reverse=True)
    return [job_of(row) for row in rows[:limit]]


def count(session: Session, wanted: JobFilter, most: int) -> int:
    conditions = [STATEMENTS[f"list_if_{name}"] for name in _conditions(wanted, None)]
    counted = 0
    for table in _tables(wanted):
        statement = "\n".join([STATEMENTS[f"count_{table}"], *conditions, STATEMENTS["count_limit"]])
        counted += session.connection.execute(statement, _values(wanted, most - counted, None)).fetchall()[0][0]
    return counted


def _tables(wanted: JobFilter) -> Iterator[str]:
    states = frozenset({State.DEAD}) if wanted.undisposed else wanted.states
    if states is None or states - FINAL:
        yield "live"
    if states is None or states & FINAL:
        yield "past"


def _conditions(wanted: JobFilter, before: tuple[Micros, UUID] | None) -> Iterator[str]:
    if wanted.undisposed:
        yield "undisposed"
    if wanted.states is not None:
        yield {frozenset({State.RUNNING}): "running", frozenset({State.DEAD}): "dead"}.get(wanted.states, "states")
    yield from (name for name in _EQUAL if getattr(wanted, name) is not None)
    if wanted.label is not None:
        yield "label"
    if wanted.error is not None:
        yield "error"
    if before is not None:
        yield "before"


def _values(wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(wanted, name) for name in _EQUAL}
    before_time, before_id = (None, None) if before is None else (before[0], before[1].bytes)
    key, value = wanted.label or (None, None)
    values |= {"label_key": key, "label_value": value, "error": wanted.error}
    states = None if wanted.states is None else text_of([name for name, state in STATES.items() if state in wanted.states])
    return {**values, "tenant": wanted.tenant, "limit": limit, "states": states, "before_time": before_time, "before_id": before_id}
