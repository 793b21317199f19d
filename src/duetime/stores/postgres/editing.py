"""Schedules made, and changes that take back what one has planned: what was planned may no longer be wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from duetime.model.schedule import Change
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.lines import SQL
from duetime.stores.postgres.together import Answers, Part, Subject, Together, columns

ID = -4  # its place among the values of a new schedule


class Creation:
    """New schedules; who finds the name taken gets no answer. Called again, the reply of the earlier try was lost, and it may have been
    that try which took the name."""

    def __init__(self, part: Part) -> None:
        self._columns = columns(part)
        self._ids = {asked.subject: asked.values[ID] for asked in part}
        self._tries = 0

    async def __call__(self, connection: Any) -> Answers:
        self._tries += 1
        made = _by_subject(await connection.fetch(SQL["insert_schedules"], *self._columns))
        if self._tries > 1 and len(made) < len(self._ids):
            known = _by_subject(await connection.fetch(SQL["get_schedules"], *zip(*self._ids, strict=True)))
            made |= {subject: row for subject, row in known.items() if row["id"] == self._ids[subject]}
        return made


class Editing:
    """Schedules that are paused or removed at the same moment are so together. Answers rows."""

    def __init__(self, line: Line) -> None:
        self._pausing = Together(line, partial(Edit, Change.PAUSED), atomic=True)
        self._removing = Together(line, partial(Edit, Change.REMOVED), atomic=True)

    async def pause(self, tenant: str, name: str, note: str | None, author: str | None) -> Any:
        return await self._pausing.ask((tenant, name), None, author, note)

    async def remove(self, tenant: str, name: str, author: str | None, expect_version: int | None) -> Any:
        return await self._removing.ask((tenant, name), expect_version, author, None)


class Edit:
    """The same change of some schedules. Called again, the reply of the earlier try was lost."""

    def __init__(self, change: Change, part: Part) -> None:
        self._change = change
        self._wanted = {asked.subject: asked.values for asked in part}
        self._reached: dict[Subject, Any] = {}

    async def __call__(self, connection: Any) -> Answers:
        known = await self._lock(connection)
        earlier = {subject: row for subject, row in self._reached.items() if subject not in known}
        done = {subject: await if_committed(connection, row, self._change) for subject, row in earlier.items()}
        if not known:
            return done
        if self._change is Change.PAUSED:
            notes = [self._wanted[subject][2] for subject in known]
            await connection.execute(SQL["pause_schedules"], [*known.values()], notes)
        rows = await withdraw(connection, self._change, {number: self._wanted[subject][1] for subject, number in known.items()})
        self._reached = _by_subject(rows)
        return done | self._reached

    async def _lock(self, connection: Any) -> dict[Subject, UUID]:
        tenants, names = zip(*self._wanted, strict=True)
        rows = await connection.fetch(SQL["lock_schedules"], tenants, names, [values[0] for values in self._wanted.values()])
        return {(row["tenant"], row["name"]): row["id"] for row in rows}


async def withdraw(connection: Any, change: Change, authors: Mapping[UUID, str | None]) -> list[Any]:
    """Take back what has not started of these schedules, whose rows are locked, and note who changed them."""
    gone = await connection.fetch(SQL["withdraw_jobs"], [*authors])
    numbers, moment = [row["id"] for row in gone], gone[0]["moment"]
    counts, by_whom = [row["withdrawn"] for row in gone], [authors[number] for number in numbers]
    rows: list[Any] = await connection.fetch(SQL["record_withdrawals"], numbers, counts, by_whom, moment, change)
    if change is Change.REMOVED:
        await connection.execute(SQL["delete_schedules"], numbers)
    return rows


async def if_committed(connection: Any, reached: Any, change: Change) -> Any:
    """What an earlier try of ours came to before its reply was lost, if it was committed after all."""
    if reached is None or change is Change.REMOVED:
        return reached
    known = await connection.fetchrow(SQL["get_schedule"], reached["tenant"], reached["name"])
    return reached if known is not None and known["updated_at"] == reached["updated_at"] else None


def _by_subject(rows: Iterable[Any]) -> dict[Subject, Any]:
    return {(row["tenant"], row["name"]): row for row in rows}
