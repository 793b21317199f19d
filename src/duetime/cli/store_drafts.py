"""Targets, schedules and edits as a command names them, in the form that a store keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from duetime.app import App
from duetime.app.schedules import NewSchedule, edit_of
from duetime.config import Settings
from duetime.engine.submit.build import NO_DEFAULTS
from duetime.engine.submit.schedules import schedule_draft
from duetime.engine.submit.validate import check_name
from duetime.model.command import COMMAND, CommandTarget
from duetime.model.destination import check_destination
from duetime.model.edit_plan import ScheduleEdit
from duetime.model.publish import PublishTarget
from duetime.model.schedule import Schedule, ScheduleDraft
from duetime.model.shadow import SHADOW, ShadowTarget
from duetime.model.target import HTTP, HttpTarget, Seal, shown_name
from duetime.model.when import When

Target = str | Mapping[str, Any]  # the name of a task, or another target


class Drafts:
    """`seal` is called when a target has secrets."""

    def __init__(self, app: App, settings: Settings, seal: Callable[[], Seal | None]) -> None:
        self._app = app
        self._settings = settings
        self._seal = seal

    def target(self, target: Target, before: bytes | None = None) -> tuple[str, bytes | None]:
        """The name of the target in a job, and its stored form if it is not a task. `before` is the stored
        form of the HTTP target that it replaces."""
        if isinstance(target, str):
            return check_name(target, "task"), None
        if target.get("type") == "command":
            return COMMAND, CommandTarget.from_json(target).to_spec()
        if target.get("type") == "publish":
            publish = PublishTarget.from_json(target)
            check_destination(self._settings.destinations, publish.destination, self._app.tenant)
            return publish.name, publish.to_spec()
        if target.get("type") == "shadow":
            shadow = ShadowTarget.from_json(target)
            if shadow.target["type"] == "task":
                check_name(shadow.target["name"], "target.target.name")
            return SHADOW, shadow.to_spec()
        http = HttpTarget.received(target, before, self._seal)
        return http.name, http.to_spec()

    async def schedule(
        self, name: str, task: str, spec: bytes | None, when: When, options: Any
    ) -> ScheduleDraft:
        app = self._app
        if spec is None:
            return await app.schedules.draft(NewSchedule(name, task, when, **options))
        draft = schedule_draft(
            app.context.ids, app.tenant, name, task, when, NO_DEFAULTS, await app.now(), options
        )
        return replace(draft, target_spec=spec)

    async def edit(self, known: Schedule, changes: Mapping[str, Any]) -> ScheduleEdit:
        target, draft = changes.get("target"), known.draft
        if isinstance(target, Mapping):
            before = draft.target_spec if shown_name(draft.target) == HTTP else None
            changes = {**changes, "target": self.target(target, before)}
        return await edit_of(self._app.context, known, changes)
