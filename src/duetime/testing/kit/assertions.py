"""Assertions about what was submitted. Their messages show what was submitted instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from duetime.model import duration
from duetime.model.duration import Duration
from duetime.task import Task
from duetime.testing.kit.submitted import Submitted, as_json, check_arguments, submitted, task_name

if TYPE_CHECKING:
    from duetime.app import App

MOST_SHOWN = 5
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
    """That jobs of this task with at least these arguments and options were submitted: `times` of them, or one or more.

    Arguments are given by name; those whose names are options here, in a mapping. Answers the jobs found.
    """
    __tracebackhide__ = True
    name = task_name(app, task)
    options = {"queue": queue, "priority": priority, "delay": delay, "at": at, "unique_key": unique_key, "owner": owner, "labels": labels}
    wanted = _Wanted(app, name, {**(arguments or {}), **named}, options)
    found = [job for job in submitted(app) if wanted.fits(job)]
    if (not found) if times is None else (len(found) != times):
        raise AssertionError(_told(app, wanted, len(found), times))
    return found


def assert_not_submitted(
    app: App, task: Task[..., Any] | str | None = None, arguments: Mapping[str, Any] | None = None, /, **named: Any
) -> None:
    """That no such job was submitted; without a task, none at all. Takes the arguments and options of `assert_submitted`."""
    __tracebackhide__ = True
    if task is not None:
        assert_submitted(app, task, arguments, **{**named, "times": 0})
    elif jobs := submitted(app):
        raise AssertionError("nothing was to be submitted, but there is\n" + "\n".join(map(_line, jobs[:MOST_SHOWN])))


class _Wanted:
    """What a job must have, by the names its reader knows."""

    def __init__(self, app: App, task: str, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        check_arguments(app, task, arguments)
        self.task = task
        self.values: dict[str, Any] = {name: as_json(value) for name, value in arguments.items()}
        self.options = {name: value for name, value in options.items() if value is not None}
        if "delay" in self.options:
            self.options["delay"] = timedelta(microseconds=duration.parse(self.options["delay"], "delay"))

    def fits(self, job: Submitted) -> bool:
        return job.task == self.task and not self.differences(job)

    def differences(self, job: Submitted) -> list[tuple[str, Any, Any]]:
        """(name, wanted, found) of what does not fit."""
        values = [(name, wanted, job.arguments.get(name, _MISSING)) for name, wanted in self.values.items()]
        options = [(name, wanted, getattr(job, name)) for name, wanted in self.options.items()]
        return [(name, wanted, found) for name, wanted, found in values + options if found != wanted]

    def __str__(self) -> str:
        return f"{self.task}({_listed({**self.values, **self.options})})"


def _told(app: App, wanted: _Wanted, count: int, times: int | None) -> str:
    jobs = submitted(app)
    like = [job for job in jobs if job.task == wanted.task]
    lines = [f"wanted {_times(times)}: {wanted}", f"found {count} among {len(like)} of that task and {len(jobs)} submitted in all"]
    nearest = sorted(like, key=lambda job: len(wanted.differences(job)))
    for job in nearest[:MOST_SHOWN]:
        lines += [_line(job), *_diff(wanted, job)]
    if len(nearest) > MOST_SHOWN:
        lines.append(f"  ... and {len(nearest) - MOST_SHOWN} more")
    others = Counter(job.task for job in jobs if job.task != wanted.task)
    if others:
        lines.append("other tasks: " + ", ".join(f"{task} ({number})" for task, number in sorted(others.items())))
    return "\n".join(lines)


def _times(times: int | None) -> str:
    return "at least one job" if times is None else "no job" if times == 0 else "1 job" if times == 1 else f"{times} jobs"


def _line(job: Submitted) -> str:
    return f"  {job.task}({_listed(job.arguments)}) {job.state} queue={job.queue} delay={_shown(job.delay)}"


def _diff(wanted: _Wanted, job: Submitted) -> list[str]:
    differences = wanted.differences(job)
    return [line for name, want, found in differences for line in (f"    - {name} = {_shown(want)}", f"    + {name} = {_shown(found)}")]


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "(not given)"
    if isinstance(value, timedelta):
        return duration.show(value // timedelta(microseconds=1))
    return value.isoformat() if isinstance(value, datetime) else repr(value)
