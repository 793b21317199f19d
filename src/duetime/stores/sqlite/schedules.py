"""Schedules: definitions, versions, cursors, and the step that turns a cursor into jobs."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.model.hint import JobHint, ScheduleHint
from duetime.model.ids import segment_of
from duetime.model.instant import Micros
from duetime.model.schedule import Change, Firing, Schedule, ScheduleFilter, ScheduleVersion, change_of
from duetime.store import ScheduleState
from duetime.stores.sqlite.queues import add_queues
from duetime.stores.sqlite.rows import definition_row, schedule_of, text_of, version_of
from duetime.stores.sqlite.session import Row, SqliteSession, SqliteTransaction

_EQUAL = ("paused", "owner", "target", "queue")


def get(session: SqliteSession, tenant: str, name: str | UUID) -> Schedule | None:
    statement, key = ("get_schedule_by_id", name.bytes) if isinstance(name, UUID) else ("get_schedule", name)
    row = session.one(statement, (tenant, key))
    return None if row is None else schedule_of(row)


def by_name(
    session: SqliteSession, wanted: ScheduleFilter, limit: int, after_name: str | None
) -> list[Schedule]:
    equal = [name for name in _EQUAL if getattr(wanted, name) is not None]
    parts = [f"schedules_if_{name}" for name in ("text", "label") if getattr(wanted, name) is not None]
    parts += ["schedules_after"] if after_name is not None else []
    values = {name: getattr(wanted, name) for name in ("tenant", *_EQUAL, "text")}
    key, value = wanted.label or (None, None)
    values |= {"limit": limit, "after": after_name, "label_key": key, "label_value": value}
    return [
        schedule_of(row)
        for row in session.composed("list_schedules", equal, [*parts, "schedules_order"], values)
    ]


def versions(
    session: SqliteSession, tenant: str, name: str, limit: int, before: int | None
) -> list[ScheduleVersion]:
    return [version_of(row) for row in session.all("list_versions", (tenant, name, before, limit))]


def due(session: SqliteSession, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
    return [schedule_of(row) for row in session.all("due_schedules", (text_of(list(segments)), until, limit))]


def write(
    transaction: SqliteTransaction,
    tenant: str,
    name: str,
    state: ScheduleState | None,
    expect_version: int,
    author: str | None,
) -> Schedule | None:
    old = get(transaction, tenant, name)
    if expect_version != (0 if old is None else old.version):
        return None
    if old is not None:
        withdrawn = transaction.change("withdraw_jobs", (old.id.bytes, transaction.now))
        transaction.change("record_withdrawal", (old.id.bytes, transaction.now, withdrawn))
    if state is None:
        return None if old is None else _remove(transaction, old, author)
    version = 1 + (old.version if old is not None else transaction.value("newest_version", (tenant, name)))
    row = (
        *definition_row(state.draft),
        version,
        segment_of(state.draft.id),
        state.paused,
        state.pause_note,
        state.next_fire_time,
    )
    transaction.change("write_schedule", (*row, transaction.now))
    new = get(transaction, tenant, name)
    assert new is not None
    _record(transaction, new, version, Change.CREATED if old is None else change_of(old, new), author)
    if new.next_fire_time is not None and not new.paused:
        transaction.tell([ScheduleHint(new.next_fire_time)])
    return new


def _remove(transaction: SqliteTransaction, old: Schedule, author: str | None) -> Schedule | None:
    _record(transaction, old, old.version + 1, Change.REMOVED, author)
    withdrawn = get(transaction, old.draft.tenant, old.id)
    transaction.change("delete_schedule", (old.id.bytes,))
    return withdrawn


def _record(
    transaction: SqliteTransaction, schedule: Schedule, version: int, change: Change, author: str | None
) -> None:
    transaction.change("record_version", (schedule.id.bytes, version, transaction.now, author, str(change)))


def fire(transaction: SqliteTransaction, firings: Sequence[Firing]) -> int:
    """Move the cursors first: only the fires of those that moved are stored."""
    moved = [(firing, lane) for firing in firings if (lane := _move(transaction, firing)) is not None]
    runs: list[Row] = []
    skips: list[Row] = []
    for firing, _ in moved:
        key = firing.schedule_id.bytes
        for one in firing.fires:
            row = (key, one.id.bytes, one.fire_time, one.due_at, transaction.now)
            if one.skip_reason is None:
                runs.append(row)
            else:
                skips.append((*row, one.skip_reason))
    transaction.change_many("store_fire", runs)
    transaction.change_many("store_skipped", skips)
    add_queues(transaction, ((queue, tenant) for firing, (queue, _, tenant) in moved if firing.fires))
    transaction.tell(_hints(moved))
    return len(moved)


def _move(transaction: SqliteTransaction, firing: Firing) -> Row | None:
    latest = max((one.fire_time for one in firing.fires), default=None)
    parameters = (
        firing.schedule_id.bytes,
        firing.version,
        firing.cursor,
        firing.next_fire_time,
        firing.runs,
        latest,
    )
    return transaction.one("move_cursor", parameters)


def _hints(moved: list[tuple[Firing, Row]]) -> list[JobHint]:
    """One per lane, with its earliest due time."""
    earliest: dict[Row, Micros] = {}
    for firing, lane in moved:
        due_at = min((one.due_at for one in firing.fires if one.skip_reason is None), default=None)
        if due_at is not None:
            earliest[lane] = min(due_at, earliest.get(lane, due_at))
    return [
        JobHint(queue, priority, due_at, tenant) for (queue, priority, tenant), due_at in earliest.items()
    ]
