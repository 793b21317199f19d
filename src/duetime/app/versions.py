"""What schedules were: every change with who made it and what it changed; and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.app.client import Client
from duetime.app.finding import find_schedule
from duetime.app.planning import EDITS
from duetime.engine.checks import check_count
from duetime.errors import ScheduleNotFound, VersionConflict, VersionNotFound
from duetime.model.definition import FieldChange, definition, difference
from duetime.model.instant import to_datetime
from duetime.model.schedule import Change, Schedule, ScheduleVersion


@dataclass(frozen=True, slots=True)
class VersionView:
    """What a schedule was after a change (for a removal: before it)."""

    version: int
    at: datetime
    author: str | None  # None: nobody said who they are
    change: Change
    paused: bool
    schedule_id: UUID  # another than today's where an earlier schedule had the name
    definition: Mapping[str, Any]
    diff: tuple[FieldChange, ...]  # against the version before

    @staticmethod
    def of(row: ScheduleVersion, before: ScheduleVersion | None) -> VersionView:
        at, draft = to_datetime(row.at), row.draft
        return VersionView(row.version, at, row.author, row.change, row.paused, draft.id, definition(draft), tuple(_changes(row, before)))


class Versions(Client):
    async def schedule_versions(self, reference: str, *, limit: int = 100, before: int | None = None) -> list[VersionView]:
        """What was changed on a schedule, newest first; `before` is the last version already seen. By its name also of one that was
        removed, as long as its versions are kept."""
        self._require_open()
        rows = await self._store.list_versions(self._tenant, await self._name_of(reference), check_count(limit, "limit") + 1, before)
        return [VersionView.of(row, older) for row, older in zip(rows[:limit], [*rows[1:], None], strict=False)]

    async def restore_schedule(
        self, reference: str, version: int, *, expect_version: int | None = None, author: str | None = None
    ) -> Schedule:
        """Make it what it was at that version; its pause stays as it is. One that was removed is created again, under its name. With
        `expect_version`, only if it is still that one now: VersionConflict otherwise."""
        self._require_open()
        name = await self._name_of(reference)
        rows = await self._store.list_versions(self._tenant, name, 1, check_count(version, "version") + 1)
        if not rows or rows[0].version != version:
            raise VersionNotFound(f"schedule {name!r} has no version {version}: list its versions to see those there are")
        known = await self._store.get_schedule(self._tenant, name)
        draft = rows[0].draft
        if known is None:
            draft = replace(draft, id=self._ids.new(await self._commands.now()))
        return await self._commands.put_schedule(draft, known is not None, expect_version, author=author)

    async def remove_schedule(self, reference: str, *, expect_version: int | None = None, author: str | None = None) -> None:
        """Remove it, by name or id; with `expect_version`, only if it is still that one: an edit made meanwhile is not lost unseen."""
        self._require_open()
        for _ in range(EDITS):
            known = await find_schedule(self._store, self._tenant, reference)
            expected = known.version if expect_version is None else expect_version
            try:
                await self._commands.remove_schedule(self._tenant, known.draft.name, author, expected)
            except VersionConflict:
                if expect_version is not None:
                    raise
            else:
                return
        raise VersionConflict(f"schedule {reference!r} is changed by others at this moment: repeat the removal")

    async def _name_of(self, reference: str) -> str:
        try:
            return (await find_schedule(self._store, self._tenant, reference)).draft.name
        except ScheduleNotFound:
            if await self._store.list_versions(self._tenant, reference, 1):
                return reference
            raise


def _changes(row: ScheduleVersion, before: ScheduleVersion | None) -> list[FieldChange]:
    if before is None or row.change is Change.CREATED:
        return []
    paused = [FieldChange("paused", before.paused, row.paused)] if row.paused != before.paused else []
    return [*difference(before.draft, row.draft), *paused]
