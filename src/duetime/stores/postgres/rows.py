"""Rows of the server as values of the model."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from duetime.model import codec
from duetime.model.job import Attempt, Claimed, Ending, Job, State
from duetime.model.lease import Node
from duetime.model.limit import Queue, QueueCounts, Rate
from duetime.model.schedule import Change, Missed, Schedule, ScheduleDraft, ScheduleVersion
from duetime.model.when import When, restore, to_json


def claimed_of(row: Any) -> Claimed:
    """The columns have the order of the fields. Tens of thousands pass here every second: a slice is copied
    faster than a row."""
    return tuple.__new__(Claimed, row[:])


def job_of(row: Any) -> Job:
    values = list(row)
    values[STATE] = State(values[STATE])
    values[NODE] = values[NODE] or None  # node 0 is not a node: the job is external
    return Job(*values)


STATE, NODE = (list(Job.__dataclass_fields__).index(name) for name in ("state", "node"))


def attempt_of(row: Any) -> Attempt:
    return Attempt(
        row["job_id"],
        row["attempt"],
        row["node"] or None,
        Ending(row["ending"]),
        row["started_at"],
        row["finished_at"],
        row["error"],
        row["result"],
    )


def node_of(row: Any) -> Node:
    number, name, roles, version, started_at, lease_until, dead, has_left, running = row
    return Node(number, name, tuple(roles), version, started_at, lease_until, dead, has_left, running)


def queue_of(row: Any) -> Queue:
    name, paused, pause_note, paused_at, max_running, rate_count, rate_period, pending, due, running = row
    rate = None if rate_count is None else Rate(rate_count, rate_period)
    counts = None if pending is None else QueueCounts(pending, due, running)
    return Queue(name, paused, pause_note, paused_at, max_running, rate, counts)


def schedule_of(row: Any) -> Schedule:
    return Schedule(
        draft=_draft_of(row),
        id=row["id"],
        version=row["version"],
        segment=row["segment"],
        paused=row["paused"],
        pause_note=row["pause_note"],
        next_fire_time=row["next_fire_time"],
        last_fire_time=row["last_fire_time"],
        runs=row["runs"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def version_of(row: Any) -> ScheduleVersion:
    return ScheduleVersion(
        row["version"], row["at"], row["author"], Change(row["change"]), row["paused"], _draft_of(row)
    )


def definition_of(draft: ScheduleDraft) -> bytes:
    """The parts of a schedule that only Python reads."""
    return codec.encode({"when": to_json(draft.when), "missed": draft.missed.to_json()})


def _draft_of(row: Any) -> ScheduleDraft:
    when, missed = _read_definition(row["definition"])
    return ScheduleDraft(
        id=row["id"],
        tenant=row["tenant"],
        name=row["name"],
        when=when,
        target=row["target"],
        target_spec=row["target_spec"],
        payload=row["payload"],
        policies=row["policies"],
        queue=row["queue"],
        priority=row["priority"],
        overlap=row["overlap"],
        missed=missed,
        jitter=row["jitter"],
        start_at=row["start_at"],
        end_at=row["end_at"],
        max_runs=row["max_runs"],
        owner=row["owner"],
        labels=row["labels"],
        limit_key=row["limit_key"],
    )


@lru_cache(maxsize=10_000)
def _read_definition(definition: bytes) -> tuple[When, Missed]:
    """Planners read the same schedules repeatedly; to parse a cron expression costs more than to fetch it."""
    value = codec.decode(definition)
    return restore(value["when"]), Missed.restore(value["missed"])
