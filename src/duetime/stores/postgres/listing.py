"""The queries of list_jobs, count_jobs and list_schedules.

Jobs are listed live and past together, newest fire time first, a page at a time. Ids sort by fire time: the
primary key gives the order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from duetime.model.codec import encode
from duetime.model.ids import first_id
from duetime.model.job import FINAL, JobFilter, State
from duetime.model.schedule import ScheduleFilter
from duetime.model.search import field_values
from duetime.model.target import stored_names
from duetime.stores.postgres.connections import SQL

LIVE, PAST = SQL["live_jobs"], SQL["past_jobs"]
ONE = f"{LIVE} WHERE tenant = $1 AND id = $2 UNION ALL {PAST} WHERE tenant = $1 AND id = $2 LIMIT 1"
_THIS = "WHERE tenant = x.tenant AND id = x.id"
BY_ID = f"""SELECT j.* FROM unnest($1::text[], $2::uuid[]) AS x(tenant, id)
    CROSS JOIN LATERAL ({LIVE} {_THIS} UNION ALL {PAST} {_THIS} LIMIT 1) j"""  # noqa: S608


@dataclass(slots=True)
class ListQuery:
    text: str = ""
    arguments: list[Any] = field(default_factory=list)

    def bind(self, value: Any) -> str:
        self.arguments.append(value)
        return f"${len(self.arguments)}"


def query(wanted: JobFilter, limit: int, before: UUID | None) -> ListQuery | None:
    """None when the filter selects nothing."""
    made = ListQuery()
    conditions = _conditions(made, wanted)
    if before is not None:
        conditions.append(f"id < {made.bind(before)}")
    sources = _sources(wanted, conditions)
    if not sources:
        return None
    made.text = _text(sources, made.bind(limit))
    return made


def count(wanted: JobFilter, limit: int) -> ListQuery | None:
    """None when the filter selects nothing."""
    made = ListQuery()
    sources = _sources(wanted, _conditions(made, wanted))
    if not sources:
        return None
    most = made.bind(limit)
    parts = " UNION ALL ".join(
        f"(SELECT FROM {table} WHERE {where} LIMIT {most})" for _, table, where in sources
    )
    made.text = f"SELECT count(*) FROM (SELECT FROM ({parts}) p LIMIT {most}) c"  # noqa: S608
    return made


def schedules(wanted: ScheduleFilter, limit: int, after_name: str | None) -> ListQuery:
    made = ListQuery()
    columns = ("tenant", "paused", "owner", "queue")
    conditions = [
        f"{column} = {made.bind(value)}"
        for column in columns
        if (value := getattr(wanted, column)) is not None
    ]
    if wanted.target is not None:
        conditions.append(f"target = ANY ({made.bind(stored_names(wanted.target))})")
    if after_name is not None:
        conditions.append(f"name > {made.bind(after_name)}")
    if wanted.text is not None:
        conditions.append(_contains(made, "name", wanted.text))
    where = " AND ".join([*conditions, *_label(made, wanted.label)])
    made.text = f"SELECT * FROM duetime.schedules WHERE {where} ORDER BY name LIMIT {made.bind(limit)}"  # noqa: S608
    return made


def _text(sources: list[tuple[str, str, str]], limit: str) -> str:
    """Only constants are in the text; values are bound."""
    tops = " UNION ALL ".join(
        f"({columns} WHERE {where} ORDER BY id DESC LIMIT {limit})" for columns, _, where in sources
    )
    return f"SELECT * FROM ({tops}) t ORDER BY id DESC LIMIT {limit}"  # noqa: S608


def _conditions(made: ListQuery, wanted: JobFilter) -> list[str]:
    """Only the fields of the filter, so that the planner sees which index fits."""
    columns = ("tenant", "queue", "owner", "schedule", "node")
    conditions = [
        f"{column} = {made.bind(value)}"
        for column in columns
        if (value := getattr(wanted, column)) is not None
    ]
    if wanted.target is not None:
        conditions.append(f"target = ANY ({made.bind(stored_names(wanted.target))})")
    if wanted.due_after is not None:
        conditions.append(f"due_at >= {made.bind(wanted.due_after)}")
    if wanted.due_before is not None:
        conditions.append(f"due_at < {made.bind(wanted.due_before)}")
    if wanted.fire_after is not None:
        conditions.append(f"id >= {made.bind(first_id(wanted.fire_after))}")
    if wanted.fire_before is not None:
        conditions.append(f"id < {made.bind(first_id(wanted.fire_before))}")
    if wanted.scheduled:
        conditions.append("schedule IS NOT NULL")
    if wanted.error is not None:
        conditions.append(_contains(made, "error", wanted.error))
    if wanted.error_group is not None:
        conditions.append(f"duetime.error_group(coalesce(error, '')) = {made.bind(wanted.error_group)}")
    if wanted.payload is not None:
        path, value = wanted.payload
        values = [encode(one).decode() for one in field_values(value)]
        conditions.append(
            f"duetime.has_field(payload, {made.bind(path.split('.'))}::text[], {made.bind(values)}::text[])"
        )
    return [*conditions, *_label(made, wanted.label)]


def _contains(made: ListQuery, column: str, text: str) -> str:
    """By the database's own locale; case does not matter."""
    return f'strpos(lower({column} COLLATE "default"), lower({made.bind(text)}::text)) > 0'


def _label(made: ListQuery, label: tuple[str, str] | None) -> list[str]:
    """Last, and without an index, which would cost every job with labels three times as much."""
    return (
        [] if label is None else [f"duetime.has_label(labels, {made.bind(label[0])}, {made.bind(label[1])})"]
    )


def _sources(wanted: JobFilter, conditions: list[str]) -> list[tuple[str, str, str]]:
    """Columns, table and condition of each table that can have such jobs."""
    states = frozenset(State) if wanted.states is None else wanted.states
    if wanted.undisposed:
        states &= {State.DEAD}
        conditions = [*conditions, "disposition IS NULL"]
    sources = []
    for columns, table, possible in (
        (LIVE, "duetime.jobs", frozenset(State) - FINAL),
        (PAST, "duetime.history", FINAL),
    ):
        if chosen := sorted(states & possible):
            names = ", ".join(f"'{state}'" for state in chosen)
            by_state = [] if len(chosen) == len(possible) else [f"state IN ({names})"]
            sources.append((columns, table, " AND ".join([*conditions, *by_state])))
    return sources
