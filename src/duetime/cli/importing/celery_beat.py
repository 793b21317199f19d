"""The beat schedule of Celery as schedules of tasks: that of its settings, and that in the database of
django-celery-beat. Celery itself is not imported: its schedules are known by their attributes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from duetime.cli.importing.calls import arguments, on_both_days, span
from duetime.cli.importing.celery_options import BeatOptions, setting
from duetime.cli.importing.result import Import
from duetime.errors import ConfigError

FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
NO_CRON = (
    "Intervals count from the Unix epoch, where beat counts from its start: set anchor where it matters."
)
ROWS = "django_celery_beat.models"  # loaded if the application keeps schedules in its database
OWN_SCHEDULERS = ("celery.beat:", "celery.beat.", "django_celery_beat.")  # whose schedules are read here
CLEAN_UP = "celery.backend_cleanup"


def read_celery_beat(source: Any, made: Import, tz: str | None = None) -> None:
    """`source` is a Celery app, a module of settings, or the beat schedule itself."""
    if hasattr(source, "loader"):  # an app: otherwise it would import its tasks when it starts to work
        source.loader.import_default_modules()
    settings = getattr(source, "conf", source)
    schedule = settings if isinstance(settings, Mapping) and not hasattr(settings, "beat_schedule") else None
    if schedule is None:
        schedule = setting(settings, "beat_schedule")
    if not isinstance(schedule, Mapping):
        raise ConfigError("there is no beat_schedule: name a Celery app, its settings or the schedule itself")
    tasks = getattr(source, "tasks", {})
    reader = _EntryReader(
        tz or str(setting(settings, "timezone") or "UTC"), BeatOptions(settings, tasks), tasks, made
    )
    made.remark("Celery does not retry a failed task by itself, Duetime does: set retry where it matters.")
    stored = dict(_stored_entries(str(setting(settings, "beat_scheduler") or ""), made))
    for name, entry in {**schedule, **stored}.items():
        reader.read(str(name), entry)
    own = [name for name in tasks if not name.startswith("celery.")]
    if not made.entries and own:
        made.remark(
            f"The application has {len(own)} tasks and no beat schedule: docs/moving.md says how tasks move."
        )


def _stored_entries(scheduler: str, made: Import) -> Iterator[tuple[str, Any]]:
    """What the database of django-celery-beat holds, as entries of a beat schedule."""
    if scheduler and not scheduler.startswith(OWN_SCHEDULERS):
        made.skip(f"the schedules of {scheduler}", "only beat_schedule and django-celery-beat are read")
    models = sys.modules.get(ROWS)
    if models is None:
        if scheduler.startswith("django_celery_beat."):
            made.skip("the schedules in the database", "django-celery-beat is not in INSTALLED_APPS")
        return
    try:
        rows = list(models.PeriodicTask.objects.order_by("name"))
    except Exception as problem:  # of any database
        made.skip("the schedules in the database", f"{type(problem).__name__}: {problem}")
        return
    for row in rows:
        try:
            yield row.name, _entry_of(row)
        except Exception as problem:  # of the row's text, or of its parts that are missing
            made.skip(f"PeriodicTask {row.name!r}", f"{type(problem).__name__}: {problem}")


def _entry_of(row: Any) -> dict[str, Any]:
    options = {name: getattr(row, name) for name in ("queue", "exchange", "routing_key", "priority")}
    return {
        "task": row.task,
        "schedule": row.schedule,
        "args": json.loads(row.args or "[]"),
        "kwargs": json.loads(row.kwargs or "{}"),
        "options": {
            **{name: value for name, value in options.items() if value is not None},
            **({"expires": row.expires_} if row.expires_ else {}),
            **({"headers": headers} if (headers := json.loads(row.headers or "{}")) else {}),
        },
        "enabled": row.enabled,
        "start_at": row.start_time,
        "max_runs": 1 if row.one_off else None,
    }


class _EntryReader:
    def __init__(self, zone: str, options: BeatOptions, tasks: Any, made: Import) -> None:
        self._zone = zone
        self._options = options
        self._tasks = tasks
        self._made = made

    def read(self, name: str, entry: Any) -> None:
        source = f"beat_schedule[{name!r}]"
        if not isinstance(entry, Mapping) or not isinstance(entry.get("task"), str):
            self._made.skip(source, "names no task")
            return
        if entry["task"] == CLEAN_UP:
            self._made.skip(source, "Duetime deletes old results by itself")
            return
        when = self._when(entry.get("schedule"), source)
        if when is None:
            return
        task = entry["task"]
        function = getattr(self._tasks.get(task) if hasattr(self._tasks, "get") else None, "run", None)
        payload, problem = arguments(function, entry.get("args") or (), entry.get("kwargs") or {})
        options, differences = self._options.of(task, entry.get("options") or {})
        differences += [problem] if problem else []
        enabled = entry.get("enabled", True)
        if not enabled:
            differences.append("it is disabled in Celery, so it is paused here")
        if entry.get("relative") or getattr(entry.get("schedule"), "relative", False):
            differences.append("relative: intervals are always aligned to the clock here")
        start_at, max_runs = entry.get("start_at"), entry.get("max_runs")
        written = {
            "name": name,
            "when": when,
            "target": task,
            **({"payload": payload} if payload else {}),
            **options,
            **({"start_at": start_at.isoformat()} if start_at else {}),
            **({"max_runs": max_runs} if max_runs and "at" not in when else {}),
            **({"paused": True} if problem or not enabled else {}),
        }
        self._made.add(written, source, *differences)

    def _when(self, schedule: Any, source: str) -> dict[str, str] | None:
        if all(hasattr(schedule, f"_orig_{name}") for name in FIELDS):
            return _crontab(schedule, str(getattr(schedule, "tz", self._zone)))
        if hasattr(schedule, "clocked_time"):
            return {"at": schedule.clocked_time.isoformat()}
        interval = span(getattr(schedule, "run_every", schedule))
        if hasattr(schedule, "event") and hasattr(schedule, "lat"):
            self._made.skip(source, f"solar event {schedule.event}: there are no schedules by the sun")
        elif interval is None:
            self._made.skip(source, f"{type(schedule).__name__} is neither an interval nor a crontab")
        else:
            self._made.remark(NO_CRON)
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
