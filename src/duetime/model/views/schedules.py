"""Schedules: their present state, their versions, and their future fires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast
from uuid import UUID

from duetime.model.describe.when import describe
from duetime.model.instant import Micros, to_datetime
from duetime.model.retry import effective_retry
from duetime.model.schedule import (
    Change,
    FieldChange,
    Schedule,
    effective_missed,
    policies,
    schedule_status,
    target,
)
from duetime.model.views.fields import ANY_JSON, TARGET, about, copied, decoded, moment
from duetime.model.views.jobs import DeliveryName
from duetime.model.when import restore, to_json

if TYPE_CHECKING:
    from duetime.model.when import When
else:
    When = Any  # JSON is read as a dict, and ScheduleView makes a rule of it

OverlapName = Literal["skip", "allow", "queue", "cancel_previous"]
WORDS = "at 02:30, Monday to Friday, Europe/Berlin time"
WARNINGS = about("Common mistakes in the expression, and the effects of clock changes.")
WHEN: dict[str, Any] = {"json_schema_extra": {"type": "object", "additionalProperties": {"type": "string"}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule. `when` is a `dt.Cron`, `dt.Every`, `dt.At` or `dt.RRule`."""

    id: UUID
    name: str
    version: int
    when: When = field(metadata=WHEN)
    description: str = field(default="", metadata=about("When it fires, in words.", WORDS))
    target: dict[str, Any] = field(metadata=TARGET)
    payload: Any = field(default=None, metadata=ANY_JSON)
    queue: str
    priority: int
    timeout: str | None = None
    retry: dict[str, Any] | None = None
    delivery: DeliveryName = "at_least_once"
    expires: str | None = None
    owner: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    overlap: OverlapName = "allow"
    missed: dict[str, Any] = field(default_factory=dict)
    jitter: str = "0s"
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None
    paused: bool = False
    pause_note: str | None = None
    runs: int = 0
    next_fire_time: datetime | None = None
    last_fire_time: datetime | None = None
    created_at: datetime
    updated_at: datetime
    drift: list[Difference] | None = field(
        default=None,
        metadata=about(
            "How it differs from its declaration in code, which is `before`. Null: it is not declared in "
            "code. Lists do not have it."
        ),
    )
    warning: str | None = field(
        default=None, metadata=about("No node has had its task so far. Lists do not have it.")
    )

    def __post_init__(self) -> None:
        if isinstance(self.when, dict):
            object.__setattr__(self, "when", restore(self.when))
        if self.retry is not None:
            object.__setattr__(self, "retry", effective_retry(self.retry))
        object.__setattr__(self, "missed", effective_missed(self.missed))

    @property
    def task(self) -> str | None:
        """The name of the task; None for other targets."""
        return self.target.get("name")

    @property
    def rule(self) -> When:
        """The same as `when`."""
        return self.when

    @staticmethod
    def of(
        row: Schedule,
        now: Micros,
        drift: Sequence[FieldChange] | None = None,
        warning: str | None = None,
    ) -> ScheduleView:
        draft, status = row.draft, schedule_status(row, now)
        return ScheduleView(
            **policies(draft.policies),
            id=row.id,
            name=draft.name,
            version=row.version,
            when=draft.when,
            description=describe(draft.when),
            target=target(draft.target, draft.target_spec),
            payload=decoded(draft.payload),
            queue=draft.queue,
            priority=draft.priority,
            owner=draft.owner,
            labels=decoded(draft.labels) or {},
            overlap=cast(OverlapName, draft.overlap or "allow"),
            missed=draft.missed.to_json(),
            jitter=draft.jitter,
            start_at=moment(draft.start_at),
            end_at=moment(draft.end_at),
            max_runs=draft.max_runs,
            paused=row.paused,
            pause_note=row.pause_note,
            runs=status.runs,
            next_fire_time=moment(status.next_fire_time),
            last_fire_time=moment(status.last_fire_time),
            created_at=to_datetime(row.created_at),
            updated_at=to_datetime(row.updated_at),
            drift=None
            if drift is None
            else [Difference(field=one.field, before=one.before, after=one.after) for one in drift],
            warning=warning,
        )

    def to_fields(self) -> dict[str, Any]:
        """The fields as JSON has them."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"when": to_json(self.when)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    before: Any = field(default=None, metadata=ANY_JSON)
    after: Any = field(default=None, metadata=ANY_JSON)
    field: str  # last, because it hides the function of this name


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionView:
    """A schedule after a change (a removed schedule: before its removal), and who made the change."""

    version: int
    at: datetime
    author: str | None = field(
        default=None, metadata=about("The key it was changed with; null: no key was used.")
    )
    change: Change
    paused: bool = False
    schedule_id: UUID = field(
        metadata=about("Differs from the id of the present schedule if an earlier schedule had the name."),
    )
    definition: dict[str, Any] = field(
        default_factory=dict,
        metadata=about("The schedule after the change (a removed schedule: before its removal)."),
    )
    diff: list[Difference] = field(
        default_factory=list, metadata=about("Compared with the previous version.")
    )

    @staticmethod
    def of(version: Any) -> VersionView:
        return copied(VersionView, version, diff=[copied(Difference, change) for change in version.diff])


@dataclass(frozen=True, slots=True, kw_only=True)
class FireView:
    at: datetime
    local: datetime = field(metadata=about("In the time zone of the schedule.", "2030-01-01T10:00:00+01:00"))
    note: str | None = field(default=None, metadata=about("The effect of a clock change on this fire."))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewView:
    """The next fires of an expression."""

    words: str = field(metadata={"examples": [WORDS]})
    fires: list[FireView]
    warnings: list[str] = field(default_factory=list, metadata=WARNINGS)

    @staticmethod
    def of(preview: Any) -> PreviewView:
        fires = [copied(FireView, fire) for fire in preview.fires]
        return PreviewView(words=preview.words, fires=fires, warnings=list(preview.warnings))


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePreview:
    """The next fires of a schedule."""

    words: str = field(metadata={"examples": [WORDS]})
    fires: list[datetime] = field(default_factory=list, metadata=about("As if the schedule were not paused."))
    details: list[FireView] = field(
        default_factory=list, metadata=about("The same fires with local time and notes.")
    )
    warnings: list[str] = field(default_factory=list, metadata=WARNINGS)

    @staticmethod
    def of(preview: PreviewView) -> SchedulePreview:
        fires = [fire.at for fire in preview.fires]
        return SchedulePreview(
            words=preview.words, fires=fires, details=preview.fires, warnings=preview.warnings
        )

    def to_preview(self) -> PreviewView:
        return PreviewView(words=self.words, fires=self.details, warnings=self.warnings)


_INSTANT = {"type": "string", "format": "date-time"}
MOVES: dict[str, Any] = {
    "json_schema_extra": {
        "items": {
            "type": "object",
            "required": ["from", "to"],
            "properties": {"from": _INSTANT, "to": _INSTANT},
            "additionalProperties": False,
        }
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWords:
    before: str | None = field(default=None, metadata=about("null: there is no schedule of this name yet."))
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFires:
    """The first changed fires of each kind, up to the requested count."""

    kept: int = 0
    added: list[datetime] = field(default_factory=list)
    withdrawn: list[datetime] = field(default_factory=list)
    moved: list[dict[str, datetime]] = field(default_factory=list, metadata=MOVES)  # each "from" and "to"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCounts:
    kept: int = 0
    added: int = 0
    withdrawn: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """What an edit would change."""

    version: int | None = field(
        default=None, metadata=about("The version it would apply to; null: there is no schedule yet.")
    )
    diff: list[Difference] = field(default_factory=list)
    words: PlanWords
    fires: PlanFires = field(default_factory=PlanFires)
    counts: PlanCounts = field(default_factory=PlanCounts, metadata=about("Of all fires within the horizon."))
    jobs_withdrawn: int = field(
        default=0,
        metadata=about(
            "Planned jobs that have not started and would be withdrawn; those of kept fires are "
            "planned again."
        ),
    )
    warnings: list[str] = field(default_factory=list, metadata=WARNINGS)
    complete: bool = field(
        default=True, metadata=about("False: there were too many fires within the horizon to compare all.")
    )

    @staticmethod
    def of(plan: Any, count: int | None = None) -> PlanView:
        """With at most `count` fires of each kind."""
        fires = plan.fires
        moved = [{"from": old, "to": new} for old, new in fires.moved[:count]]
        return copied(
            PlanView,
            plan,
            diff=[copied(Difference, change) for change in plan.diff],
            words=copied(PlanWords, plan.words),
            fires=PlanFires(
                kept=fires.kept,
                added=list(fires.added[:count]),
                withdrawn=list(fires.withdrawn[:count]),
                moved=moved,
            ),
            counts=PlanCounts(
                kept=fires.kept,
                added=len(fires.added),
                withdrawn=len(fires.withdrawn),
                moved=len(fires.moved),
            ),
            warnings=list(plan.warnings),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    added: int = field(metadata=about("New jobs."))
    existing: int = field(metadata=about("Fires that already have a job."))
    next_from: datetime | None = field(
        default=None, metadata=about("Start of the next call; null: the range is done.")
    )

    @staticmethod
    def of(done: Any) -> Backfilled:
        return Backfilled(added=len(done.jobs), existing=done.existing, next_from=done.next_from)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingFire:
    """One future fire, with its schedule."""

    at: datetime
    schedule_id: UUID
    name: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarBucket:
    at: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarView:
    """The number of future fires in each bucket of time."""

    bucket: str
    buckets: list[CalendarBucket] = field(metadata=about("Without gaps; fires in the past are not counted."))
    complete: bool = field(default=True, metadata=about("False: each count is a lower bound."))
    note: str | None = None
