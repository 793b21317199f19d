"""Schedules: definitions, cursors, and the step that turns a cursor into jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from duetime.model.hint import Hint, JobHint, ScheduleHint
from duetime.model.ids import segment_of
from duetime.model.instant import Micros
from duetime.model.schedule import Change, Firing, Schedule, ScheduleDraft, ScheduleFilter, ScheduleVersion
from duetime.stores.sqlite.jobs import note_queues
from duetime.stores.sqlite.rows import schedule_of, schedule_row, text_of, version_of
from duetime.stores.sqlite.session import STATEMENTS, Row, Session, Transaction

_EQUAL = ("paused", "owner", "target", "queue")


def get(session: Session, tenant: str, name: str) -> Schedule | None:
    row = session.one("get_schedule", (tenant, name))
    return None if row is None else schedule_of(row)


def by_id(session: Session, tenant: str, schedule_id: UUID) -> Schedule | None:
    row = session.one("get_schedule_by_id", (tenant, schedule_id.bytes))
    return None if row is None else schedule_of(row)


def by_name(session: Session, wanted: ScheduleFilter, limit: int, after_name: str | None) -> list[Schedule]:
    conditions = [name for name in (*_EQUAL, "text", "label") if getattr(wanted, name) is not None]
    names = ["list_schedules", *(["schedules_after"] if after_name is not None else []), *(f"schedules_if_{name}" for name in conditions)]
    statement = "\n".join([*(STATEMENTS[name] for name in names), STATEMENTS["schedules_order"]])
    values = {"tenant": wanted.tenant, "limit": limit, "after": after_name, **{name: getattr(wanted, name) for name in (*_EQUAL, "text")}}
    key, value = wanted.label or (None, None)
    rows = session.connection.execute(statement, {**values, "label_key": key, "label_value": value}).fetchall()
    return [schedule_of(row) for row in rows]


def versions(session: Session, tenant: str, name: str, limit: int, before: int | None) -> list[ScheduleVersion]:
    return [version_of(row) for row in session.all("list_versions", (tenant, name, before, limit))]


def due(session: Session, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
    return [schedule_of(row) for row in session.all("due_schedules", (text_of(list(segments)), until, limit))]


def put(
    transaction: Transaction, draft: ScheduleDraft, next_fire_time: Micros | None, expect_version: int | None, author: str | None
) -> Schedule | None:
    old = get(transaction, draft.tenant, draft.name)
    if expect_version is not None and expect_version != (0 if old is None else old.version):
        return None
    row = schedule_row(draft, segment_of(draft.id), next_fire_time, transaction.now)
    if old is None:
        version = transaction.value("newest_version", (draft.tenant, draft.name)) + 1
        transaction.change("insert_schedule", (*row, version))
        _note(transaction, draft.id, Change.CREATED, author)
    else:
        transaction.change("replace_schedule", row)
        _withdraw(transaction, old)
        _note(transaction, old.id, Change.REPLACED, author)
    return _told(transaction, draft.tenant, draft.name)


def pause(transaction: Transaction, tenant: str, name: str, note: str | None, author: str | None) -> Schedule | None:
    old = get(transaction, tenant, name)
    if old is None:
        return None
    transaction.change("pause_schedule", (old.id.bytes, note, transaction.now))
    _withdraw(transaction, old)
    _note(transaction, old.id, Change.PAUSED, author)
    return get(transaction, tenant, name)


def resume(
    transaction: Transaction, tenant: str, name: str, next_fire_time: Micros | None, author: str | None, expect_version: int | None
) -> Schedule | None:
    old = get(transaction, tenant, name)
    if old is None or not old.paused or expect_version not in (None, old.version):
        return old
    transaction.change("resume_schedule", (old.id.bytes, next_fire_time, transaction.now))
    _withdraw(transaction, old)
    _note(transaction, old.id, Change.RESUMED, author)
    return _told(transaction, tenant, name)


def remove(transaction: Transaction, tenant: str, name: str, author: str | None, expect_version: int | None) -> Schedule | None:
    old = get(transaction, tenant, name)
    if old is None or expect_version not in (None, old.version):
        return None
    _withdraw(transaction, old)
    withdrawn = get(transaction, tenant, name)
    _note(transaction, old.id, Change.REMOVED, author)
    transaction.change("delete_schedule", (old.id.bytes,))
    return withdrawn


def _withdraw(transaction: Transaction, schedule: Schedule) -> None:
    key = schedule.id.bytes
    withdrawn = transaction.change("withdraw_jobs", (key, transaction.now))
    transaction.change("record_withdrawal", (key, transaction.now, withdrawn))


def _note(transaction: Transaction, schedule_id: UUID, change: Change, author: str | None) -> None:
    further = 1 if change is Change.REMOVED else 0  # the others have raised the version already
    transaction.change("note_version", (schedule_id.bytes, further, transaction.now, author, str(change)))


def _told(transaction: Transaction, tenant: str, name: str) -> Schedule | None:
    schedule = get(transaction, tenant, name)
    hints: list[Hint] = [] if schedule is None or schedule.next_fire_time is None else [ScheduleHint(schedule.next_fire_time)]
    transaction.tell(hints)
    return schedule


def fire(transaction: Transaction, firings: Sequence[Firing], known_queues: Collection[str]) -> int:
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
    note_queues(transaction, {queue for firing, (queue, _) in moved if firing.fires}, known_queues)
    transaction.tell(_hints(moved))
    return len(moved)


def _move(transaction: Transaction, firing: Firing) -> Row | None:
    latest = max((one.fire_time for one in firing.fires), default=None)
    parameters = (firing.schedule_id.bytes, firing.version, firing.cursor, firing.next_fire_time, firing.runs, latest)
    return transaction.one("move_cursor", parameters)


def _hints(moved: list[tuple[Firing, Row]]) -> list[JobHint]:
    """One per lane, with its earliest due time."""
    earliest: dict[Row, Micros] = {}
    for firing, lane in moved:
        due_at = min((one.due_at for one in firing.fires if one.skip_reason is None), default=None)
        if due_at is not None:
            earliest[lane] = min(due_at, earliest.get(lane, due_at))
    return [JobHint(queue, priority, due_at) for (queue, priority), due_at in earliest.items()]
