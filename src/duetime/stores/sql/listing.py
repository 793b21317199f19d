"""Lists of jobs, live and past together, newest fire first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any
from uuid import UUID

from duetime.model.ids import first_id
from duetime.model.instant import Micros
from duetime.model.job import FINAL, Job, JobFilter, State
from duetime.model.search import error_group, has_field, has_label
from duetime.model.target import stored_names
from duetime.stores.sql.rows import job_of
from duetime.stores.sql.session import Row, SqlSession

PAGE = 1_000  # rows read together for conditions that the server cannot check
_ID, _PAYLOAD, _LABELS, _ERROR = 0, 11, 14, 31
_EQUAL = ("queue", "owner", "schedule", "node")
_STATES = {
    frozenset({State.RUNNING}): "list_if_running",
    frozenset({State.DEAD}): "list_if_dead",
}  # those with an index of their own
_OTHER = (
    "target",
    "due_after",
    "due_before",
    "fire_after",
    "fire_before",
    "label",
    "error",
    "error_group",
    "payload",
)
_PAIRS = ("label", "payload")


async def jobs(session: SqlSession, wanted: JobFilter, limit: int, before: UUID | None) -> list[Job]:
    """The newest of each table; the newest of all of them are the result."""
    start = None if before is None else before.bytes
    rows = [row for table in _tables(wanted) for row in await _newest(session, table, wanted, limit, start)]
    rows.sort(key=itemgetter(_ID), reverse=True)
    return [job_of(row) for row in rows[:limit]]


async def count(session: SqlSession, wanted: JobFilter, limit: int) -> int:
    counted = 0
    for table in _tables(wanted):
        if _tests(session, wanted):
            counted += len(await _newest(session, table, wanted, limit - counted, None))
        else:
            values = _values(session, wanted, limit - counted, None)
            counted += (await _select(session, f"count_{table}", wanted, "count_limit", values))[0][0]
    return counted


async def _newest(
    session: SqlSession, table: str, wanted: JobFilter, limit: int, before: bytes | None
) -> list[Row]:
    tests = _tests(session, wanted)
    size = PAGE if tests else limit
    found: list[Row] = []
    while len(found) < limit:
        values = _values(session, wanted, size, before)
        page = await _select(session, f"list_{table}", wanted, "list_order", values)
        found += [row for row in page if all(test(row) for test in tests)]
        if len(page) < size or not tests:
            break
        before = bytes(page[-1][_ID])
    return found[:limit]


def _tests(session: SqlSession, wanted: JobFilter) -> list[Callable[[Row], bool]]:
    """Of the conditions that the server cannot check."""
    asked = {name: value for name in session.filters if (value := getattr(wanted, name, None)) is not None}
    tests: dict[str, Callable[[Row], bool]] = {
        "label": lambda row: has_label(row[_LABELS], *asked["label"]),
        "payload": lambda row: has_field(row[_PAYLOAD], *asked["payload"]),
        "error": lambda row: asked["error"].casefold() in (row[_ERROR] or "").casefold(),
        "error_group": lambda row: error_group(row[_ERROR] or "") == asked["error_group"],
    }
    return [tests[name] for name in asked]


async def _select(
    session: SqlSession, first: str, wanted: JobFilter, last: str, values: dict[str, Any]
) -> list[Row]:
    equal = [name for name in _EQUAL if getattr(wanted, name) is not None]
    return await session.composed(first, equal, [*_conditions(session, wanted, values), last], values)


def _tables(wanted: JobFilter) -> Iterator[str]:
    states = frozenset({State.DEAD}) if wanted.undisposed else wanted.states
    if states is None or states - FINAL:
        yield "live"
    if states is None or states & FINAL:
        yield "past"


def _conditions(session: SqlSession, wanted: JobFilter, values: dict[str, Any]) -> Iterator[str]:
    if wanted.undisposed:
        yield "list_if_undisposed"
    if wanted.scheduled:
        yield "list_if_scheduled"
    if wanted.states is not None:
        yield _STATES.get(wanted.states, "list_if_states")
    here = (name for name in _OTHER if name not in session.filters)
    yield from (f"list_if_{name}" for name in here if getattr(wanted, name) is not None)
    if values["before"] is not None:
        yield "list_if_before"


def _values(session: SqlSession, wanted: JobFilter, limit: int, before: bytes | None) -> dict[str, Any]:
    key, value = wanted.label or (None, None)
    payload_path, payload_value = wanted.payload or (None, None)
    targets = (None, None) if wanted.target is None else stored_names(wanted.target)
    return {
        **{name: getattr(wanted, name) for name in ("tenant", *_EQUAL, *_OTHER) if name not in _PAIRS},
        "target": targets[0],
        "other_target": targets[1],
        "fire_after": _first_id(wanted.fire_after),
        "fire_before": _first_id(wanted.fire_before),
        "label_key": key,
        "label_value": value,
        "payload_path": payload_path,
        "payload_value": payload_value,
        "states": None if wanted.states is None else session.listed(wanted.states),
        "limit": limit,
        "before": before,
    }


def _first_id(fire_time: Micros | None) -> bytes | None:
    return None if fire_time is None else first_id(fire_time).bytes
