"""The jobs of APScheduler 3 as schedules of tasks. Jobs and triggers are known by their attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from duetime.cli.importing.calls import arguments, on_both_days, span
from duetime.cli.importing.result import Import
from duetime.errors import ConfigError

NAMES = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")  # APScheduler's 0 is Monday
NUMBERS = {"first": 1, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5}
RANGES = {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12)}
_RANGE = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")


class _NotSupported(Exception):
    """The reason."""


def jobs_of(source: Any) -> list[Any]:
    """Of a scheduler, or of a list of jobs."""
    if hasattr(source, "get_jobs"):
        return list(source.get_jobs())
    if isinstance(source, list | tuple):
        return list(source)
    raise ConfigError("this is not a scheduler: name the object that has get_jobs()")


def jobs_at(url: str) -> list[Any]:
    """Of a job store of SQLAlchemy. APScheduler reads it, because the jobs are pickled."""
    try:
        make = import_module("apscheduler.schedulers.background").BackgroundScheduler
    except ModuleNotFoundError:
        raise ConfigError(
            "a job store needs APScheduler to be read: pip install 'apscheduler[sqlalchemy]<4'"
        ) from None
    scheduler = make(jobstores={"default": {"type": "sqlalchemy", "url": url}})
    scheduler.start(paused=True)
    try:
        return list(scheduler.get_jobs())
    finally:
        scheduler.shutdown(wait=False)


def read_apscheduler(jobs: Iterable[Any], made: Import, tz: str | None = None) -> None:
    made.remark("A schedule names a task: register each function with @app.task and the name below.")
    made.remark("APScheduler does not retry a failed job, Duetime does: set retry where it matters.")
    for job in jobs:
        source = f"job {job.id!r}: {job.trigger}"
        try:
            _job(job, source, tz, made)
        except _NotSupported as problem:
            made.skip(source, str(problem))


def _job(job: Any, source: str, tz: str | None, made: Import) -> None:
    trigger = job.trigger
    reference = getattr(job, "func_ref", None) or getattr(getattr(job, "func", None), "__name__", None)
    if not reference:
        raise _NotSupported("its function has no name")
    payload, problem = arguments(getattr(job, "func", None), job.args or (), job.kwargs or {})
    is_paused = problem is not None or getattr(job, "next_run_time", trigger) is None
    differences = [problem] if problem else []
    written = {
        "name": job.id,
        "when": _when(trigger, tz),
        "target": str(reference).replace(":", "."),
        **({"payload": payload} if payload else {}),
        **_policies(job, differences),
        **_bounds(trigger),
        **({"paused": True} if is_paused else {}),
    }
    if jitter := getattr(trigger, "jitter", None):
        written["jitter"] = span(jitter)
        differences.append(f"jitter {jitter}: it delays only, and never fires early")
    made.add(written, source, *differences)


def _policies(job: Any, differences: list[str]) -> dict[str, Any]:
    policy = "latest" if getattr(job, "coalesce", True) else "all"
    grace = span(getattr(job, "misfire_grace_time", None))
    instances = getattr(job, "max_instances", 1)
    if instances > 1:
        differences.append(f"max_instances={instances}: set a limit on the task; overlap is allowed here")
    return {
        "missed": policy if grace is None else {"policy": policy, "within": grace},
        **({"overlap": "skip"} if instances == 1 else {}),
    }


def _bounds(trigger: Any) -> dict[str, str]:
    """`start_date` of an interval is its anchor, too."""
    names = {"start_at": "start_date", "end_at": "end_date"}
    found = {name: getattr(trigger, attribute, None) for name, attribute in names.items()}
    return {name: moment.isoformat() for name, moment in found.items() if moment is not None}


def _when(trigger: Any, tz: str | None) -> dict[str, str]:
    zone = tz or str(getattr(trigger, "timezone", None) or "UTC")
    if getattr(trigger, "run_date", None) is not None:
        return {"at": trigger.run_date.isoformat()}
    if (interval := span(getattr(trigger, "interval", None))) is not None:
        start = getattr(trigger, "start_date", None)
        return {"every": interval, **({} if start is None else {"anchor": start.isoformat()})}
    if hasattr(trigger, "fields"):
        return _cron({field.name: str(field) for field in trigger.fields}, zone)
    raise _NotSupported(f"{type(trigger).__name__} has no counterpart")


def _cron(fields: dict[str, str], zone: str) -> dict[str, str]:
    for name in ("year", "week"):
        if fields.get(name, "*") != "*":
            raise _NotSupported(
                f"cron has no field {name}: use start_at and end_at, or a task that checks it"
            )
    day, weekday = fields.get("day", "*"), fields.get("day_of_week", "*")
    if day != "*" and weekday != "*":
        minutes, hours, days, months = (
            _numbers(name, fields.get(name, "*")) for name in ("minute", "hour", "day", "month")
        )
        seconds = _numbers("second", fields.get("second", "0"))
        weekdays = [NAMES.index(name) + 1 for name in _weekdays(weekday)]
        return {"rrule": on_both_days(minutes, hours, days, months, weekdays, seconds), "tz": zone}
    dom, dow = _days(day, weekday)
    words = [fields.get("minute", "*"), fields.get("hour", "*"), dom, fields.get("month", "*").upper(), dow]
    second = fields.get("second", "0")
    return {"cron": " ".join(words if second == "0" else [second, *words]), "tz": zone}


def _days(day: str, weekday: str) -> tuple[str, str]:
    """Day of month and day of week as cron has them."""
    if day == "last":
        return "L", "*"
    place, _, name = day.partition(" ")
    if name:
        number = (NAMES.index(name[:3].upper()) + 1) % 7
        return "*", f"{number}L" if place == "last" else f"{number}#{NUMBERS[place]}"
    return day, "*" if weekday == "*" else ",".join(_weekdays(weekday))


def _weekdays(text: str) -> list[str]:
    found = []
    for part in text.split(","):
        first, last, step = _part(part)
        low, high = (0, 6) if first == "*" else (_weekday(first), _weekday(last or first))
        found += [NAMES[number] for number in range(low, high + 1, step)]
    return found


def _weekday(word: str) -> int:
    return int(word) if word.isdigit() else NAMES.index(word[:3].upper())


def _numbers(name: str, text: str) -> list[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, last, step = _part(part)
        if first != "*" and not first.isdigit():
            raise _NotSupported(f"{name} {text!r} together with a day of the week has no counterpart")
        low, high = RANGES[name] if first == "*" else (int(first), int(last or first))
        found |= set(range(low, high + 1, step))
    return sorted(found)


def _part(text: str) -> tuple[str, str | None, int]:
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise _NotSupported(f"{text!r} has no counterpart")
    return found[1], found[2], int(found[3] or 1)
