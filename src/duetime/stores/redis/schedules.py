"""Schedules: definitions, versions, cursors, and the step that turns a cursor into jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from duetime.model import codec
from duetime.model.hint import ScheduleHint, lane_hints
from duetime.model.ids import random_bytes, segment_of
from duetime.model.job import JobDraft
from duetime.model.schedule import (
    Change,
    Firing,
    Schedule,
    ScheduleFilter,
    ScheduleVersion,
    change_of,
    fired_job,
)
from duetime.model.search import selects_schedule
from duetime.store import DueSchedules, ScheduleState
from duetime.stores.redis.connection import Argument, RedisConnection
from duetime.stores.redis.notifier import RedisNotifier
from duetime.stores.redis.rows import pairs, row_rest
from duetime.stores.redis.schedule_rows import (
    instant,
    schedule_name,
    schedule_of,
    schedule_rest,
    version_of,
)

PAGE = 200  # schedules that are read at a time
_END = b"\xff"  # after the id or the version that follows a name


class RedisSchedules:
    def __init__(self, connection: RedisConnection, notifier: RedisNotifier) -> None:
        self._connection = connection
        self._notifier = notifier

    async def write(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None:
        old = await self.get(tenant, name) if expect_version else None
        if (0 if old is None else old.version) != expect_version or (old is None and state is None):
            return None
        identity = _identity(old, state)
        arguments: list[Argument] = [tenant, name, identity.bytes, segment_of(identity), expect_version]
        arguments += [random_bytes(8), codec.pack((author, _change(old, state)))]
        if state is not None:
            rest = schedule_rest(state.draft, state.pause_note)
            arguments += [int(state.paused), instant(state.next_fire_time), rest]
        found = await self._connection.run("write_schedule", *arguments)
        if found is None:
            return None
        if state is not None and state.next_fire_time is not None and not state.paused:
            self._notifier.notify([ScheduleHint(state.next_fire_time)])
        return schedule_of(*found)

    async def get(self, tenant: str, name: str | UUID) -> Schedule | None:
        if isinstance(name, UUID):
            found = await self._connection.run("get_schedules", "ids", name.bytes)
        else:
            key = schedule_name(tenant, name)
            found = await self._connection.run("get_schedules", "names", b"[" + key, b"(" + key + _END, 1)
        schedule = schedule_of(*found) if found else None
        return None if schedule is None or schedule.draft.tenant != tenant else schedule

    async def page(
        self, wanted: ScheduleFilter | DueSchedules, limit: int, after_name: str | None = None
    ) -> list[Schedule]:
        if isinstance(wanted, DueSchedules):
            rows = await self._connection.run("due_schedules", wanted.until, limit, *wanted.segments)
            return [schedule_of(*row) for row in pairs(rows)]
        return await self._by_name(wanted, limit, after_name)

    async def _by_name(self, wanted: ScheduleFilter, limit: int, after_name: str | None) -> list[Schedule]:
        found: list[Schedule] = []
        last = f"{wanted.tenant}\0".encode() + _END
        while len(found) < limit:
            first = (
                f"[{wanted.tenant}\0".encode()
                if after_name is None
                else b"(" + schedule_name(wanted.tenant, after_name) + _END
            )
            rows = await self._connection.run("get_schedules", "names", first, b"(" + last, PAGE)
            page = [schedule_of(*row) for row in pairs(rows)]
            found += [schedule for schedule in page if selects_schedule(wanted, schedule)]
            if len(page) < PAGE:
                break
            after_name = page[-1].draft.name
        return found[:limit]

    async def versions(
        self, tenant: str, name: str, limit: int, before: int | None = None
    ) -> list[ScheduleVersion]:
        key = schedule_name(tenant, name)
        last = _END if before is None else instant(before)
        found = await self._connection.command(
            "ZRANGE", f"{self._connection.address.keys}versions", b"(" + key + last, b"[" + key,
            "BYLEX", "REV", "LIMIT", 0, limit,
        )  # fmt: skip
        return [version_of(key, member) for member in found]

    async def fire(self, firings: Sequence[Firing]) -> int:
        """The definitions are read first. They belong to the versions that the firings name, or the server
        stores nothing."""
        if not firings:
            return 0
        identities = {firing.schedule_id.bytes for firing in firings}
        rows = await self._connection.run("get_schedules", "ids", *identities)
        schedules = {schedule.id: schedule for schedule in (schedule_of(*row) for row in pairs(rows))}
        planned = [firing for firing in firings if firing.schedule_id in schedules]
        jobs = [[fired_job(schedules[one.schedule_id], fire) for fire in one.fires] for one in planned]
        arguments = [
            argument
            for firing, drafts in zip(planned, jobs, strict=True)
            for argument in _fire_arguments(firing, drafts)
        ]
        applied = await self._connection.run("fire", *arguments)
        self._notifier.notify(
            lane_hints(
                draft
                for number in applied
                for draft, fire in zip(jobs[number - 1], planned[number - 1].fires, strict=True)
                if fire.skip_reason is None
            )
        )
        return len(applied)


def _identity(old: Schedule | None, state: ScheduleState | None) -> UUID:
    if old is not None:
        return old.id
    assert state is not None
    return state.draft.id


def _change(old: Schedule | None, state: ScheduleState | None) -> Change:
    if state is None:
        return Change.REMOVED
    if old is None:
        return Change.CREATED
    return change_of(old, replace(old, draft=replace(state.draft, id=old.id), paused=state.paused))


def _fire_arguments(firing: Firing, drafts: Sequence[JobDraft]) -> list[Argument]:
    arguments: list[Argument] = [
        firing.schedule_id.bytes,
        segment_of(firing.schedule_id),
        firing.version,
        instant(firing.cursor),
        instant(firing.next_fire_time),
        instant(max((fire.fire_time for fire in firing.fires), default=None)),
        firing.runs,
        len(firing.fires),
    ]
    for fire, draft in zip(firing.fires, drafts, strict=True):
        arguments += (fire.id.bytes, row_rest(draft), fire.skip_reason or "")
    return arguments
