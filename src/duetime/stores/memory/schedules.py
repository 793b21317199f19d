"""The table of schedules: definitions, cursors, and the step that turns a cursor into jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from heapq import nsmallest
from itertools import islice
from uuid import UUID

from duetime.model.ids import segment_of
from duetime.model.instant import Micros
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
from duetime.store import ScheduleState
from duetime.stores.memory.jobs import MemoryJobs


class MemorySchedules:
    def __init__(self, jobs: MemoryJobs) -> None:
        self._jobs = jobs
        self._by_id: dict[UUID, Schedule] = {}
        self._ids: dict[tuple[str, str], UUID] = {}
        self._versions: dict[tuple[str, str], list[ScheduleVersion]] = {}  # by tenant and name, oldest first

    def get(self, tenant: str, name: str) -> Schedule | None:
        found = self._ids.get((tenant, name))
        return None if found is None else self._by_id[found]

    def by_id(self, tenant: str, schedule_id: UUID) -> Schedule | None:
        found = self._by_id.get(schedule_id)
        return None if found is None or found.draft.tenant != tenant else found

    def by_name(self, wanted: ScheduleFilter, limit: int, after_name: str | None) -> list[Schedule]:
        found = (
            one
            for one in self._by_id.values()
            if selects_schedule(wanted, one) and (after_name is None or one.draft.name > after_name)
        )
        return nsmallest(limit, found, key=lambda one: one.draft.name)

    def versions(self, tenant: str, name: str, limit: int, before: int | None) -> list[ScheduleVersion]:
        found = (
            one
            for one in reversed(self._versions.get((tenant, name), ()))
            if before is None or one.version < before
        )
        return list(islice(found, limit))

    def every(self) -> list[Schedule]:
        return list(self._by_id.values())

    def restore(self, schedule: Schedule) -> None:
        self._ids[schedule.draft.tenant, schedule.draft.name] = schedule.id
        self._keep(schedule)

    def remove(self, tenant: str, name: str) -> None:
        del self._by_id[self._ids.pop((tenant, name))]

    def every_version(self) -> list[ScheduleVersion]:
        return [row for rows in self._versions.values() for row in rows]

    def restore_version(self, row: ScheduleVersion) -> None:
        rows = self._versions.setdefault((row.draft.tenant, row.draft.name), [])
        rows.append(row)
        rows.sort(key=lambda row: row.version)

    def remove_version(self, tenant: str, name: str, version: int) -> None:
        self._versions[tenant, name] = [row for row in self._versions[tenant, name] if row.version != version]

    def write(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None,
        now: Micros,
    ) -> Schedule | None:
        old = self.get(tenant, name)
        if expect_version != (0 if old is None else old.version):
            return None
        if old is None:
            return None if state is None else self._create(state, author, now)
        if state is None:
            self._record(replace(old, version=old.version + 1), Change.REMOVED, author, now)
            self.remove(tenant, name)
            return self._withdrawn(old, now)
        new = replace(
            self._withdrawn(old, now),
            draft=replace(state.draft, id=old.id),
            version=old.version + 1,
            paused=state.paused,
            pause_note=state.pause_note,
            next_fire_time=state.next_fire_time,
            updated_at=now,
        )
        self._record(new, change_of(old, new), author, now)
        return self._keep(new)

    def _create(self, state: ScheduleState, author: str | None, now: Micros) -> Schedule:
        draft = state.draft
        newest = self.versions(draft.tenant, draft.name, 1, None)
        version = newest[0].version + 1 if newest else 1
        new = Schedule(
            draft,
            draft.id,
            version,
            segment_of(draft.id),
            state.paused,
            state.pause_note,
            state.next_fire_time,
            None,
            0,
            now,
            now,
        )
        self._ids[draft.tenant, draft.name] = draft.id
        self._record(new, Change.CREATED, author, now)
        return self._keep(new)

    def due(self, segments: Collection[int], until: Micros, limit: int) -> list[Schedule]:
        due = (
            (cursor, schedule.id, schedule) for cursor, schedule in self._waiting(segments) if cursor <= until
        )
        return [schedule for _, _, schedule in nsmallest(limit, due)]

    def fire(self, firing: Firing, now: Micros) -> list[JobDraft] | None:
        """The jobs to run that came of it; None when the schedule has moved on since the firing was
        planned."""
        schedule = self._by_id.get(firing.schedule_id)
        if (
            schedule is None
            or schedule.paused
            or (schedule.version, schedule.next_fire_time) != (firing.version, firing.cursor)
        ):
            return None
        self._keep(_advanced(schedule, firing))
        return [
            draft
            for fire in firing.fires
            if (draft := self._store(fired_job(schedule, fire), fire.skip_reason, now)) is not None
        ]

    def _store(self, draft: JobDraft, skip_reason: str | None, now: Micros) -> JobDraft | None:
        if skip_reason is not None:
            self._jobs.add_skipped(draft, skip_reason, now)
            return None
        self._jobs.add(draft, now)
        return draft

    def _waiting(self, segments: Collection[int]) -> Iterator[tuple[Micros, Schedule]]:
        wanted = frozenset(segments)
        for schedule in self._by_id.values():
            if schedule.next_fire_time is not None and not schedule.paused and schedule.segment in wanted:
                yield schedule.next_fire_time, schedule

    def forget_versions(self, before: Micros) -> None:
        """Of schedules that are gone."""
        for name, rows in list(self._versions.items()):
            kept = [row for row in rows if row.at >= before or row.draft.id in self._by_id]
            if kept:
                self._versions[name] = kept
            else:
                del self._versions[name]

    def _record(self, schedule: Schedule, change: Change, author: str | None, now: Micros) -> None:
        draft = schedule.draft
        made = ScheduleVersion(
            schedule.version, now, author, change, schedule.paused, replace(draft, id=schedule.id)
        )
        self._versions.setdefault((draft.tenant, draft.name), []).append(made)

    def _withdrawn(self, schedule: Schedule, now: Micros) -> Schedule:
        """Take back what has not started and lies ahead; last_fire_time becomes the latest fire that can no
        longer be taken back."""
        planned = [
            row
            for row in self._jobs.of_schedule(schedule.id)
            if row.waits_unstarted() and row.draft.fire_time > now
        ]
        for row in planned:
            self._jobs.remove(row)
        kept = [row.draft.fire_time for row in self._jobs.of_schedule(schedule.id)]
        if schedule.last_fire_time is not None:
            kept.append(min(schedule.last_fire_time, now))
        return replace(schedule, runs=schedule.runs - len(planned), last_fire_time=max(kept, default=None))

    def _keep(self, schedule: Schedule) -> Schedule:
        self._by_id[schedule.id] = schedule
        return schedule


def _advanced(schedule: Schedule, firing: Firing) -> Schedule:
    moments = [fire.fire_time for fire in firing.fires]
    if schedule.last_fire_time is not None:
        moments.append(schedule.last_fire_time)
    return replace(
        schedule,
        next_fire_time=firing.next_fire_time,
        last_fire_time=max(moments, default=None),
        runs=firing.runs,
    )
