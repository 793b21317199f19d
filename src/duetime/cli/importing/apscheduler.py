"""The jobs of APScheduler 3 as schedules of tasks. Jobs and triggers are known by their attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any

from duetime.cli.format import now_here
from duetime.cli.importing.calls import arguments, on_both_days, span
from duetime.cli.importing.result import Import
from duetime.cli.loading import search_this_folder
from duetime.errors import ConfigError

NAMES = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")  # APScheduler's 0 is Monday
NUMBERS = {"first": 1, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5}
RANGES = {"second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12)}
NO_ANCHOR = "Intervals count from the Unix epoch, APScheduler's from its start: set anchor where it matters."
DEFAULTS: Mapping[str, Any] = {"coalesce": True, "misfire_grace_time": 1, "max_instances": 1}
_RANGE = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")
_MADE_UP_ID = re.compile(r"[0-9a-f]{32}")


class _NotSupported(Exception):
    """The reason."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs, and what their scheduler decides for all of them."""

    jobs: list[Any]
    defaults: Mapping[str, Any] = field(default_factory=lambda: DEFAULTS)
    executors: Mapping[str, Any] = field(default_factory=dict)
    began: datetime | None = (
        None  # when the program began that made the scheduler; None: the jobs were stored
    )

    def value(self, job: Any, name: str) -> Any:
        """Of a job. One of a scheduler that has not started has no defaults yet."""
        return getattr(job, name, self.defaults.get(name))

    def is_made_up(self, moment: datetime | None) -> bool:
        """Whether APScheduler took the time at which this program ran, because the job names none."""
        return self.began is not None and moment is not None and self.began <= moment <= now_here()


def jobs_of(source: Any, began: datetime | None = None) -> Jobs:
    """Of a scheduler, or of a list of jobs."""
    if hasattr(source, "get_jobs"):
        defaults = {**DEFAULTS, **getattr(source, "_job_defaults", {})}
        return Jobs(list(source.get_jobs()), defaults, getattr(source, "_executors", {}), began)
    if isinstance(source, list | tuple):
        return Jobs(list(source), began=began)
    raise ConfigError("this is not a scheduler: name the object that has get_jobs()")


def jobs_at(url: str, made: Import) -> Jobs:
    """Of a job store of SQLAlchemy, which is only read: a scheduler deletes jobs whose functions it does not
    find."""
    search_this_folder()
    try:
        store = import_module("apscheduler.jobstores.sqlalchemy").SQLAlchemyJobStore(url=url)
        errors = import_module("sqlalchemy.exc").SQLAlchemyError
    except ImportError:
        raise ConfigError(
            "a job store needs APScheduler to be read: pip install 'apscheduler[sqlalchemy]<4'"
        ) from None
    try:
        with store.engine.connect() as connection:
            rows = list(connection.execute(store.jobs_t.select().order_by(store.jobs_t.c.id)))
    except errors as problem:
        raise ConfigError(f"the job store cannot be read: {str(problem).splitlines()[0]}") from None
    return Jobs([job for row in rows if (job := _restored(store, row, made)) is not None])


def _restored(store: Any, row: Any, made: Import) -> Any:
    try:
        return store._reconstitute_job(row.job_state)
    except Exception as problem:  # of the program's own functions and arguments
        reason = f"it cannot be read here ({type(problem).__name__}: {problem}): import where its program is"
        made.skip(f"job {row.id!r}", reason)
        return None


def read_apscheduler(source: Jobs, made: Import, tz: str | None = None) -> None:
    made.remark("A schedule names a task: register each function with @app.task and the name below.")
    made.remark("APScheduler does not retry a failed job, Duetime does: set retry where it matters.")
    for name, executor in source.executors.items():
        if size := getattr(getattr(executor, "_pool", None), "_max_workers", None):
            made.remark(f"The executor {name!r} has {size} workers: start nodes with --concurrency {size}.")
    for job in sorted(source.jobs, key=lambda job: (_name(job, source), str(job.trigger))):
        origin = f"job {_name(job, source)!r}: {_shown(job.trigger, source)}"
        try:
            _job(job, origin, tz, source, made)
        except _NotSupported as problem:
            made.skip(origin, str(problem))


def _job(job: Any, origin: str, tz: str | None, source: Jobs, made: Import) -> None:
    trigger = job.trigger
    reference = getattr(job, "func_ref", None) or getattr(getattr(job, "func", None), "__name__", None)
    if not reference:
        raise _NotSupported("its function has no name")
    if "<lambda>" in reference:
        raise _NotSupported("a lambda has no name: write a function")
    payload, problem = arguments(getattr(job, "func", None), job.args or (), job.kwargs or {})
    is_paused = problem is not None or getattr(job, "next_run_time", trigger) is None
    differences = [problem] if problem else []
    differences += _of_executor(job, source)
    own_start = source.is_made_up(_first_start(trigger))
    if own_start:
        made.remark(NO_ANCHOR)
    if not is_paused and _starts_otherwise(job):
        differences.append("next_run_time: the first run is the next one of the rule")
    written = {
        "name": _name(job, source),
        "when": _when(trigger, tz, source),
        "target": str(reference).replace(":", "."),
        **({"payload": payload} if payload else {}),
        **_policies(job, source, differences),
        **_bounds(trigger, own_start),
        **({"paused": True} if is_paused else {}),
    }
    if jitter := getattr(trigger, "jitter", None):
        written["jitter"] = span(jitter)
        differences.append(f"jitter {jitter}: it delays only, and never fires early")
    made.add(written, origin, *differences)


def _name(job: Any, source: Jobs) -> str:
    """An id that APScheduler has made up is another one whenever the program starts."""
    is_made_up = source.began is not None and _MADE_UP_ID.fullmatch(str(job.id))
    return str(job.name if is_made_up else job.id)


def _shown(trigger: Any, source: Jobs) -> str:
    """The same whenever the program starts."""
    return "date" if source.is_made_up(getattr(trigger, "run_date", None)) else str(trigger)


def _of_executor(job: Any, source: Jobs) -> Iterator[str]:
    name = getattr(job, "executor", "default")
    if "Process" in type(source.executors.get(name)).__name__ or "process" in str(name):
        yield f"executor {name!r}: it ran in processes; register the task with isolate=True"
    elif name != "default":
        yield f"executor {name!r}: give the task a queue, and a worker for that queue"


def _first_start(trigger: Any) -> datetime | None:
    """The moment at which an interval was made that names no start: it starts one interval later."""
    start, interval = getattr(trigger, "start_date", None), getattr(trigger, "interval", None)
    return None if start is None or interval is None else start - interval


def _starts_otherwise(job: Any) -> bool:
    """Whether next_run_time was given, and is not a moment of the rule."""
    following = getattr(job, "next_run_time", None)
    if (
        following is None
        or not hasattr(job.trigger, "get_next_fire_time")
        or getattr(job.trigger, "jitter", None)
    ):
        return False
    return bool(job.trigger.get_next_fire_time(None, following) != following)


def _policies(job: Any, source: Jobs, differences: list[str]) -> dict[str, Any]:
    policy = "latest" if source.value(job, "coalesce") else "all"
    grace = span(source.value(job, "misfire_grace_time"))
    instances = source.value(job, "max_instances")
    if instances > 1:
        differences.append(f"max_instances={instances}: set a limit on the task; overlap is allowed here")
    return {
        "missed": policy if grace is None else {"policy": policy, "within": grace},
        **({"overlap": "skip"} if instances == 1 else {}),
    }


def _bounds(trigger: Any, own_start: bool) -> dict[str, str]:
    """`start_date` of an interval is its anchor, too."""
    names = {"end_at": "end_date"} if own_start else {"start_at": "start_date", "end_at": "end_date"}
    found = {name: getattr(trigger, attribute, None) for name, attribute in names.items()}
    return {name: moment.isoformat() for name, moment in found.items() if moment is not None}


def _when(trigger: Any, tz: str | None, source: Jobs) -> dict[str, str]:
    zone = tz or str(getattr(trigger, "timezone", None) or "UTC")
    if (once := getattr(trigger, "run_date", None)) is not None:
        if source.is_made_up(once):
            raise _NotSupported("it runs once whenever the program starts: submit a job there")
        return {"at": once.isoformat()}
    if (interval := span(getattr(trigger, "interval", None))) is not None:
        start = None if source.is_made_up(_first_start(trigger)) else getattr(trigger, "start_date", None)
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
