"""Schedules: definitions, versions, cursors, and the step that turns a cursor into jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from duetime.model.hint import JobHint, ScheduleHint
from duetime.model.ids import segment_of
from duetime.model.instant import Micros
from duetime.model.schedule import Change, Firing, Schedule, ScheduleFilter, ScheduleVersion, change_of
from duetime.model.search import has_label
from duetime.model.target import stored_names
from duetime.store import DueSchedules, ScheduleState
from duetime.stores.sql.listing import PAGE
from duetime.stores.sql.queues import add_queues
from duetime.stores.sql.rows import definition_row, schedule_of, version_of
from duetime.stores.sql.session import Row, SqlSession, SqlTransaction

_EQUAL = ("paused", "owner", "queue")


async def get(session: SqlSession, tenant: str, name: str | UUID) -> Schedule | None:
    statement, key = ("get_schedule_by_id", name.bytes) if isinstance(name, UUID) else ("get_schedule", name)
    row = await session.one(statement, (tenant, key))
    return None if row is None else schedule_of(row)


async def by_name(
    session: SqlSession, wanted: ScheduleFilter, limit: int, after_name: str | None
) -> list[Schedule]:
    """Conditions that the server cannot check are checked here, a page at a time."""
    filtered = any(getattr(wanted, name, None) is not None for name in session.filters)
    size = PAGE if filtered else limit
    found: list[Schedule] = []
    while len(found) < limit:
        page = await _page(session, wanted, size, after_name)
        found += [one for one in page if _matches(one, wanted)] if filtered else page
        if len(page) < size or not filtered:
            break
        after_name = page[-1].draft.name
    return found[:limit]


def _matches(schedule: Schedule, wanted: ScheduleFilter) -> bool:
    draft = schedule.draft
    if wanted.text is not None and wanted.text.casefold() not in draft.name.casefold():
        return False
    return wanted.label is None or has_label(draft.labels, *wanted.label)


async def _page(
    session: SqlSession, wanted: ScheduleFilter, limit: int, after_name: str | None
) -> list[Schedule]:
    equal = [name for name in _EQUAL if getattr(wanted, name) is not None]
    here = [name for name in ("text", "label") if name not in session.filters]
    parts = [f"schedules_if_{name}" for name in here if getattr(wanted, name) is not None]
    parts += ["schedules_after"] if after_name is not None else []
    values = {name: getattr(wanted, name) for name in ("tenant", *_EQUAL, "text")}
    key, value = wanted.label or (None, None)
    if wanted.target is not None:
        parts.insert(0, "list_if_target")
        values["target"], values["other_target"] = (
            stored_names(wanted.target)[0],
            stored_names(wanted.target)[-1],
        )
    values |= {"limit": limit, "after": after_name, "label_key": key, "label_value": value}
    rows = await session.composed("list_schedules", equal, [*parts, "schedules_order"], values)
    return [schedule_of(row) for row in rows]


async def versions(
    session: SqlSession, tenant: str, name: str, limit: int, before: int | None
) -> list[ScheduleVersion]:
    return [version_of(row) for row in await session.all("list_versions", (tenant, name, before, limit))]


async def due(session: SqlSession, wanted: DueSchedules, limit: int) -> list[Schedule]:
    listed = (session.listed(wanted.segments), wanted.until, limit)
    return [schedule_of(row) for row in await session.all("due_schedules", listed)]


async def write(
    transaction: SqlTransaction,
    tenant: str,
    name: str,
    state: ScheduleState | None,
    expect_version: int,
    author: str | None,
) -> Schedule | None:
    row = await transaction.one("lock_schedule", (tenant, name))
    old = None if row is None else schedule_of(row)
    if expect_version != (0 if old is None else old.version):
        return None
    if old is not None:
        withdrawn = await transaction.change("withdraw_jobs", (old.id.bytes, transaction.now))
        await transaction.change("record_withdrawal", (old.id.bytes, transaction.now, withdrawn))
    if state is None:
        return None if old is None else await _remove(transaction, old, author)
    version = 1 + (old.version if old else await transaction.value("newest_version", (tenant, name)))
    draft = state.draft if old is None else replace(state.draft, id=old.id)
    definition = (
        *definition_row(draft),
        version,
        segment_of(draft.id),
        state.paused,
        state.pause_note,
        state.next_fire_time,
    )
    statement = "create_schedule" if old is None else "replace_schedule"
    await transaction.change(statement, (*definition, transaction.now))
    new = await get(transaction, tenant, name)
    assert new is not None
    await _record(transaction, new, version, Change.CREATED if old is None else change_of(old, new), author)
    if new.next_fire_time is not None and not new.paused:
        transaction.tell([ScheduleHint(new.next_fire_time)])
    return new


async def _remove(transaction: SqlTransaction, old: Schedule, author: str | None) -> Schedule | None:
    await _record(transaction, old, old.version + 1, Change.REMOVED, author)
    withdrawn = await get(transaction, old.draft.tenant, old.id)
    await transaction.change("delete_schedule", (old.id.bytes,))
    return withdrawn


async def _record(
    transaction: SqlTransaction, schedule: Schedule, version: int, change: Change, author: str | None
) -> None:
    await transaction.change(
        "record_version", (schedule.id.bytes, version, transaction.now, author, str(change))
    )


async def fire(transaction: SqlTransaction, firings: Sequence[Firing]) -> int:
    """Move the cursors first: only the fires of those that moved are stored."""
    lanes = [await _move(transaction, firing) for firing in firings]
    moved = [(firing, lane) for firing, lane in zip(firings, lanes, strict=True) if lane is not None]
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
    await transaction.change_many("store_fire", runs)
    await transaction.change_many("store_skipped", skips)
    await add_queues(transaction, ((queue, tenant) for firing, (queue, _, tenant) in moved if firing.fires))
    transaction.tell(_hints(moved))
    return len(moved)


async def _move(transaction: SqlTransaction, firing: Firing) -> Row | None:
    latest = max((one.fire_time for one in firing.fires), default=None)
    parameters = (
        firing.schedule_id.bytes,
        firing.version,
        firing.cursor,
        firing.next_fire_time,
        firing.runs,
        latest,
    )
    return await transaction.one("move_cursor", parameters)


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
