"""What schedules will do, would do and were, in requests and answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from duetime.api.models.fields import WHOLE, Input, Instant, OutId, OutInstant, OutJson, Output
from duetime.api.models.targets import When
from duetime.app.backfilling import MOST_FIRES
from duetime.app.planning import MOST_PREVIEWED
from duetime.model.schedule import Change

_RATE = {"type": "string", "format": "duetime-rate", "minLength": 1, "description": "So many jobs a time.", "examples": ["10/1s"]}
RateText = Annotated[str, WithJsonSchema(_RATE)]
LocalInstant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2030-01-01T10:00:00+01:00"]})]
Warnings = Annotated[list[str], Field(description="What people often mean otherwise, and what changes of the clocks will do.")]
Words = Annotated[str, Field(examples=["at 02:30, Monday to Friday, Europe/Berlin time"])]
Count = Annotated[int, Field(ge=1, le=MOST_PREVIEWED), WHOLE]


class PreviewIn(Input):
    model_config = ConfigDict(
        title="NewPreview", json_schema_extra={"examples": [{"when": {"cron": "30 2 * * MON-FRI", "tz": "Europe/Berlin"}, "count": 5}]}
    )
    when: When
    count: Count = 10
    after: Annotated[Instant, Field(description="From this instant on; without it, from now.", examples=["2030-03-30T00:00:00Z"])] = ""
    start_at: Annotated[Instant, Field(description="No fire before it.", examples=["2027-01-01T00:00:00Z"])] = ""
    end_at: Annotated[Instant, Field(description="No fire after it.", examples=["2040-01-01T00:00:00Z"])] = ""


class FireOut(Output):
    model_config = ConfigDict(title="Fire")
    at: OutInstant
    local: Annotated[LocalInstant, Field(description="On the clocks of its time zone.")]
    note: Annotated[str | None, Field(description="What a change of the clocks has to do with it.")]


class WhenPreviewOut(Output):
    model_config = ConfigDict(title="WhenPreview")
    words: Words
    fires: list[FireOut]
    warnings: Warnings


class PreviewOut(Output):
    model_config = ConfigDict(title="Preview")
    words: Words
    fires: Annotated[list[OutInstant], Field(description="As if it were not paused.")]
    details: Annotated[list[FireOut], Field(description="The same fires, with all there is to say of them.")]
    warnings: Warnings


class DifferenceOut(Output):
    model_config = ConfigDict(title="Difference")
    field: str
    before: OutJson
    after: OutJson


class VersionOut(Output):
    model_config = ConfigDict(title="ScheduleVersion")
    version: int
    at: OutInstant
    author: Annotated[str | None, Field(description="The key it was made with; null: nobody said who they are.")]
    change: Change
    paused: bool
    schedule_id: Annotated[OutId, Field(description="Another than today's where an earlier schedule had the name.")]
    definition: Annotated[dict[str, Any], Field(description="What it was after the change (for a removal: before it).")]
    diff: Annotated[list[DifferenceOut], Field(description="Against the version before.")]


class VersionPageOut(Output):
    model_config = ConfigDict(title="ScheduleVersionPage")
    items: list[VersionOut]
    next_cursor: str | None


class RestoreIn(Input):
    model_config = ConfigDict(title="Restore", json_schema_extra={"examples": [{"version": 1}]})
    version: Annotated[int, Field(ge=1, le=1_000_000_000, description="What it shall be again. Its pause stays as it is."), WHOLE]


class PlanWordsOut(Output):
    model_config = ConfigDict(title="PlanWords")
    before: Annotated[str | None, Field(description="null: there is none of this name yet.")]
    after: str


class MoveOut(Output):
    model_config = ConfigDict(title="Move")
    start: Annotated[OutInstant, Field(alias="from")]
    end: Annotated[OutInstant, Field(alias="to")]


class PlanCountsOut(Output):
    model_config = ConfigDict(title="PlanCounts")
    kept: int
    added: int
    withdrawn: int
    moved: int


class PlanFiresOut(Output):
    """The first of them, as many as were asked for."""

    model_config = ConfigDict(title="PlanFires")
    kept: int
    added: list[OutInstant]
    withdrawn: list[OutInstant]
    moved: list[MoveOut]


class PlanOut(Output):
    model_config = ConfigDict(title="SchedulePlan")
    version: Annotated[int | None, Field(description="The one it would be applied to; null: there is none yet.")]
    diff: list[DifferenceOut]
    words: PlanWordsOut
    fires: PlanFiresOut
    counts: Annotated[PlanCountsOut, Field(description="Of all fires within the horizon.")]
    jobs_withdrawn: Annotated[int, Field(description="Jobs that are planned and have not started; those of kept fires are planned anew.")]
    warnings: Warnings
    complete: Annotated[bool, Field(description="false: there were too many fires to look at all of them within the horizon.")]


class BackfillIn(Input):
    """Jobs for the fires of a past range that no job stands for."""

    model_config = ConfigDict(
        title="Backfill", json_schema_extra={"examples": [{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "rate": "10/1s"}]}
    )
    start: Annotated[Instant, Field(alias="from", description="Included.", examples=["2026-01-01T00:00:00Z"])]
    end: Annotated[
        Instant, Field(alias="to", description="Excluded, and not in the future; without it, now.", examples=["2026-01-02T00:00:00Z"])
    ] = ""
    rate: Annotated[RateText, Field(description="How many fall due in a time, also over several calls; without it, all at once.")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_FIRES, description="Fires in this call; the answer says where to go on."), WHOLE] = MOST_FIRES


class BackfillOut(Output):
    model_config = ConfigDict(title="Backfilled")
    added: Annotated[int, Field(description="New jobs.")]
    existing: Annotated[int, Field(description="Fires that have a job already.")]
    next_from: Annotated[OutInstant | None, Field(description="Where the next call goes on; null: the range is done.")]
