"""The difference between files of schedules and what is stored, and how it is made. The backend decides what
would change, by the same plan that `duetime schedule plan` shows; nothing here compares rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from duetime.cli.backend import Backend
from duetime.cli.documents.entry import MANAGED_BY, Entry
from duetime.cli.documents.reading import Collection, Located
from duetime.errors import Conflict, DuetimeError, InvalidDocument, InvalidInput, NotFound, ServiceError
from duetime.model.views import PlanView, ScheduleView

EVERYTHING = 1_000_000
GLANCE = "1s"  # a horizon that costs nothing: enough to see whether anything changes


class StepAction(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one schedule. `plan` says which fires are added, moved and withdrawn."""

    action: StepAction
    name: str
    entry: Entry | None = None
    edit: Mapping[str, Any] = field(default_factory=dict)
    plan: PlanView | None = None
    version: int | None = None  # the one it was planned for

    @property
    def secrets(self) -> list[str]:
        """Which secrets are sent, and where they come from."""
        sends = self.action is StepAction.ADD or "target" in self.edit
        return self.entry.references if self.entry is not None and sends else []


@dataclass(frozen=True, slots=True)
class Planning:
    backend: Backend
    horizon: str
    count: int  # fires of each kind
    adopt: bool = False  # take over schedules that are managed by another name
    send_secrets: bool = False

    async def steps(self, wanted: Collection, prune: bool) -> list[Step]:
        """In the order of the files, then removals. All problems are reported at the same time."""
        stored = {one.name: one for one in await stored_schedules(self.backend)}
        found, problems = list[Step](), list[str]()
        for one in wanted.entries:
            try:
                found.append(await self._step(one.entry, stored.get(one.entry.name)))
            except DuetimeError as problem:
                if not _is_about_the_entry(problem):
                    raise
                problems.append(one.problem(problem))
        if problems:
            raise InvalidDocument(*problems)
        if prune:
            found += [await self._removal(one) for one in _left_behind(stored, wanted.entries, wanted.names)]
        return found

    async def _step(self, entry: Entry, stored: ScheduleView | None) -> Step:
        if stored is None:
            plan = await self.backend.plan_new_schedule(
                entry.name,
                entry.sent_target(),
                entry.when,
                horizon=self.horizon,
                count=self.count,
                **entry.arguments(),
            )
            return Step(StepAction.ADD, entry.name, entry, plan=plan)
        self._check_owner(entry, stored)
        edit = entry.changes(stored, self.send_secrets)
        glance = await self.backend.plan_schedule(entry.name, edit, horizon=GLANCE, count=1)
        if not glance.diff:
            return Step(StepAction.KEEP, entry.name, entry)
        plan = await self.backend.plan_schedule(entry.name, edit, horizon=self.horizon, count=self.count)
        return Step(StepAction.CHANGE, entry.name, entry, edit, plan, plan.version)

    async def _removal(self, stored: ScheduleView) -> Step:
        """A removal withdraws what a pause would."""
        plan = await self.backend.plan_schedule(
            stored.name, {"paused": True}, horizon=self.horizon, count=self.count
        )
        return Step(StepAction.REMOVE, stored.name, plan=plan, version=plan.version)

    def _check_owner(self, entry: Entry, stored: ScheduleView) -> None:
        owner = stored.labels.get(MANAGED_BY)
        if owner not in (None, entry.managed_by) and not self.adopt:
            raise Conflict(
                f"is managed by {owner!r}, not by {entry.managed_by or 'this file'!r}: "
                "remove it there, or take it over with --adopt"
            )


async def apply_step(backend: Backend, step: Step) -> None:
    """Raises VersionConflict or ScheduleExists if the schedule was changed after it was planned."""
    match step:
        case Step(action=StepAction.ADD, entry=Entry() as entry):
            await backend.schedule(entry.name, entry.sent_target(), entry.when, **entry.arguments())
        case Step(action=StepAction.CHANGE):
            await backend.edit_schedule(step.name, step.edit, version=step.version)
        case Step(action=StepAction.REMOVE):
            await backend.remove(step.name, version=step.version)


async def stored_schedules(backend: Backend, managed_by: str | None = None) -> list[ScheduleView]:
    """By name, all or those managed by one name."""
    label = None if managed_by is None else (MANAGED_BY, managed_by)
    return await backend.schedules(limit=EVERYTHING, label=label)


def _left_behind(
    stored: Mapping[str, ScheduleView], wanted: Sequence[Located], managers: set[str]
) -> list[ScheduleView]:
    names = {one.entry.name for one in wanted}
    return [
        one for one in stored.values() if one.labels.get(MANAGED_BY) in managers and one.name not in names
    ]


def _is_about_the_entry(problem: DuetimeError) -> bool:
    """As opposed to a store or a service that cannot be used at all."""
    return isinstance(problem, InvalidInput | Conflict | NotFound) or (
        isinstance(problem, ServiceError) and problem.field is not None
    )
