"""Schedules: definitions, cursors, and the step that turns a cursor into jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from duetime.errors import StoreUnavailable
from duetime.model.hint import Hint, JobHint, ScheduleHint
from duetime.model.ids import segment_of
from duetime.model.instant import Micros
from duetime.model.schedule import Change, Firing, Schedule, ScheduleDraft, ScheduleFilter, ScheduleVersion
from duetime.stores.postgres import listing
from duetime.stores.postgres.bell import Bell
from duetime.stores.postgres.editing import Creation, Editing, if_committed, withdraw
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.postgres.rows import definition_of, schedule_of, version_of
from duetime.stores.postgres.together import Together, by_statement

MOST_RIVALS = 10


class Schedules:
    def __init__(self, lines: Lines, bell: Bell) -> None:
        self._lines = lines
        self._bell = bell
        self._editing = Editing(lines.submit)
        self._creating = Together(lines.submit, Creation)
        self._resuming = Together(lines.submit, by_statement(SQL["resume_schedules"], "name"))
        self._finding = Together(lines.read, by_statement(SQL["get_schedules"], "name", SQL["get_schedule"]))

    # -- editing ------------------------------------------------------------------------------------------------------
    async def put(
        self, draft: ScheduleDraft, next_fire_time: Micros | None, expect_version: int | None, author: str | None
    ) -> Schedule | None:
        row = None
        if not expect_version:
            row = await self._insert_numbered(draft, next_fire_time, author)
        if row is None and expect_version != 0:
            row = await self._replace((*_definition(draft), next_fire_time, expect_version), author)
        return self._told(row)

    async def pause(self, tenant: str, name: str, note: str | None, author: str | None) -> Schedule | None:
        row = await self._editing.pause(tenant, name, note, author)
        return None if row is None else schedule_of(row)

    async def resume(
        self, tenant: str, name: str, next_fire_time: Micros | None, author: str | None, expect_version: int | None
    ) -> Schedule | None:
        row = await self._resuming.ask((tenant, name), next_fire_time, author, expect_version)
        return await self.get(tenant, name) if row is None else self._told(row)

    async def remove(self, tenant: str, name: str, author: str | None, expect_version: int | None) -> Schedule | None:
        row = await self._editing.remove(tenant, name, author, expect_version)
        return None if row is None else schedule_of(row)

    async def _insert_numbered(self, draft: ScheduleDraft, next_fire_time: Micros | None, author: str | None) -> Any:
        """Again, if an earlier schedule of this name went in the same moment: its last number was not to be seen."""
        tenant, name, *definition = _definition(draft)
        for _ in range(MOST_RIVALS):
            with contextlib.suppress(asyncpg.UniqueViolationError):
                return await self._creating.ask((tenant, name), *definition, draft.id, segment_of(draft.id), next_fire_time, author)
        raise StoreUnavailable(f"schedule {draft.name!r} comes and goes too fast: repeat")

    async def _replace(self, values: Sequence[Any], author: str | None) -> Any:
        reached = None

        async def work(connection: Any) -> Any:
            nonlocal reached
            schedule_id = await connection.fetchval(SQL["replace_schedule"], *values)
            if schedule_id is None:
                return await if_committed(connection, reached, Change.REPLACED)
            [reached] = await withdraw(connection, Change.REPLACED, {schedule_id: author})
            return reached

        return await self._lines.submit.run(work, atomic=True)

    def _told(self, row: Any) -> Schedule | None:
        if row is None:
            return None
        schedule = schedule_of(row)
        if schedule.next_fire_time is not None and not schedule.paused:
            self._bell.ring([ScheduleHint(schedule.next_fire_time)])
        return schedule

    # -- looking ------------------------------------------------------------------------------------------------------
    async def get(self, tenant: str, name: str) -> Schedule | None:
        row = await self._finding.ask((tenant, name))
        return None if row is None else schedule_of(row)

    async def by_id(self, tenant: str, schedule_id: UUID) -> Schedule | None:
        row = await self._lines.read.row(SQL["get_schedule_by_id"], tenant, schedule_id)
        return None if row is None else schedule_of(row)

    async def by_name(self, wanted: ScheduleFilter, limit: int, after_name: str | None) -> list[Schedule]:
        query = listing.schedules(wanted, limit, after_name)
        return [schedule_of(row) for row in await self._lines.read.fetch(query.text, *query.arguments)]

    async def versions(self, tenant: str, name: str, limit: int, before: int | None) -> list[ScheduleVersion]:
        return [version_of(row) for row in await self._lines.read.fetch(SQL["list_versions"], tenant, name, before, limit)]

    async def due(self, segments: Sequence[int], until: Micros, limit: int) -> list[Schedule]:
        return [schedule_of(row) for row in await self._lines.plan.fetch(SQL["due_schedules"], list(segments), until, limit)]

    # -- firing -------------------------------------------------------------------------------------------------------
    async def fire(self, firings: Sequence[Firing]) -> int:
        rounds = _rounds(firings)

        async def work(connection: Any) -> list[Any]:
            return [row for firings in rounds for row in await connection.fetch(SQL["fire"], *_fire_columns(firings))]

        rows = await self._lines.plan.run(work, atomic=len(rounds) > 1) if rounds else []
        hints: list[Hint] = [JobHint(row["queue"], row["priority"], row["due_at"]) for row in rows if row["queue"] is not None]
        self._bell.ring(hints)
        return sum(row["applied"] or 0 for row in rows)


def _definition(draft: ScheduleDraft) -> list[Any]:
    return [
        draft.tenant,
        draft.name,
        definition_of(draft),
        draft.target,
        draft.target_spec,
        draft.payload,
        draft.policies,
        draft.queue,
        draft.priority,
        draft.overlap,
        draft.jitter,
        draft.start_at,
        draft.end_at,
        draft.max_runs,
        draft.owner,
        draft.labels,
        draft.gate,
    ]


def _rounds(firings: Iterable[Firing]) -> list[list[Firing]]:
    """One statement moves a schedule once: further steps of the same schedule go into statements of their own."""
    rounds: list[list[Firing]] = []
    steps: dict[UUID, int] = {}
    for firing in firings:
        step = steps[firing.schedule_id] = steps.get(firing.schedule_id, -1) + 1
        if step == len(rounds):
            rounds.append([])
        rounds[step].append(firing)
    return rounds


def _fire_columns(firings: Sequence[Firing]) -> list[Any]:
    fires = [(firing.schedule_id, *fire) for firing in firings for fire in firing.fires]
    numbers = [fire[1].int for fire in fires] or [0]
    return [
        [firing.schedule_id for firing in firings],
        [firing.version for firing in firings],
        [firing.cursor for firing in firings],
        [firing.next_fire_time for firing in firings],
        [firing.runs for firing in firings],
        [max((fire.fire_time for fire in firing.fires), default=None) for firing in firings],
        *(zip(*fires, strict=True) if fires else ([],) * 5),
        UUID(int=min(numbers)),
        UUID(int=max(numbers)),
    ]
