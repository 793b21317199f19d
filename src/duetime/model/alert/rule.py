"""Rules: which condition of which schedule or queue becomes an alert, and from when on.

For each schedule and queue one rule for each condition applies: the most specific one. A rule that names it
goes before a pattern, a pattern before a rule for all. A rule that is switched off exempts what it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.instant import Micros

Choice = TypeVar("Choice", bound=StrEnum)
MAX_COUNT = 1_000
MAX_PATTERN = 128
MAX_CHANNELS = 50


class Condition(StrEnum):
    SILENT = "silent"  # a schedule has no success within `after` its fire
    LATE = "late"  # a job has not started within `after` its due time
    FAILING = "failing"  # the last `count` jobs of a schedule are dead, or a share of `ratio` within `window`
    DEAD_LETTERS = "dead_letters"  # there are `count` open dead letters of a schedule or target
    SKIPPED = "skipped"  # `count` fires of a schedule were skipped within `window`; an overlap is none
    QUEUE_LAG = "queue_lag"  # a job of the queue is due for more than `after`
    NO_LEADER = "no_leader"  # no node leads since more than `after`
    NODE_LOST = "node_lost"  # a node died, and none took its place within `after`
    CLOCK_SKEW = "clock_skew"  # the clock of a node differs from the store's by more than `after`


FLEET = frozenset({Condition.NO_LEADER, Condition.NODE_LOST, Condition.CLOCK_SKEW})  # of no schedule or queue


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


# Which fields a condition has, and their defaults
_AFTER = {
    Condition.SILENT: "10m",
    Condition.LATE: "5m",
    Condition.QUEUE_LAG: "10m",
    Condition.NO_LEADER: "1m",
    Condition.NODE_LOST: "1m",
    Condition.CLOCK_SKEW: "5s",
}
_COUNT = {Condition.FAILING: 3, Condition.DEAD_LETTERS: 1, Condition.SKIPPED: 3}
_SEVERITY = {
    Condition.SILENT: Severity.CRITICAL,
    Condition.FAILING: Severity.CRITICAL,
    Condition.NO_LEADER: Severity.CRITICAL,
}
FIELDS = (
    "condition", "schedule", "queue", "after", "count", "ratio", "window", "channels", "severity", "enabled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AlertRule:
    """`schedule` and `queue` are names or patterns with `*`; None: all of them. `channels`: which channels
    are told; none given: all of them."""

    name: str
    condition: Condition
    schedule: str | None = None
    queue: str | None = None
    after: Micros = 0
    count: int = 0
    ratio: float | None = None
    window: Micros = 0
    channels: tuple[str, ...] = ()
    severity: Severity = Severity.WARNING
    enabled: bool = True
    version: int = field(default=0, compare=False)  # 0: built in

    @property
    def rank(self) -> int:
        """How specific it is."""
        named = [text for text in (self.schedule, self.queue) if text is not None]
        return sum(1 if "*" in text else 2 for text in named)

    def covers(self, schedule: str | None, queue: str | None) -> bool:
        return _matches(self.schedule, schedule) and _matches(self.queue, queue)

    def to_json(self) -> dict[str, Any]:
        return {
            "condition": self.condition.value,
            "schedule": self.schedule,
            "queue": self.queue,
            "after": duration.show(self.after) if self.condition in _AFTER else None,
            "count": self.count if self.condition in _COUNT else None,
            "ratio": self.ratio,
            "window": duration.show(self.window) if self.window else None,
            "channels": list(self.channels),
            "severity": self.severity.value,
            "enabled": self.enabled,
        }

    @staticmethod
    def from_json(name: str, value: Mapping[str, Any], version: int = 0) -> AlertRule:
        """Refuses what its condition does not have. None counts as not given."""
        given = {key: one for key, one in value.items() if one is not None}
        if unknown := [key for key in given if key not in FIELDS]:
            raise InvalidInput(unknown[0], f"a rule has no such field: known are {', '.join(FIELDS)}")
        condition = _choice(Condition, given.get("condition"), "condition")
        for name_of_field, allowed in _allowed(condition).items():
            if name_of_field in given and not allowed:
                raise InvalidInput(
                    name_of_field, f"does not apply to the condition {condition}: leave it out"
                )
        ratio = _ratio(given.get("ratio"))
        has_window = ratio is not None or condition is Condition.SKIPPED
        if "window" in given and not has_window:
            raise InvalidInput(
                "window", "applies to a ratio, and to skipped fires: give ratio, or leave it out"
            )
        return AlertRule(
            name,
            condition,
            _pattern(given.get("schedule"), "schedule"),
            _pattern(given.get("queue"), "queue"),
            duration.positive(given.get("after", _AFTER[condition]), "after") if condition in _AFTER else 0,
            _count(given.get("count", _COUNT[condition])) if condition in _COUNT else 0,
            ratio,
            duration.positive(given.get("window", "1h"), "window") if has_window else 0,
            channel_names(given.get("channels", ())),
            _choice(Severity, given.get("severity", _SEVERITY.get(condition, Severity.WARNING)), "severity"),
            _flag(given.get("enabled", True), "enabled"),
            version,
        )


def _allowed(condition: Condition) -> dict[str, bool]:
    return {
        "schedule": condition not in FLEET and condition is not Condition.QUEUE_LAG,
        "queue": condition not in FLEET,
        "after": condition in _AFTER,
        "count": condition in _COUNT,
        "ratio": condition is Condition.FAILING,
    }


def _matches(pattern: str | None, name: str | None) -> bool:
    return pattern is None or (name is not None and fnmatchcase(name, pattern.replace("[", "[[]")))


def _pattern(value: Any, field: str) -> str | None:
    if value is None or (isinstance(value, str) and 0 < len(value) <= MAX_PATTERN and value.isprintable()):
        return value
    raise InvalidInput(field, f"must be a name, or a pattern with *, of 1 to {MAX_PATTERN} characters")


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_COUNT:
        raise InvalidInput("count", f"{value!r} must be a whole number from 1 to {MAX_COUNT:,}")
    return value


def _ratio(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidInput("ratio", f"{value!r} must be a number above 0 and at most 1, such as 0.1")
    return float(value)


def _flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, f"{value!r} must be true or false")
    return value


def channel_names(value: Any) -> tuple[str, ...]:
    if (
        isinstance(value, str)
        or not isinstance(value, list | tuple)
        or len(value) > MAX_CHANNELS
        or not all(isinstance(one, str) and 0 < len(one) <= MAX_PATTERN for one in value)
    ):
        raise InvalidInput("channels", f"must be a list of up to {MAX_CHANNELS} names of channels")
    return tuple(value)


def _choice(kind: type[Choice], value: Any, field: str) -> Choice:
    try:
        return kind(value)
    except ValueError:
        raise InvalidInput(field, f"{value!r} is not one of {', '.join(kind)}") from None


# What is watched as soon as there is a channel. A rule of the same name replaces one of these.
DEFAULT_RULES = {
    condition.value: AlertRule.from_json(condition.value, {"condition": condition})
    for condition in Condition
    if condition is not Condition.LATE  # only the operator knows how late is too late
}


class RuleSet:
    """The rules of a tenant, built-in ones included."""

    def __init__(self, stored: Iterable[AlertRule] = ()) -> None:
        own = {rule.name: rule for rule in stored}
        self.rules = sorted({**DEFAULT_RULES, **own}.values(), key=lambda rule: (-rule.rank, rule.name))

    def of(self, condition: Condition) -> list[AlertRule]:
        """Those that are switched on, the most specific first."""
        return [rule for rule in self.rules if rule.condition is condition and rule.enabled]

    def best(
        self, condition: Condition, schedule: str | None = None, queue: str | None = None
    ) -> AlertRule | None:
        """The rule that applies; None if there is none, or if it is switched off."""
        for rule in self.rules:
            if rule.condition is condition and rule.ratio is None and rule.covers(schedule, queue):
                return rule if rule.enabled else None
        return None
