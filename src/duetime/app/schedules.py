"""Schedules: declaring, reading and changing them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import replace as changed
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack, get_args
from uuid import UUID

from duetime.app.context import AppContext
from duetime.app.listing import find_schedule
from duetime.engine.submit.commands import already_there, same_draft
from duetime.engine.submit.schedules import (
    DECLARED,
    Declaration,
    ScheduleOptions,
    check_schedule_options,
    declared,
    edited_draft,
    schedule_draft,
)
from duetime.engine.submit.validate import check_count, check_list, check_name, check_note
from duetime.errors import InvalidInput, ScheduleNotFound, VersionConflict, VersionNotFound
from duetime.handle import JobApi, JobHandle, ScheduleView
from duetime.model.edit_plan import ScheduleEdit
from duetime.model.instant import to_datetime
from duetime.model.schedule import (
    Change,
    FieldChange,
    Schedule,
    ScheduleDraft,
    ScheduleFilter,
    ScheduleVersion,
    difference,
    schedule_to_json,
)
from duetime.model.when import When
from duetime.task import Task

# Versions of schedules: who changed what, and how to restore an earlier one.


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


ConflictPolicy = Literal["error", "keep", "replace"]


class NewSchedule:
    """A schedule to declare in a set. Options: see `App.schedule`."""

    def __init__(
        self, name: str, task: Task[..., Any] | str, when: When, **options: Unpack[ScheduleOptions]
    ) -> None:
        self.name = name
        self.task = task
        self.when = when
        self.options = options


PAGE = 1_000
MAX_EDITS = 5  # how often a change without a version is repeated after edits by others
Answer = TypeVar("Answer")


class AppSchedules:
    """Calling it lists schedules. Handles of triggered jobs make their calls through `api`."""

    def __init__(self, context: AppContext, api: JobApi) -> None:
        self._context = context
        self._api = api

    async def declare(
        self,
        /,
        name: str,
        task: Task[..., Any] | str,
        when: When,
        *,
        on_conflict: ConflictPolicy = "error",
        author: str | None = None,
        connection: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleView:
        """Declare a recurring job when your program starts. Declaring the same again changes nothing.

        `on_conflict` decides about a stored schedule of this name that differs: "error" raises
        ScheduleExists; "replace" changes it; "keep" leaves it as it is if it was edited after the last
        declaration, and changes it otherwise. `author` is recorded in its versions. With a `connection` of
        your own all this belongs to the transaction open there.
        """
        new, here = NewSchedule(name, task, when, **options), await self._within(connection)
        return await here._declare(new, await self.draft(new), None, _checked(on_conflict), author)

    async def declare_set(
        self,
        name: str,
        schedules: Iterable[NewSchedule],
        *,
        on_conflict: ConflictPolicy = "keep",
        author: str | None = None,
        connection: Any = None,
    ) -> list[ScheduleView]:
        """Declare all schedules of a program under the name of a set, and remove those that were declared in
        this set before and no longer are. All are checked before the first is stored. With a `connection` of
        your own, all of them or none, when you commit."""
        form = "dt.NewSchedule(name, task, when), ..."
        wanted, policy = check_list(schedules, NewSchedule, "schedules", form), _checked(on_conflict)
        for number, new in enumerate(wanted):
            if not isinstance(new, NewSchedule):
                raise InvalidInput(f"schedules[{number}]", f"{new!r} is not a NewSchedule: write [{form}]")
        drafts = [await self.draft(new) for new in wanted]
        names = {draft.name for draft in drafts}
        if len(names) < len(drafts):
            raise InvalidInput("schedules", "two schedules of the set have the same name: rename one")
        group, here = check_name(name, "name"), await self._within(connection)
        views = [
            await here._declare(new, draft, group, policy, author)
            for new, draft in zip(wanted, drafts, strict=True)
        ]
        for old in await self._names_in(group):
            if old not in names:
                with suppress(ScheduleNotFound):
                    await here.remove(old, author=author)
        return views

    async def create(
        self, new: NewSchedule, *, replace: bool = False, author: str | None = None, paused: bool = False
    ) -> ScheduleView:
        """Create a schedule that no program declares."""
        return await self.view(await self._put(new, await self.draft(new), replace, author, paused))

    async def draft(self, new: NewSchedule) -> ScheduleDraft:
        context, options = self._context, new.options
        task_name, known = context.resolve(new.task)
        if known is not None:
            check_schedule_options(options, known.signature.names)
            known.signature.check(options.get("payload", {}))
        defaults = await context.defaults_for_new_work(task_name, None) if known is None else known.defaults
        now = await context.commands.now()
        return schedule_draft(
            context.ids, context.tenant, new.name, task_name, new.when, defaults, now, options
        )

    async def _within(self, connection: Any) -> AppSchedules:
        """The same calls in the transaction of the caller, if there is one."""
        if connection is None:
            return self
        return AppSchedules(await self._context.within(connection), self._api)

    async def _declare(
        self,
        new: NewSchedule,
        draft: ScheduleDraft,
        group: str | None,
        policy: ConflictPolicy,
        author: str | None,
    ) -> ScheduleView:
        store, key = self._context.store, (DECLARED, draft.tenant, draft.name)
        record = await store.get_record(*key)
        if policy == "keep":
            last = None if record is None else Declaration.from_bytes(record.value)
            stored = await self._keep(draft, last, author)
        else:
            stored = await self._put(new, draft, policy == "replace", author)
        declaration = Declaration.of(draft, group).to_bytes()
        if record is None or record.value != declaration:
            await store.put_record(*key, declaration)
        return await self.view(stored)

    async def _keep(self, draft: ScheduleDraft, last: Declaration | None, author: str | None) -> Schedule:
        commands = self._context.commands

        async def work(known: Schedule) -> Schedule:
            if last is None or last.drift(known.draft):
                return known
            return await commands.put_schedule(draft, True, known.version, author=author)

        try:
            return await self.at_version(draft.name, None, work)
        except ScheduleNotFound:
            return await commands.put_schedule(draft, True, author=author)

    async def _put(
        self,
        new: NewSchedule,
        draft: ScheduleDraft,
        replace: bool,
        author: str | None,
        paused: bool = False,
    ) -> Schedule:
        return await self._context.commands.put_schedule(
            draft,
            replace,
            declared=lambda draft: declared(draft, new.options),
            author=author,
            paused=paused,
        )

    async def _names_in(self, group: str) -> list[str]:
        tenant, found, after = self._context.tenant, list[str](), ("", "")
        while page := await self._context.store.list_records(DECLARED, tenant, PAGE, after):
            found += [one.key for one in page if Declaration.from_bytes(one.value).group == group]
            after = (tenant, page[-1].key)
        return found

    # -- reading
    async def __call__(self, *, limit: int = 100, after: str | None = None) -> list[ScheduleView]:
        """By name; `after` is the last name of the previous page."""
        found = await self.page(ScheduleFilter(self._context.tenant), limit, after)
        now = await self._context.now()
        return [ScheduleView.of(one, now) for one in found]

    async def page(self, wanted: ScheduleFilter, limit: int, after: str | None = None) -> list[Schedule]:
        """The rows that match, by name; `after` is the last name of the previous page."""
        context = self._context
        return await context.store.list_schedules(
            changed(wanted, tenant=context.tenant), check_count(limit, "limit"), after
        )

    async def get(self, name: str) -> ScheduleView:
        return await self.view(await self._context.commands.get_schedule(self._context.tenant, name))

    async def find(self, reference: str) -> Schedule:
        """The row, by id or by name."""
        return await find_schedule(self._context.store, self._context.tenant, reference)

    async def declared(self, draft: ScheduleDraft) -> Schedule | None:
        """The schedule of this name if it is identical; ScheduleExists if it differs."""
        known = await self._context.store.get_schedule(self._context.tenant, draft.name)
        if known is not None and not same_draft(known.draft, draft):
            raise already_there(draft)
        return known

    # -- changing
    async def put(
        self,
        draft: ScheduleDraft,
        expect_version: int | None = None,
        *,
        replace: bool = False,
        author: str | None = None,
        paused: bool = False,
    ) -> Schedule:
        return await self._context.commands.put_schedule(
            draft, replace, expect_version, author=author, paused=paused
        )

    async def edit(
        self,
        reference: str,
        changes: Mapping[str, Any],
        *,
        version: int | None = None,
        author: str | None = None,
    ) -> Schedule:
        """Change these fields of a schedule: the options of `schedule`, and `when`, `target` (a task) and
        `paused`. None removes an optional value. With `version`, only if the schedule is still at that
        version: VersionConflict otherwise."""

        async def work(known: Schedule) -> Schedule:
            return await self.apply_edit(known, await edit_of(self._context, known, changes), author)

        return await self.at_version(reference, version, work)

    async def at_version(
        self, reference: str, version: int | None, work: Callable[[Schedule], Awaitable[Answer]]
    ) -> Answer:
        """Change a schedule as it is now; without a `version`, again if it was edited in between."""
        for _ in range(MAX_EDITS):
            known = await self.find(reference)
            if version not in (None, known.version):
                break
            try:
                return await work(known)
            except VersionConflict:
                if version is not None:
                    raise
        raise VersionConflict(
            f"schedule {reference!r} has been changed in between: read it again and repeat the edit"
        )

    async def apply_edit(self, known: Schedule, edit: ScheduleEdit, author: str | None) -> Schedule:
        commands, tenant, name = self._context.commands, self._context.tenant, known.draft.name
        stored = await commands.put_schedule(edit.draft, True, known.version, author=author)
        if edit.paused is None or edit.paused == stored.paused:
            return stored
        if edit.paused:
            return await commands.pause_schedule(tenant, name, None, author)
        return await commands.resume_schedule(tenant, name, author)

    async def pause(
        self, name: str, note: str | None = None, *, author: str | None = None, connection: Any = None
    ) -> ScheduleView:
        """No more fires until it is resumed; planned fires that have not started are withdrawn. `note` says
        why, `author` who. `connection`: in the transaction open there."""
        here, noted = await self._within(connection), check_note(note)
        commands = here._context.commands
        return await here.view(await commands.pause_schedule(self._context.tenant, name, noted, author))

    async def resume(self, name: str, *, author: str | None = None, connection: Any = None) -> ScheduleView:
        """Fire from now on; fires that fell into the pause are not made up for. `connection`: in the
        transaction open there."""
        here = await self._within(connection)
        return await here.view(
            await here._context.commands.resume_schedule(self._context.tenant, name, author)
        )

    async def trigger(self, name: str) -> JobHandle:
        """One job of this schedule now, in addition to its fires."""
        return JobHandle(self._api, await self._context.commands.trigger_schedule(self._context.tenant, name))

    async def remove(self, name: str, *, author: str | None = None, connection: Any = None) -> None:
        """No more fires; a running job finishes, history stays. `connection`: in the transaction open
        there."""
        here = await self._within(connection)
        await here._context.commands.remove_schedule(self._context.tenant, name, author)

    async def remove_version(
        self, reference: str, *, expect_version: int | None = None, author: str | None = None
    ) -> None:
        """Remove it, by name or id; with `expect_version`, only if it is still at that version."""

        async def work(known: Schedule) -> None:
            await self._context.commands.remove_schedule(
                self._context.tenant, known.draft.name, author, known.version
            )

        await self.at_version(reference, expect_version, work)

    async def view(self, schedule: Schedule) -> ScheduleView:
        """With its drift, which a listing does not read."""
        record = await self._context.store.get_record(DECLARED, schedule.draft.tenant, schedule.draft.name)
        drift = None if record is None else Declaration.from_bytes(record.value).drift(schedule.draft)
        draft = schedule.draft
        warning = await self._context.task_warning(draft.target, draft.target_spec)
        return ScheduleView.of(schedule, await self._context.now(), drift, warning)


def _checked(policy: ConflictPolicy) -> ConflictPolicy:
    if policy not in get_args(ConflictPolicy):
        raise InvalidInput("on_conflict", f"{policy!r} is not one of {', '.join(get_args(ConflictPolicy))}")
    return policy


async def edit_of(context: AppContext, known: Schedule, changes: Mapping[str, Any]) -> ScheduleEdit:
    wanted = dict(changes)
    if not wanted:
        raise InvalidInput("changes", "nothing to change: give at least one field")
    paused = wanted.pop("paused", None)
    if paused is not None and not isinstance(paused, bool):
        raise InvalidInput("paused", f"{paused!r} must be true or false")
    if isinstance(wanted.get("target"), str | Task):
        wanted["target"] = context.resolve(wanted["target"])[0], None
    return ScheduleEdit(await edited_draft(known.draft, wanted, context.defaults_for_edit(wanted)), paused)
