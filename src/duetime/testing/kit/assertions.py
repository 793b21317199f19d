"""Assertions about submitted jobs. On failure the message shows the jobs that were submitted instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from duetime.app import App
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.task import Task
from duetime.testing.kit.submitted import Submitted, as_json, check_arguments, submitted, task_name

MAX_SHOWN = 5
_MISSING = object()


def assert_submitted(
    app: App,
    task: Task[..., Any] | str,
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    times: int | None = None,
    queue: str | None = None,
    priority: int | None = None,
    delay: Duration | None = None,
    at: datetime | None = None,
    unique_key: str | None = None,
    owner: str | None = None,
    labels: Mapping[str, str] | None = None,
    **named: Any,
) -> list[Submitted]:
    """Assert that jobs of this task with at least these arguments and options were submitted: `times` of
    them, or one or more.

    Pass arguments by name; pass those that have the name of an option in the mapping. Returns the jobs found.
    """
    __tracebackhide__ = True
    name = task_name(app, task)
    options = {
        "queue": queue,
        "priority": priority,
        "delay": delay,
        "at": at,
        "unique_key": unique_key,
        "owner": owner,
        "labels": labels,
    }
    expected = _Expected(app, name, {**(arguments or {}), **named}, options)
    found = [job for job in submitted(app) if expected.matches(job)]
    if (not found) if times is None else (len(found) != times):
        raise AssertionError(_message(app, expected, len(found), times))
    return found


def assert_not_submitted(
    app: App,
    task: Task[..., Any] | str | None = None,
    arguments: Mapping[str, Any] | None = None,
    /,
    **named: Any,
) -> None:
    """Assert that no such job was submitted, or without a task no job at all. Takes the same arguments as
    `assert_submitted`."""
    __tracebackhide__ = True
    if task is not None:
        assert_submitted(app, task, arguments, **{**named, "times": 0})
    elif jobs := submitted(app):
        raise AssertionError(
            "expected no submitted job, but found\n" + "\n".join(map(_line, jobs[:MAX_SHOWN]))
        )


class _Expected:
    """The arguments and options that a job must have."""

    def __init__(self, app: App, task: str, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        check_arguments(app, task, arguments)
        self.task = task
        self.values: dict[str, Any] = {name: as_json(value) for name, value in arguments.items()}
        self.options = {name: value for name, value in options.items() if value is not None}
        if "delay" in self.options:
            self.options["delay"] = timedelta(microseconds=duration.parse(self.options["delay"], "delay"))

    def matches(self, job: Submitted) -> bool:
        return job.task == self.task and not self.differences(job)

    def differences(self, job: Submitted) -> list[tuple[str, Any, Any]]:
        """(name, expected, found) of each difference."""
        values = [
            (name, expected, job.arguments.get(name, _MISSING)) for name, expected in self.values.items()
        ]
        options = [(name, expected, getattr(job, name)) for name, expected in self.options.items()]
        return [(name, expected, found) for name, expected, found in values + options if found != expected]

    def __str__(self) -> str:
        return f"{self.task}({_listed({**self.values, **self.options})})"


def _message(app: App, expected: _Expected, count: int, times: int | None) -> str:
    jobs = submitted(app)
    same_task = [job for job in jobs if job.task == expected.task]
    found = f"found {count} among {len(same_task)} of this task and {len(jobs)} submitted jobs in total"
    lines = [f"expected {_times(times)}: {expected}", found]
    nearest = sorted(same_task, key=lambda job: len(expected.differences(job)))
    for job in nearest[:MAX_SHOWN]:
        lines += [_line(job), *_diff(expected, job)]
    if len(nearest) > MAX_SHOWN:
        lines.append(f"  ... and {len(nearest) - MAX_SHOWN} more")
    others = Counter(job.task for job in jobs if job.task != expected.task)
    if others:
        lines.append(
            "other tasks: " + ", ".join(f"{task} ({number})" for task, number in sorted(others.items()))
        )
    return "\n".join(lines)


def _times(times: int | None) -> str:
    return (
        "at least one job"
        if times is None
        else "no job"
        if times == 0
        else "1 job"
        if times == 1
        else f"{times} jobs"
    )


def _line(job: Submitted) -> str:
    return f"  {job.task}({_listed(job.arguments)}) {job.state} queue={job.queue} delay={_shown(job.delay)}"


def _diff(expected: _Expected, job: Submitted) -> list[str]:
    differences = expected.differences(job)
    return [
        line
        for name, want, found in differences
        for line in (f"    - {name} = {_shown(want)}", f"    + {name} = {_shown(found)}")
    ]


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "(not given)"
    if isinstance(value, timedelta):
        return duration.show(value // timedelta(microseconds=1))
    return value.isoformat() if isinstance(value, datetime) else repr(value)
