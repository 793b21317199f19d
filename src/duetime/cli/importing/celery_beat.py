"""The beat schedule of Celery as schedules of tasks. Celery itself is not imported: its schedules are known
by their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from duetime.cli.importing.calls import arguments, on_both_days, span
from duetime.cli.importing.result import Import
from duetime.errors import ConfigError

FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
NO_CRON = (
    "Intervals count from the Unix epoch, where beat counts from its start: set anchor where it matters."
)


def read_celery_beat(source: Any, made: Import, tz: str | None = None) -> None:
    """`source` is a Celery app, a module of settings, or the beat schedule itself."""
    settings = getattr(source, "conf", source)
    schedule = settings if isinstance(settings, Mapping) and not hasattr(settings, "beat_schedule") else None
    if schedule is None:
        schedule = _setting(settings, "beat_schedule", "CELERYBEAT_SCHEDULE")
    if not isinstance(schedule, Mapping):
        raise ConfigError("there is no beat_schedule: name a Celery app, its settings or the schedule itself")
    zone = tz or str(_setting(settings, "timezone", "CELERY_TIMEZONE") or "UTC")
    made.remark("Celery does not retry a failed task by itself, Duetime does: set retry where it matters.")
    tasks = getattr(source, "tasks", {})
    for name, entry in schedule.items():
        _entry(str(name), entry, zone, tasks, made)


def _entry(name: str, entry: Any, zone: str, tasks: Any, made: Import) -> None:
    source = f"beat_schedule[{name!r}]"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("task"), str):
        made.skip(source, "names no task")
        return
    when = _when(entry.get("schedule"), zone, source, made)
    if when is None:
        return
    task = entry["task"]
    function = getattr(tasks.get(task) if hasattr(tasks, "get") else None, "run", None)
    payload, problem = arguments(function, entry.get("args") or (), entry.get("kwargs") or {})
    options, differences = _options(entry.get("options") or {})
    differences += [problem] if problem else []
    if entry.get("relative"):
        differences.append("relative: intervals are always aligned to the clock here")
    written = {
        "name": name,
        "when": when,
        "target": task,
        **({"payload": payload} if payload else {}),
        **options,
        **({"paused": True} if problem else {}),
    }
    made.add(written, source, *differences)


def _when(schedule: Any, zone: str, source: str, made: Import) -> dict[str, str] | None:
    if all(hasattr(schedule, f"_orig_{name}") for name in FIELDS):
        return _crontab(schedule, zone)
    interval = span(getattr(schedule, "run_every", schedule))
    if hasattr(schedule, "event") and hasattr(schedule, "lat"):
        made.skip(source, f"solar event {schedule.event}: there are no schedules by the sun")
    elif interval is None:
        made.skip(source, f"{type(schedule).__name__} is neither an interval nor a crontab")
    else:
        made.remark(NO_CRON)
        return {"every": interval}
    return None


def _crontab(schedule: Any, zone: str) -> dict[str, str]:
    texts = {name: _field(getattr(schedule, f"_orig_{name}")) for name in FIELDS}
    if not texts["day_of_month"].startswith("*") and not texts["day_of_week"].startswith("*"):
        values = (sorted(getattr(schedule, name)) for name in FIELDS)
        return {"rrule": on_both_days(*values), "tz": zone}
    return {"cron": " ".join(texts.values()), "tz": zone}


def _field(value: Any) -> str:
    """Text as Celery takes it, a number, or a set of numbers."""
    if isinstance(value, str):
        words = value.replace(" ", "").upper()
        for day in ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"):
            words = words.replace(day, day[:3])
        return words
    return (
        ",".join(map(str, sorted(value))) if isinstance(value, set | list | tuple | frozenset) else str(value)
    )


def _options(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    written: dict[str, Any] = {}
    differences = []
    for name, value in options.items():
        match name, value:
            case "queue", str():
                written["queue"] = value
            case "priority", int():
                written["priority"] = min(max(value, 0), 9)
                differences.append(f"priority {value}: 9 is the most urgent here, 0 with Redis in Celery")
            case "expires", int() | float() | timedelta():
                written["expires"] = span(value)
            case (("time_limit" | "soft_time_limit"), int() | float()):
                written["timeout"] = span(value)
            case "expires", datetime():
                written["end_at"] = value.isoformat()
            case _:
                differences.append(f"the option {name}={value!r} has no counterpart")
    return written, differences


def _setting(settings: Any, *names: str) -> Any:
    for name in names:
        found = settings.get(name) if isinstance(settings, Mapping) else getattr(settings, name, None)
        if found is not None:
            return found
    return None
