"""A schedule: the durable recurring definition, and the pure rule that turns it into fires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

from duetime.errors import InvalidInput
from duetime.model import duration, jitter
from duetime.model.codec import decode
from duetime.model.command import COMMAND, CommandTarget
from duetime.model.duration import Duration
from duetime.model.ids import fire_id
from duetime.model.instant import SECOND, Micros, to_iso
from duetime.model.job import Claimed, JobDraft
from duetime.model.publish import PUBLISH, PublishTarget
from duetime.model.retry import effective_retry
from duetime.model.shadow import SHADOW, ShadowTarget
from duetime.model.target import HTTP, HttpTarget
from duetime.model.when import When, to_json

# The status of a schedule at an instant: its last and next fire. The row itself does not say so, because the
# planner works ahead of the clock: its `next_fire_time` is the first fire without a job, and its
# `last_fire_time` and `runs` include fires in the future.


class ScheduleStatus(NamedTuple):
    next_fire_time: Micros | None  # None: it is paused or has no more fires
    last_fire_time: Micros | None
    runs: int


def schedule_status(schedule: Schedule, now: Micros) -> ScheduleStatus:
    last = schedule.last_fire_time
    stored = ScheduleStatus(None if schedule.paused else schedule.next_fire_time, last, schedule.runs)
    if last is None or last <= now:
        return stored  # a cursor in the past is not changed: the planner is late, and so is the fire
    try:
        ahead = list(_fires(schedule.draft, now, last))
        runs = max(schedule.runs - len(ahead), 0)
        return ScheduleStatus(
            min(ahead, default=stored.next_fire_time), _latest(schedule, now) if runs else None, runs
        )
    except InvalidInput:  # its `when` has become invalid
        return stored


def _fires(draft: ScheduleDraft, after: Micros, last: Micros) -> Iterator[Micros]:
    moment = first_fire(draft, after)
    while moment is not None and moment <= last:
        yield moment
        moment = first_fire(draft, moment)


def _latest(schedule: Schedule, now: Micros) -> Micros | None:
    """Its latest fire up to `now`; None if the last edit came after it, because it may then come from another
    rule."""
    since = schedule.updated_at
    back = SECOND
    while (
        True
    ):  # doubling finds a fire a year ago in 25 steps, and looks back at most twice as far as necessary
        start = max(now - back, since)
        found = max(_fires(schedule.draft, start - 1, now), default=None)
        if found is not None or start == since:
            return found
        back *= 2


MissedPolicy = Literal["latest", "all", "skip"]
LATE_AFTER = 5 * SECOND  # a fire that is planned or starts later than this counts as missed
MAX_FIRES_PER_STEP = 1_000  # per schedule, so that one with many missed fires cannot delay the others
MAX_MISSED = 1_000  # of Missed.max: so many later fires are looked at to find out which are the newest


@dataclass(frozen=True, slots=True)
class Missed:
    """What happens to fires that did not start in time: run the `latest`, run `all`, or `skip` them.

    `within` is the maximum age of a fire that still runs. `max` limits how many run with `all`: the newest.
    The rest are recorded as skipped. `waiting`: a fire that waits for a limit counts as missed, too."""

    policy: MissedPolicy = "latest"
    within: Duration | None = None
    max: int | None = None
    waiting: bool = False

    def __post_init__(self) -> None:
        if self.policy not in get_args(MissedPolicy):
            raise InvalidInput(
                "missed.policy", f"{self.policy!r} is not one of {', '.join(get_args(MissedPolicy))}"
            )
        if self.within is not None:
            duration.positive(self.within, "missed.within")
        if self.max is not None and (
            isinstance(self.max, bool) or not isinstance(self.max, int) or not 1 <= self.max <= MAX_MISSED
        ):
            raise InvalidInput("missed.max", f"{self.max!r} must be a whole number from 1 to {MAX_MISSED:,}")
        if not isinstance(self.waiting, bool):
            raise InvalidInput("missed.waiting", f"{self.waiting!r} must be true or false")
        for name in _without_effect(self.policy):
            if getattr(self, name) is not None:
                raise InvalidInput(f"missed.{name}", f"has no effect with {self.policy!r}: leave it out")

    @property
    def newest(self) -> int | None:
        """How many missed fires run, the newest; None for any number."""
        return {"skip": 0, "latest": 1, "all": self.max}[self.policy]

    def reason(self, age: Micros, newer: int) -> str | None:
        """Why a missed fire of this age does not run; `newer` later fires are missed, too."""
        if self.within is not None and age > duration.parse(self.within, "missed.within"):
            return f"missed: older than {self.within}"
        if self.newest is None or newer < self.newest:
            return None
        return (
            f"missed: only the last {self.max} run"
            if self.policy == "all"
            else f"missed: policy {self.policy}"
        )

    def to_json(self) -> dict[str, Any]:
        within = None if self.within is None else duration.show(duration.parse(self.within, "missed.within"))
        waiting = {"waiting": True} if self.waiting else {}
        return {"policy": self.policy, "within": within, "max": self.max, **waiting}

    @staticmethod
    def from_json(value: Any, field: str = "missed") -> Missed:
        if not isinstance(value, dict) or not set(value) <= {"policy", "within", "max", "waiting"}:
            raise InvalidInput(field, "must be an object with any of policy, within, max, waiting")
        return Missed(**value)

    @staticmethod
    def restore(value: Mapping[str, Any]) -> Missed:
        """A stored policy. Older versions stored settings that have no effect with it."""
        return Missed.from_json(effective_missed(value))


def _without_effect(policy: str) -> tuple[str, ...]:
    """The settings that have no effect with this policy for missed fires."""
    return {"skip": ("within", "max"), "latest": ("max",)}.get(policy, ())


def effective_missed(missed: Mapping[str, Any]) -> dict[str, Any]:
    """The same policy, without settings that have no effect."""
    idle = _without_effect(missed.get("policy", "latest"))
    return {name: None if name in idle else value for name, value in missed.items()}


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
    jitter: str  # as `model.jitter` writes it
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


def plan_fires(schedule: Schedule, now: Micros, horizon: Micros, late_after: Micros = LATE_AFTER) -> Firing:
    """The fires from the cursor up to `horizon`. The schedule's policy decides about missed ones: those that
    are older than `late_after`."""
    assert schedule.next_fire_time is not None
    moments, following = _moments(schedule, horizon)
    runs = schedule.runs + len(moments)
    missed_before = now - late_after
    late = sum(moment < missed_before for moment in moments)
    newer = late
    if late and late == len(moments):
        after = replace(schedule, next_fire_time=following, last_fire_time=moments[-1], runs=runs)
        newer += _missed_after(after, moments[-1], missed_before)
    missed = schedule.draft.missed
    skipped = [missed.reason(now - moment, newer - place) for place, moment in enumerate(moments[:late], 1)]
    fires = tuple(
        _fire(schedule, moment, skipped[place] if place < late else None)
        for place, moment in enumerate(moments)
    )
    return Firing(schedule.id, schedule.version, schedule.next_fire_time, following, runs, fires)


def fired_job(schedule: Schedule, fire: Fire) -> JobDraft:
    """The job that this fire becomes."""
    draft = schedule.draft
    return JobDraft(
        id=fire.id,
        tenant=draft.tenant,
        schedule_id=schedule.id,
        schedule=draft.name,
        fire_time=fire.fire_time,
        due_at=fire.due_at,
        queue=draft.queue,
        priority=draft.priority,
        overlap=draft.overlap,
        target=draft.target,
        target_spec=draft.target_spec,
        payload=draft.payload,
        policies=draft.policies,
        owner=draft.owner,
        labels=draft.labels,
        unique_key=None,
        retry_of=None,
        limit_key=draft.limit_key,
    )


def missed_at_start(schedule: Schedule, job: Claimed, now: Micros, free_at: Micros) -> str | None:
    """Why a job that was planned as a fire of this schedule does not start now; None if it starts. From
    `free_at` on no earlier job of the schedule was in its way."""
    fire = _fire(schedule, job.fire_time, None)
    planned = (fire.id, fire.due_at) == (job.id, job.due_at)  # not triggered, filled in or moved
    if not planned or max(job.due_at, free_at) >= now - LATE_AFTER:
        return None
    return schedule.draft.missed.reason(
        now - job.due_at, _missed_after(schedule, job.fire_time, now - LATE_AFTER)
    )


def _missed_after(schedule: Schedule, moment: Micros, missed_before: Micros) -> int:
    """How many fires after this one are missed, too; counted as far as the policy needs it."""
    draft, cursor = schedule.draft, None if schedule.paused else schedule.next_fire_time
    left = MAX_MISSED if draft.max_runs is None else draft.max_runs - schedule.runs
    found = 0
    while found < (draft.missed.newest or 0):
        following = _not_after(draft.when.next_us(moment), draft.end_at)
        if following is not None and (schedule.last_fire_time is None or following > schedule.last_fire_time):
            # Between the last fire and the cursor there are none: the schedule was paused or edited.
            following = None if cursor is None or left <= 0 else max(following, cursor)
            left -= 1
        if following is None or following >= missed_before:
            break
        moment, found = following, found + 1
    return found


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


def _fire(schedule: Schedule, moment: Micros, skip_reason: str | None) -> Fire:
    identity = fire_id(schedule.id, moment)
    return Fire(identity, moment, moment + jitter.delay(identity, schedule.draft.jitter), skip_reason)


def _not_after(moment: Micros | None, end: Micros | None) -> Micros | None:
    return None if moment is None or (end is not None and moment > end) else moment


# The editable part of a schedule as JSON, to show it and to compare two versions. It never contains a
# secret.


class FieldChange(NamedTuple):
    field: str
    before: Any
    after: Any


def schedule_to_json(draft: ScheduleDraft) -> dict[str, Any]:
    return {
        "when": to_json(draft.when),
        "target": target(draft.target, draft.target_spec),
        "payload": decode(draft.payload),
        "queue": draft.queue,
        "priority": draft.priority,
        **policies(draft.policies),
        "owner": draft.owner,
        "labels": {} if draft.labels is None else decode(draft.labels),
        "overlap": draft.overlap or "allow",
        "missed": draft.missed.to_json(),
        "jitter": draft.jitter,
        "start_at": iso(draft.start_at),
        "end_at": iso(draft.end_at),
        "max_runs": draft.max_runs,
    }


def difference(before: ScheduleDraft, after: ScheduleDraft) -> Sequence[FieldChange]:
    """The fields that differ. A changed secret appears as a change of the target, without its value."""
    old, new = schedule_to_json(before), schedule_to_json(after)
    secret = (before.target, before.target_spec) != (after.target, after.target_spec)
    return [
        FieldChange(field, old[field], new[field])
        for field in new
        if old[field] != new[field] or (field == "target" and secret)
    ]


KINDS: dict[str, type[HttpTarget] | type[CommandTarget] | type[PublishTarget] | type[ShadowTarget]] = {
    HTTP: HttpTarget,
    COMMAND: CommandTarget,
    PUBLISH: PublishTarget,
    SHADOW: ShadowTarget,
}


def target(name: str, spec: bytes | None) -> dict[str, Any]:
    kind = name.partition(":")[0]
    if kind not in KINDS:
        return {"type": "task", "name": name}
    try:
        return KINDS[kind].from_spec(spec or b"{}").to_json()
    except InvalidInput:
        # It was stored under older rules and is invalid now: it cannot run, and is not shown.
        return {"type": kind.removeprefix("@")}


def policies(stored: bytes | None) -> dict[str, Any]:
    own = {} if stored is None else decode(stored)
    retry = own.get("retry")
    return {
        "timeout": own.get("timeout"),
        "retry": None if retry is None else effective_retry(retry),
        "delivery": own.get("delivery", "at_least_once"),
        "expires": own.get("expires"),
    }


def iso(micros: Micros | None) -> str | None:
    return None if micros is None else to_iso(micros)
