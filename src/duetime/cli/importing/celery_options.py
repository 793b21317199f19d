"""The options with which beat sends a task: of the entry, of the task, of task_routes and of the settings, in
this order. What has no counterpart is named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from duetime.cli.importing.calls import span

EXEC_OPTIONS = ("queue", "exchange", "routing_key", "priority", "expires", "time_limit", "soft_time_limit")
DEFAULT_QUEUE = "celery"  # what Celery calls the queue that is `default` here
OLD_NAMES = {
    "beat_schedule": "CELERYBEAT_SCHEDULE",
    "beat_scheduler": "CELERYBEAT_SCHEDULER",
    "task_routes": "CELERY_ROUTES",
    "task_default_queue": "CELERY_DEFAULT_QUEUE",
    "task_time_limit": "CELERYD_TASK_TIME_LIMIT",
    "task_soft_time_limit": "CELERYD_TASK_SOFT_TIME_LIMIT",
    "task_default_rate_limit": "CELERY_DEFAULT_RATE_LIMIT",
}


def setting(settings: Any, name: str) -> Any:
    """By its name, by that of Django's settings, or by its old one."""
    for known in (name, f"CELERY_{name.upper()}", OLD_NAMES.get(name, name)):
        found = settings.get(known) if isinstance(settings, Mapping) else getattr(settings, known, None)
        if found is not None:
            return found
    return None


class BeatOptions:
    def __init__(self, settings: Any, tasks: Any) -> None:
        self._settings = settings
        self._tasks = tasks
        self._routes = setting(settings, "task_routes")

    def of(self, task: str, own: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """As fields of an entry, and what differs."""
        known = self._tasks.get(task) if hasattr(self._tasks, "get") else None
        declared = {name: getattr(known, name, None) for name in EXEC_OPTIONS}
        routed, differences = self._routed(task)
        options: dict[str, Any] = {}
        for source in (self._defaults(), routed, declared, own):
            options |= {name: value for name, value in source.items() if value is not None}
        written, unknown = _translated(options)
        rate = getattr(known, "rate_limit", None) or setting(self._settings, "task_default_rate_limit")
        if rate is not None:
            differences.append(f"rate_limit {rate!r}: set limit=dt.Limit(rate=...) on the task")
        return written, [*differences, *unknown]

    def _defaults(self) -> dict[str, Any]:
        queue = setting(self._settings, "task_default_queue")
        return {
            "queue": None if queue == DEFAULT_QUEUE else queue,
            "time_limit": setting(self._settings, "task_time_limit"),
            "soft_time_limit": setting(self._settings, "task_soft_time_limit"),
            "priority": setting(self._settings, "task_default_priority"),
        }

    def _routed(self, task: str) -> tuple[dict[str, Any], list[str]]:
        routes = self._routes
        differences = []
        for route in routes if isinstance(routes, list | tuple) else [routes]:
            if callable(route) or isinstance(route, str):
                differences.append("task_routes has a function, which may choose another queue")
                continue
            for pattern, destination in _in_order(route):
                if _matches(pattern, task):
                    found = {"queue": destination} if isinstance(destination, str) else dict(destination)
                    return found, differences
        return {}, differences


def _in_order(route: Any) -> Iterator[tuple[Any, Any]]:
    """Whole names before patterns, as Celery looks them up."""
    pairs = list(route.items() if isinstance(route, Mapping) else route or ())
    yield from (pair for pair in pairs if isinstance(pair[0], str) and "*" not in pair[0])
    yield from (pair for pair in pairs if not isinstance(pair[0], str) or "*" in pair[0])


def _matches(pattern: Any, task: str) -> bool:
    if isinstance(pattern, re.Pattern):
        return pattern.match(task) is not None
    return fnmatchcase(task, pattern)


def _translated(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    written: dict[str, Any] = {}
    differences = []
    limits = {name: options[name] for name in ("time_limit", "soft_time_limit") if name in options}
    if limits:
        written["timeout"] = span(next(iter(limits.values())))
        if len(limits) > 1:
            differences.append(f"soft_time_limit {limits['soft_time_limit']}: timeout is the other limit")
    for name, value in options.items():
        match name, value:
            case "time_limit" | "soft_time_limit", _:
                pass
            case "queue", _:
                written["queue"] = str(getattr(value, "name", value))
            case "priority", int():
                written["priority"] = min(max(value, 0), 9)
                differences.append(f"priority {value}: 9 is the most urgent here, 0 with Redis in Celery")
            case "expires", int() | float() | timedelta():
                written["expires"] = span(value)
            case "expires", datetime():
                written["end_at"] = value.isoformat()
            case _:
                differences.append(f"the option {name}={value!r} has no counterpart")
    return written, differences
