"""A schedule: the durable recurring definition, and the pure rule that turns it into fires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.ids import fire_id
from duetime.model.instant import SECOND, Micros
from duetime.model.when import When

MissedPolicy = Literal["latest", "all", "skip"]
LATE_AFTER = 5 * SECOND  # a fire that is planned later than this counts as missed
MAX_FIRES_PER_STEP = 1_000  # per schedule, so that one with many missed fires cannot delay the others


@dataclass(frozen=True, slots=True)
class Missed:
    """What happens to fires that were not planned in time: run the `latest`, run `all`, or `skip` them.

    `within` is the maximum age of a fire that still runs. `max` limits how many run with `all`. The rest are
    recorded as skipped."""

    policy: MissedPolicy = "latest"
    within: Duration | None = None
    max: int | None = None

    def __post_init__(self) -> None:
        if self.policy not in get_args(MissedPolicy):
            raise InvalidInput(
                "missed.policy", f"{self.policy!r} is not one of {', '.join(get_args(MissedPolicy))}"
            )
        if self.within is not None:
            duration.positive(self.within, "missed.within")
        if self.max is not None and (
            isinstance(self.max, bool) or not isinstance(self.max, int) or self.max < 1
        ):
            raise InvalidInput("missed.max", f"{self.max!r} must be a whole number of at least 1")

    def to_json(self) -> dict[str, Any]:
        within = None if self.within is None else duration.show(duration.parse(self.within, "missed.within"))
        return {"policy": self.policy, "within": within, "max": self.max}

    @staticmethod
    def from_json(value: Any, field: str = "missed") -> Missed:
        if not isinstance(value, dict) or not set(value) <= {"policy", "within", "max"}:
            raise InvalidInput(field, "must be an object with any of policy, within, max")
        return Missed(**value)


@dataclass(frozen=True, slots=True)
class ScheduleDraft:
    """A schedule as its author defines it; the store adds version and cursor."""

    id: UUID  # used when the name is new
    tenant: str
    name: str
    when: When
    target: str
    target_spec: bytes | None
    payload: bytes
    policies: bytes | None
    queue: str
    priority: int
    overlap: str | None
    missed: Missed
    jitter: Micros
    start_at: Micros | None
    end_at: Micros | None
    max_runs: int | None
    owner: str | None
    labels: bytes | None
    limit_key: str | None = None  # of every job it fires


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stored schedule. `next_fire_time` is the cursor: the first fire that has no job yet; None if there
    are no more fires."""

    draft: ScheduleDraft
    id: UUID
    version: int
    segment: int
    paused: bool
    pause_note: str | None
    next_fire_time: Micros | None
    last_fire_time: Micros | None
    runs: int
    created_at: Micros
    updated_at: Micros


class Change(StrEnum):
    CREATED = "created"
    REPLACED = "replaced"
    PAUSED = "paused"
    RESUMED = "resumed"
    REMOVED = "removed"


def change_of(old: Schedule, new: Schedule) -> Change:
    """What a new version of a schedule is recorded as."""
    if old.draft != new.draft:
        return Change.REPLACED
    if new.paused:
        return Change.PAUSED
    return Change.RESUMED if old.paused else Change.REPLACED


@dataclass(frozen=True, slots=True)
class ScheduleVersion:
    """A schedule after a change (before it, for a removal), and the author of the change."""

    version: int
    at: Micros
    author: str | None
    change: Change
    paused: bool
    draft: ScheduleDraft  # under the schedule's own id


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Which schedules to list; None means any."""

    tenant: str
    text: str | None = None  # a part of the name, in any case
    paused: bool | None = None
    owner: str | None = None
    label: tuple[str, str] | None = None
    target: str | None = None
    queue: str | None = None


class Fire(NamedTuple):
    id: UUID
    fire_time: Micros
    due_at: Micros
    skip_reason: str | None  # None: it runs


@dataclass(frozen=True, slots=True)
class Firing:
    """One step of one schedule, in one transaction: these fires, and the cursor moved from `cursor` to
    `next_fire_time`."""

    schedule_id: UUID
    version: int
    cursor: Micros
    next_fire_time: Micros | None
    runs: int  # after this step
    fires: tuple[Fire, ...]


def first_fire(draft: ScheduleDraft, now: Micros, runs: int = 0) -> Micros | None:
    """The cursor of a new, edited or resumed schedule."""
    if draft.max_runs is not None and runs >= draft.max_runs:
        return None
    after = now if draft.start_at is None else max(now, draft.start_at - 1)
    return _not_after(draft.when.next_us(after), draft.end_at)


def plan_fires(schedule: Schedule, now: Micros, horizon: Micros) -> Firing:
    """The fires from the cursor up to `horizon`. The schedule's policy decides about missed ones."""
    assert schedule.next_fire_time is not None
    moments, following = _moments(schedule, horizon)
    runs = schedule.runs + len(moments)
    skipped = _skipped(schedule.draft.missed, moments, following, now)
    fires = tuple(_fire(schedule, moment, skipped.get(moment)) for moment in moments)
    return Firing(schedule.id, schedule.version, schedule.next_fire_time, following, runs, fires)


def _moments(schedule: Schedule, horizon: Micros) -> tuple[list[Micros], Micros | None]:
    """The fire times of this step, and the cursor after them."""
    draft = schedule.draft
    left = (
        MAX_FIRES_PER_STEP
        if draft.max_runs is None
        else min(MAX_FIRES_PER_STEP, draft.max_runs - schedule.runs)
    )
    found: list[Micros] = []
    moment: Micros | None = None
    for moment in _walk(schedule):
        if moment is None or moment > horizon or len(found) >= left:
            break
        # Fires up to last_fire_time already became jobs, before an edit moved the cursor back.
        if schedule.last_fire_time is None or moment > schedule.last_fire_time:
            found.append(moment)
    spent = draft.max_runs is not None and schedule.runs + len(found) >= draft.max_runs
    return found, None if spent else moment


def _walk(schedule: Schedule) -> Iterator[Micros | None]:
    draft, moment = schedule.draft, schedule.next_fire_time
    while moment is not None:
        yield moment
        moment = _not_after(draft.when.next_us(moment), draft.end_at)
    yield None


def _skipped(
    missed: Missed, moments: list[Micros], following: Micros | None, now: Micros
) -> dict[Micros, str]:
    """The reason by fire time, for those of `moments` that do not run."""
    late = [moment for moment in moments if moment < now - LATE_AFTER]
    if not late:
        return {}
    oldest = None if missed.within is None else now - duration.parse(missed.within, "missed.within")
    reasons = {
        moment: f"missed: older than {missed.within}"
        for moment in late
        if oldest is not None and moment < oldest
    }
    eligible = [moment for moment in late if moment not in reasons]
    match missed.policy:
        case "skip":
            reasons.update(dict.fromkeys(eligible, "missed: policy skip"))
        case "latest":
            # The latest missed fire may come after this step; then it is none of these.
            more_to_come = following is not None and following < now - LATE_AFTER
            keep = set() if more_to_come else {late[-1]}
            reasons.update({moment: "missed: policy latest" for moment in eligible if moment not in keep})
        case "all":
            if missed.max is not None:
                reasons.update(
                    dict.fromkeys(eligible[: -missed.max], f"missed: only the last {missed.max} run")
                )
    return reasons


def _fire(schedule: Schedule, moment: Micros, skip_reason: str | None) -> Fire:
    identity = fire_id(schedule.id, moment)
    return Fire(identity, moment, moment + _jitter(identity, schedule.draft.jitter), skip_reason)


def _jitter(identity: UUID, limit: Micros) -> Micros:
    """From a hash, so that every node computes the same due time for a fire."""
    if limit == 0:
        return 0
    return int.from_bytes(blake2b(identity.bytes, digest_size=8).digest(), "big") % (limit + 1)


def _not_after(moment: Micros | None, end: Micros | None) -> Micros | None:
    return None if moment is None or (end is not None and moment > end) else moment
