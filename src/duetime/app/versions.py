"""Versions of schedules: who changed what, and how to restore an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.app.context import AppContext
from duetime.app.listing import find_schedule
from duetime.engine.submit.validate import check_count
from duetime.errors import ScheduleNotFound, VersionNotFound
from duetime.model.instant import to_datetime
from duetime.model.schedule import Change, Schedule, ScheduleVersion
from duetime.model.schedule_json import FieldChange, difference, schedule_to_json


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What a schedule was after a change (for a removal: before it)."""

    version: int
    at: datetime
    author: str | None  # None: the caller gave no name
    change: Change
    paused: bool
    schedule_id: UUID  # another than today's where an earlier schedule had the name
    definition: Mapping[str, Any]
    diff: tuple[FieldChange, ...]  # against the version before

    @staticmethod
    def of(row: ScheduleVersion, before: ScheduleVersion | None) -> VersionChange:
        at, draft = to_datetime(row.at), row.draft
        json = schedule_to_json(draft)
        return VersionChange(
            row.version, at, row.author, row.change, row.paused, draft.id, json, tuple(_changes(row, before))
        )


@dataclass(frozen=True, slots=True)
class ScheduleVersions:
    """Calling it lists the versions of a schedule."""

    context: AppContext

    async def __call__(
        self, reference: str, *, limit: int = 100, before: int | None = None
    ) -> list[VersionChange]:
        """The changes of a schedule, newest first; `before` is the last version of the previous page. A
        removed schedule is found by its name as long as its versions are kept."""
        store, tenant = self.context.store, self.context.tenant
        rows = await store.list_versions(
            tenant, await self._name_of(reference), check_count(limit, "limit") + 1, before
        )
        return [
            VersionChange.of(row, older) for row, older in zip(rows[:limit], [*rows[1:], None], strict=False)
        ]

    async def restore(
        self, reference: str, version: int, *, expect_version: int | None = None, author: str | None = None
    ) -> Schedule:
        """Restore an earlier version; whether the schedule is paused stays as it is. A removed schedule is
        created again. With
        `expect_version`, only if the schedule is still at that version: VersionConflict otherwise."""
        context, name = self.context, await self._name_of(reference)
        rows = await context.store.list_versions(context.tenant, name, 1, check_count(version, "version") + 1)
        if not rows or rows[0].version != version:
            raise VersionNotFound(
                f"schedule {name!r} has no version {version}: list its versions to see all of them"
            )
        known = await context.store.get_schedule(context.tenant, name)
        draft = rows[0].draft
        if known is None:
            draft = replace(draft, id=context.ids.new(await context.now()))
        return await context.commands.put_schedule(draft, known is not None, expect_version, author=author)

    async def _name_of(self, reference: str) -> str:
        try:
            return (await find_schedule(self.context.store, self.context.tenant, reference)).draft.name
        except ScheduleNotFound:
            if await self.context.store.list_versions(self.context.tenant, reference, 1):
                return reference
            raise


def _changes(row: ScheduleVersion, before: ScheduleVersion | None) -> list[FieldChange]:
    if before is None or row.change is Change.CREATED:
        return []
    paused = [FieldChange("paused", before.paused, row.paused)] if row.paused != before.paused else []
    return [*difference(before.draft, row.draft), *paused]
