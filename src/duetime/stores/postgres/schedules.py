"""Schedules: definitions, cursors, and the step that turns a cursor into jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg

from duetime.errors import StoreUnavailable
from duetime.model.hint import ScheduleHint
from duetime.model.ids import segment_of
from duetime.model.schedule import Change, Firing, Schedule, ScheduleFilter, ScheduleVersion, change_of
from duetime.store import DueSchedules, ScheduleState
from duetime.stores.postgres import listing
from duetime.stores.postgres.batching import Batch, Batcher, Replies, Subject, by_statement, columns
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.notifier import Notifier, hint_of
from duetime.stores.postgres.rows import definition_of, schedule_of, version_of

MAX_RACES = 10
ID = -3  # its position among the values of a new schedule


class PostgresSchedules:
    """Schedules that are created, or changed, at the same time are written by the same statements."""

    def __init__(self, connections: PostgresConnections, notifier: Notifier) -> None:
        self._connections = connections
        self._notifier = notifier
        self._create = Batcher(connections.submit, ScheduleInsert)
        self._change = Batcher(connections.submit, ScheduleWrite, atomic=True)
        self._get = Batcher(connections.read, by_statement(SQL["get_schedules"], "name", SQL["get_schedule"]))

    async def write(
        self,
        tenant: str,
        name: str,
        state: ScheduleState | None,
        expect_version: int,
        author: str | None = None,
    ) -> Schedule | None:
        schedule: Schedule | None = None
        if expect_version:
            schedule = await self._change.submit((tenant, name), expect_version, author, state)
        elif state is not None:
            schedule = await self._insert(tenant, name, state, author)
        if (
            schedule is not None
            and state is not None
            and schedule.next_fire_time is not None
            and not schedule.paused
        ):
            self._notifier.notify([ScheduleHint(schedule.next_fire_time)])
        return schedule

    async def _insert(
        self, tenant: str, name: str, state: ScheduleState, author: str | None
    ) -> Schedule | None:
        """Repeated if an earlier schedule of the name is removed at the same time: its last version was not
        visible."""
        number = state.draft.id
        for _ in range(MAX_RACES):
            with contextlib.suppress(asyncpg.UniqueViolationError):
                row = await self._create.submit(
                    (tenant, name), *_values(state), number, segment_of(number), author
                )
                return None if row is None else schedule_of(row)
        raise StoreUnavailable(f"schedule {name!r} is created and removed too fast: repeat")

    # -- reading
    async def get(self, tenant: str, name: str | UUID) -> Schedule | None:
        if isinstance(name, UUID):
            row = await self._connections.read.row(SQL["get_schedule_by_id"], tenant, name)
        else:
            row = await self._get.submit((tenant, name))
        return None if row is None else schedule_of(row)

    async def page(
        self, wanted: ScheduleFilter | DueSchedules, limit: int, after_name: str | None = None
    ) -> list[Schedule]:
        if isinstance(wanted, DueSchedules):
            arguments = list(wanted.segments), wanted.until, limit
            rows = await self._connections.plan.fetch(SQL["due_schedules"], *arguments)
        else:
            query = listing.schedules(wanted, limit, after_name)
            rows = await self._connections.read.fetch(query.text, *query.arguments)
        return [schedule_of(row) for row in rows]

    async def versions(
        self, tenant: str, name: str, limit: int, before: int | None = None
    ) -> list[ScheduleVersion]:
        return [
            version_of(row)
            for row in await self._connections.read.fetch(SQL["list_versions"], tenant, name, before, limit)
        ]

    # -- firing
    async def fire(self, firings: Sequence[Firing]) -> int:
        rounds = _rounds(firings)

        async def work(connection: Any, _is_retry: bool) -> list[Any]:
            return [
                row
                for firings in rounds
                for row in await connection.fetch(SQL["fire"], *_fire_columns(firings))
            ]

        rows = await self._connections.plan.run(work, atomic=len(rounds) > 1) if rounds else []
        self._notifier.notify([hint_of(row) for row in rows if row["queue"] is not None])
        return sum(row["applied"] or 0 for row in rows)


class ScheduleInsert:
    """New schedules. A name that is taken gets no reply, unless an earlier try, whose reply was lost, took
    it."""

    def __init__(self, batch: Batch) -> None:
        self._columns = columns(batch)
        self._ids = {request.subject: request.values[ID] for request in batch}

    async def __call__(self, connection: Any, is_retry: bool) -> Replies:
        created = _by_subject(await connection.fetch(SQL["insert_schedules"], *self._columns))
        if is_retry and len(created) < len(self._ids):
            known = _by_subject(await connection.fetch(SQL["get_schedules"], *zip(*self._ids, strict=True)))
            created |= {subject: row for subject, row in known.items() if row["id"] == self._ids[subject]}
        return created


class ScheduleWrite:
    """Changes and removals of schedules that are at the expected version. A repetition returns what an
    earlier try, whose reply was lost, has committed."""

    def __init__(self, batch: Batch) -> None:
        self._versions = {request.subject: request.values[0] for request in batch}
        self._authors = {request.subject: request.values[1] for request in batch}
        self._states: dict[Subject, ScheduleState | None] = {
            request.subject: request.values[2] for request in batch
        }
        self._written: dict[Subject, Schedule] = {}

    async def __call__(self, connection: Any, is_retry: bool) -> Replies:
        tenants, names = zip(*self._versions, strict=True)
        rows = await connection.fetch(SQL["lock_schedules"], tenants, names, [*self._versions.values()])
        old = {(row["tenant"], row["name"]): schedule_of(row) for row in rows}
        earlier = {subject: done for subject, done in self._written.items() if subject not in old}
        replies = {
            subject: await self._if_committed(connection, subject, done) for subject, done in earlier.items()
        }
        if old:
            self._written = await self._write(connection, old)
        return replies | (self._written if old else {})

    async def _write(self, connection: Any, old: dict[Subject, Schedule]) -> dict[Subject, Schedule]:
        states = {old[subject].id: state for subject in old if (state := self._states[subject]) is not None}
        if states:
            new = [
                (state.draft.tenant, state.draft.name, *_values(state), number)
                for number, state in states.items()
            ]
            await connection.execute(SQL["update_schedules"], *zip(*new, strict=True))
        subjects = {schedule.id: subject for subject, schedule in old.items()}
        changes = {
            schedule.id: self._change_of(schedule, self._states[subject]) for subject, schedule in old.items()
        }
        rows = await self._withdraw(
            connection, changes, {number: self._authors[subject] for number, subject in subjects.items()}
        )
        removed = [number for number, change in changes.items() if change is Change.REMOVED]
        if removed:
            await connection.execute(SQL["delete_schedules"], removed)
        return {subjects[row["id"]]: self._written_state(row, row["id"] in removed) for row in rows}

    @staticmethod
    def _change_of(old: Schedule, state: ScheduleState | None) -> Change:
        if state is None:
            return Change.REMOVED
        return change_of(old, replace(old, draft=replace(state.draft, id=old.id), paused=state.paused))

    @staticmethod
    async def _withdraw(
        connection: Any, changes: dict[UUID, Change], authors: dict[UUID, str | None]
    ) -> list[Any]:
        """Withdraw the jobs of these schedules that have not started, and record the new versions."""
        withdrawn = await connection.fetch(SQL["withdraw_jobs"], [*changes])
        numbers, moment = [row["id"] for row in withdrawn], withdrawn[0]["moment"]
        by_whom, what = [authors[number] for number in numbers], [changes[number] for number in numbers]
        rows: list[Any] = await connection.fetch(
            SQL["record_changes"], numbers, [row["withdrawn"] for row in withdrawn], by_whom, what, moment
        )
        return rows

    @staticmethod
    def _written_state(row: Any, removed: bool) -> Schedule:
        """A removed schedule is returned as it was; only the recorded version has a number of its own."""
        schedule = schedule_of(row)
        return replace(schedule, version=schedule.version - 1) if removed else schedule

    async def _if_committed(self, connection: Any, subject: Subject, written: Schedule) -> Schedule | None:
        if self._states[subject] is None:
            return written
        known = await connection.fetchrow(SQL["get_schedule"], *subject)
        return written if known is not None and known["updated_at"] == written.updated_at else None


def _by_subject(rows: Iterable[Any]) -> dict[Subject, Any]:
    return {(row["tenant"], row["name"]): row for row in rows}


def _values(state: ScheduleState) -> list[Any]:
    """In the order of the columns `schedule`, after tenant and name."""
    draft = state.draft
    return [
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
        draft.limit_key,
        state.next_fire_time,
        state.paused,
        state.pause_note,
    ]


def _rounds(firings: Iterable[Firing]) -> list[list[Firing]]:
    """A statement moves a schedule once: further steps of the same schedule go into separate statements."""
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
