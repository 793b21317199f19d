"""The submitted jobs, in a form that is easy to check in a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from duetime.app import App
from duetime.errors import ConfigError, InvalidPayload, TaskNotFound, UnknownOption
from duetime.model.codec import decode, encode
from duetime.model.instant import to_datetime
from duetime.model.job import State
from duetime.task import Task
from duetime.testing.kit.recording_store import RecordingStore, Submission
from duetime.testing.one_step import run_in_one_step


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submitted job. Arguments have been through JSON and include the defaults of the task's function."""

    id: UUID
    task: str
    arguments: Mapping[str, Any]
    queue: str
    priority: int
    at: datetime  # when it was requested to run
    delay: timedelta  # between submission and `at`
    unique_key: str | None
    owner: str | None
    labels: Mapping[str, str]
    schedule: str | None  # set if it was triggered manually
    state: State  # now


def submitted(app: App, task: Task[..., Any] | str | None = None) -> list[Submitted]:
    """The jobs submitted since the app was put under test, oldest first, without the fires of schedules."""
    store = app.store
    if not isinstance(store, RecordingStore):
        raise ConfigError(
            "this app is not under test: wrap the code in virtual(app), inline(app) or recording(app)"
        )
    name = None if task is None else task_name(app, task)
    store.forget_rolled_back()
    return [
        _view(app, store, entry) for entry in store.submissions if name is None or entry.draft.target == name
    ]


def _view(app: App, store: RecordingStore, entry: Submission) -> Submitted:
    draft = entry.draft
    job = run_in_one_step(store.get_job(draft.tenant, draft.id))
    return Submitted(
        draft.id,
        draft.target,
        _arguments(app, draft.target, draft.payload),
        draft.queue,
        draft.priority,
        to_datetime(draft.fire_time),
        timedelta(microseconds=max(0, draft.fire_time - entry.at)),
        draft.unique_key,
        draft.owner,
        {} if draft.labels is None else decode(draft.labels),
        draft.schedule,
        State.SUCCEEDED if job is None else job.state,
    )


def _arguments(app: App, task: str, payload: bytes) -> Mapping[str, Any]:
    known = app.tasks.get(task)
    try:
        found: Mapping[str, Any] = as_json(
            decode(payload) if known is None else known.signature.shape.read(payload)
        )
    except InvalidPayload:
        return decode(payload)  # type: ignore[no-any-return]  # any JSON
    return found


def as_json(value: Any) -> Any:
    """The value after a round trip through JSON, as the store returns it."""
    return decode(encode(value))


def task_name(app: App, task: Task[..., Any] | str) -> str:
    """Refuses a name that is almost a task's name: with a typo, `assert_not_submitted` would always pass."""
    name = task.name if isinstance(task, Task) else task
    if name not in app.tasks and (close := get_close_matches(name, app.tasks, 1)):
        raise TaskNotFound(f"{name!r} is not a task of this app; did you mean {close[0]!r}?")
    return name


def check_arguments(app: App, task: str, names: Mapping[str, Any]) -> None:
    known = app.tasks.get(task)
    if known is None or known.signature.open_ended:
        return
    for name in names:
        if name not in known.signature.names:
            names_there = ", ".join(sorted(known.signature.names)) or "none"
            raise UnknownOption(name, f"task {task!r} has no such argument; its arguments are: {names_there}")
