"""When a schedule fires: `Cron`, `Every`, `At`, `RRule`. Values, checked when made; `next` is a pure function
of `after`.

Clock changes, for cron: an expression has *fixed times* if neither its minute nor its hour begins with `*`. A
fixed time in a gap fires once, at the first instant after the gap; several in one gap are one fire. A fixed
time in a fold fires once, the first time. Every other expression follows *real time*: it fires at each
instant whose local time matches. So it skips times in a gap and repeats times in a fold. `0 */2 * * *`
follows real time, because its hour begins with `*`. Where clocks go from 02:00 to 03:00, it fires at 00:00
and 04:00. Where the hour from 02:00 to 03:00 comes twice, it fires at both 02:00s. Seconds make no
difference. An `RRule` of daily or longer frequency has fixed times; one of a shorter frequency follows real
time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from duetime.errors import InvalidInput, InvalidWhen
from duetime.model import cron, duration, instant, rrule, zone
from duetime.model.instant import EPOCH, LATEST, SECOND, Micros
from duetime.model.zone import LocalTimes, Search, Zone

MIN_INTERVAL = 100_000
"""A tenth of a second. Below it, planning a fire costs more than the fire, and no worker starts jobs that
evenly."""
MAX_PREVIEWED = 10_000
_KINDS = {"cron": {"tz", "key"}, "every": {"anchor"}, "at": set[str](), "rrule": {"tz"}}
_KNOWN = (
    'write one of {"cron": ..., "tz": ...}, {"every": "5m"}, {"at": "2030-01-01T09:00:00Z"}, '
    '{"rrule": ..., "tz": ...}'
)


class _Fires(ABC):
    """The common methods of every `When`; each kind defines `next_us`."""

    __slots__ = ()

    @abstractmethod
    def next_us(self, after: Micros) -> Micros | None:
        """The first fire later than `after`, in microseconds; None when there is none."""

    def between_us(self, start: Micros, end: Micros) -> Iterator[Micros]:
        """Every fire in `start <= instant < end`, in microseconds."""
        moment = self.next_us(start - 1)
        while moment is not None and moment < end:
            yield moment
            moment = self.next_us(moment)

    def next(self, after: datetime) -> datetime | None:
        """The first fire strictly after `after`, aware UTC; None when there is none."""
        found = self.next_us(_read_after(after))
        return None if found is None else instant.to_datetime(found)

    def preview(self, n: int, after: datetime) -> list[datetime]:
        """The first `n` fires strictly after `after`; fewer if there are no more."""
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MAX_PREVIEWED:
            raise InvalidInput("n", f"{n!r} fires cannot be previewed: ask for 1 to {MAX_PREVIEWED}")
        return [
            instant.to_datetime(fire) for fire in islice(self.between_us(_read_after(after) + 1, LATEST), n)
        ]


@dataclass(frozen=True, slots=True, init=False)
class Cron(_Fires):
    """A cron expression in a time zone. `key` decides where `H` falls; the default is the name of the
    schedule."""

    expr: str
    tz: str
    key: str
    _next: Callable[[Micros], Micros | None] = field(compare=False, repr=False, init=False)

    def __init__(self, expr: str, tz: str = "UTC", key: str = "") -> None:
        if not isinstance(key, str):
            raise InvalidWhen("key", f"{key!r} is not text: give the name that spreads H")
        shown = " ".join(expr.split()) if isinstance(expr, str) else expr
        _freeze(self, expr=shown, tz=tz, key=key, _next=_cron_plan(shown, tz, key))

    def next_us(self, after: Micros) -> Micros | None:
        return self._next(after)

    def __reduce__(self) -> tuple[type[Cron], tuple[str, str, str]]:
        return Cron, (self.expr, self.tz, self.key)


@dataclass(frozen=True, slots=True, init=False)
class Every(_Fires):
    """Fires at anchor + k * interval, also before the anchor. The default anchor is the Unix epoch."""

    interval: timedelta
    anchor: datetime
    _interval: Micros = field(compare=False, repr=False, init=False)
    _phase: Micros = field(compare=False, repr=False, init=False)

    def __init__(self, interval: duration.Duration, anchor: datetime | None = None) -> None:
        micros = _read_interval(interval, "every")
        start = 0 if anchor is None else _read_instant(anchor, "anchor")
        span, origin = timedelta(microseconds=micros), instant.to_datetime(start)
        _freeze(self, interval=span, anchor=origin, _interval=micros, _phase=start % micros)

    def next_us(self, after: Micros) -> Micros | None:
        found = after - (after - self._phase) % self._interval + self._interval
        return found if found < LATEST else None

    def __reduce__(self) -> tuple[type[Every], tuple[timedelta, datetime]]:
        return Every, (self.interval, self.anchor)


@dataclass(frozen=True, slots=True, init=False)
class At(_Fires):
    """One instant, once."""

    moment: datetime
    _moment: Micros = field(compare=False, repr=False, init=False)

    def __init__(self, moment: datetime) -> None:
        micros = _read_instant(moment, "at")
        _freeze(self, moment=instant.to_datetime(micros), _moment=micros)

    def next_us(self, after: Micros) -> Micros | None:
        return self._moment if after < self._moment else None

    def __reduce__(self) -> tuple[type[At], tuple[datetime]]:
        return At, (self.moment,)


@dataclass(frozen=True, slots=True, init=False)
class RRule(_Fires):
    """An RFC 5545 recurrence rule in a time zone, with an optional DTSTART line before it. The default
    DTSTART is the epoch."""

    text: str
    tz: str
    _next: Callable[[Micros], Micros | None] = field(compare=False, repr=False, init=False)

    def __init__(self, text: str, tz: str = "UTC") -> None:
        rule = rrule.compiled(text, tz)
        _freeze(self, text=rule.text, tz=rule.zone.name, _next=rule.next_us)

    def next_us(self, after: Micros) -> Micros | None:
        return self._next(after)

    def __reduce__(self) -> tuple[type[RRule], tuple[str, str]]:
        return RRule, (self.text, self.tz)


@dataclass(frozen=True, slots=True)
class Unreadable(_Fires):
    """A stored definition this machine cannot read, for example in a zone that its tz database does not
    have."""

    members: tuple[tuple[str, str], ...]
    problem: str

    def next_us(self, after: Micros) -> Micros | None:
        raise InvalidWhen("when", self.problem)


When = Cron | Every | At | RRule | Unreadable


def to_json(when: When) -> dict[str, str]:
    """The form in the HTTP API and in the stores. `from_json` reads it back as an equal value."""
    match when:
        case Cron():
            return {"cron": when.expr, "tz": when.tz} | ({"key": when.key} if when.key else {})
        case Every():
            anchor = {} if when.anchor == EPOCH else {"anchor": _iso(when.anchor)}
            return {"every": duration.show(when.interval // timedelta(microseconds=1))} | anchor
        case At():
            return {"at": _iso(when.moment)}
        case RRule():
            return {"rrule": when.text, "tz": when.tz}
        case Unreadable():
            return dict(when.members)


def from_json(value: Any, field: str = "when") -> When:
    """Reads the form of the API. Every error names the wrong member, for example `when.tz`."""
    if not isinstance(value, dict):
        raise InvalidWhen(field, f"{value!r} is not an object: {_KNOWN}")
    kinds = [kind for kind in _KINDS if kind in value]
    if len(kinds) != 1:
        raise InvalidWhen(field, f"has {' and '.join(kinds) or 'none of cron, every, at, rrule'}: {_KNOWN}")
    for name, member in value.items():
        if name != kinds[0] and name not in _KINDS[kinds[0]]:
            raise InvalidWhen(f"{field}.{name}", f"cannot be combined with {kinds[0]!r}: {_KNOWN}")
        if not isinstance(member, str):
            raise InvalidWhen(f"{field}.{name}", f"{member!r} is not text: {_KNOWN}")
    try:
        return _build(kinds[0], value)
    except InvalidInput as problem:
        kind = type(problem) if isinstance(problem, InvalidWhen) else InvalidWhen
        raise kind(f"{field}.{problem.field}", problem.reason) from problem


def restore(value: dict[str, str]) -> When:
    """Reads what `to_json` wrote, perhaps on another machine. One unreadable definition must not hide all
    others."""
    try:
        return from_json(value)
    except InvalidWhen as problem:
        return Unreadable(tuple(value.items()), str(problem))


def seeded(when: When, key: str) -> When:
    """The same `when`. If it uses `H` without a key of its own, this key decides where `H` falls."""
    if isinstance(when, Cron) and not when.key and uses_hash(when):
        return replace(when, key=key)
    return when


def uses_hash(when: When) -> bool:
    """Whether it uses `H`, so that its times depend on its key."""
    return isinstance(when, Cron) and not when.expr.startswith("@") and cron.parse(when.expr).hashed


def is_interval(when: Cron) -> bool:
    """Whether it is an expression like "@every 10s", which has no local times."""
    return interval_part(when.expr) is not None


class WallClock(NamedTuple):
    """The local times of a `when`: what a wall clock in its zone shows when it fires."""

    zone: Zone
    search: Search
    fixed: bool  # has fixed times, as opposed to following real time
    sparse: bool  # so few times that users notice if a clock change removes or repeats one
    until: Micros | None


def wall_clock(when: When) -> WallClock | None:
    """None if it has no local times, like an interval."""
    match when:
        case Cron() if not is_interval(when):
            search = cron.compiled(when.expr, when.key)
            fixed = search.pattern.fixed_time
            return WallClock(zone.load(when.tz), search, fixed, fixed or len(search.pattern.hours) < 24, None)
        case RRule():
            rule = rrule.compiled(when.text, when.tz)
            return WallClock(rule.zone, rule.search, rule.fixed, rule.fixed, rule.until)
        case _:
            return None


def _build(kind: str, value: dict[str, str]) -> When:
    match kind:
        case "cron":
            return Cron(value["cron"], value.get("tz", "UTC"), value.get("key", ""))
        case "every":
            return Every(value["every"], _parse_iso(value["anchor"], "anchor") if "anchor" in value else None)
        case "at":
            return At(_parse_iso(value["at"], "at"))
    return RRule(value["rrule"], value.get("tz", "UTC"))


def _cron_plan(expression: str, tz: str, key: str) -> Callable[[Micros], Micros | None]:
    place = zone.load(tz)
    every = interval_part(expression)
    if every is not None:
        return Every(timedelta(microseconds=_read_interval(every, "cron"))).next_us
    search = cron.compiled(expression, key)
    return LocalTimes(place, search, search.pattern.fixed_time).next_us


def interval_part(expression: str) -> str | None:
    """The interval in "@every 10s"; None for all other expressions."""
    if not isinstance(expression, str) or not expression.lower().startswith("@every"):
        return None
    return expression[len("@every") :].strip()


def _read_interval(interval: duration.Duration, field: str) -> Micros:
    try:
        micros = duration.parse(interval, field)
    except InvalidInput as problem:
        raise InvalidWhen(field, problem.reason) from problem
    if micros < MIN_INTERVAL:
        raise InvalidWhen(field, f"{interval!s} is too short: the shortest interval is 100ms")
    return micros


def _read_instant(moment: datetime, field: str) -> Micros:
    try:
        return instant.read(moment, field)
    except InvalidInput as problem:
        raise InvalidWhen(field, problem.reason) from problem


def _read_after(after: datetime) -> Micros:
    """Unlike a fire, `after` may be anywhere in the calendar. The first two days of the calendar count as
    their end."""
    if not isinstance(after, datetime) or after.utcoffset() is None:
        raise InvalidInput(
            "after", f"{after!r} has no time zone: give an aware datetime such as datetime.now(UTC)"
        )
    return max(instant.to_micros(after), zone.FIRST * SECOND)


def _parse_iso(text: str, field: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as problem:
        raise InvalidWhen(
            field, f"{text!r} is not an ISO 8601 instant: write it like 2030-01-01T09:00:00Z"
        ) from problem


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _freeze(value: object, **members: object) -> None:
    for name, member in members.items():
        object.__setattr__(value, name, member)
