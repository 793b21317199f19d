"""Posts: what callers send, and how posts, their timeline and the calendar are shown."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal, Self

from pydantic import Field, model_validator

from momentum.api.models.fields import Input, Instant, Output, ProblemItem
from momentum.errors import Problem
from momentum.model import Article, MediaKind, MediaUse, Outcome, PostState
from momentum.posts.content import PostInput

MAX_LABELS = 20


class MediaUseIn(Input):
    """A file in a post."""

    media_id: str = Field(max_length=40)
    alt_text: str = Field("", max_length=4_086)
    title: str = Field("", max_length=400)


class ArticleIn(Input):
    """A link with its own card."""

    url: str = Field(max_length=2_000)
    title: str = Field("", max_length=400)
    description: str = Field("", max_length=4_086)
    thumbnail: str | None = Field(None, max_length=40, description="id of an image")


class WhenIn(Input):
    """A time: an instant, or a local time in a zone."""

    scheduled_at: datetime | None = Field(
        None, description="An instant with its offset, such as 2026-11-20T08:00:00Z"
    )
    local_time: str | None = Field(
        None, max_length=40, description="A time on the clock of `zone`, such as 2026-11-20T09:00"
    )
    zone: str | None = Field(None, max_length=64, description="IANA name, such as Europe/Berlin")


class NewPostIn(WhenIn):
    """A new post. Without a time it is a draft."""

    account_id: str = Field(max_length=40)
    text: str = ""
    media: list[MediaUseIn] = Field([], max_length=100)
    article: ArticleIn | None = None
    visibility: str = Field("PUBLIC", max_length=40)
    labels: list[str] = Field([], max_length=MAX_LABELS)

    def to_input(self) -> PostInput:
        given = self.model_dump()
        given["media"] = tuple(MediaUse(**use) for use in given["media"])
        given["article"] = Article(**given["article"]) if given["article"] else None
        given["labels"] = tuple(given["labels"])
        return PostInput(**given)


class PostPatchIn(WhenIn):
    """Fields to change. `scheduled_at: null` makes it a draft."""

    version: int
    account_id: str | None = Field(None, max_length=40)
    text: str | None = None
    media: list[MediaUseIn] | None = Field(None, max_length=100)
    article: ArticleIn | None = None
    visibility: str | None = Field(None, max_length=40)
    labels: list[str] | None = Field(None, max_length=MAX_LABELS)


class ScheduleIn(WhenIn):
    version: int | None = None

    @model_validator(mode="after")
    def _has_a_time(self) -> Self:
        if self.scheduled_at is None and self.local_time is None:
            raise ValueError("scheduled_at: is missing: give an instant, or local_time with zone")
        return self


class VersionIn(Input):
    """The version that the caller has seen. Optional: without it the present one is meant."""

    version: int | None = None


class ResolveIn(Input):
    """A person's decision about a post in doubt."""

    decision: Literal["published", "not_published"]
    then: Literal["publish", "draft", "fail"] | None = Field(
        None, description="after not_published: try again now, make it a draft, or leave it failed"
    )
    url: str | None = Field(
        None, max_length=2_000, pattern=r"^https?://\S+$", description="where the post is, if known"
    )


class PostOut(Output):
    id: str
    account_id: str
    platform: str
    state: PostState
    version: int
    text: str
    media: list[MediaUseIn]
    article: ArticleIn | None
    visibility: str
    scheduled_at: Instant | None
    local_time: str | None = Field(description="scheduled_at on the clock of `zone`")
    zone: str
    labels: list[str]
    created_at: Instant
    updated_at: Instant
    published_at: Instant | None
    platform_id: str | None
    url: str | None
    error_code: str | None
    error: str | None
    job_id: str | None
    needs_reconnection: bool
    attempts: int
    lateness_ms: int | None
    note: str | None = Field(
        None, description="how a local time that does not exist, or exists twice, was understood"
    )


class PostPage(Output):
    items: list[PostOut]
    next: str | None = Field(description="the cursor of the next page")


class PostPreview(Output):
    """How the post would look, as text parts."""

    text: str
    visible: str = Field(description="what a feed shows before the fold")
    folded: bool
    scheduled_at: Instant | None = None
    note: str | None = None


class CheckOut(Output):
    problems: list[ProblemItem]
    length: int
    max_length: int
    fold_at: int | None
    preview: PostPreview


class ImportRowOut(Output):
    line: int
    ok: bool
    post_id: str | None
    problems: list[ProblemItem]


class ImportOut(Output):
    rows: list[ImportRowOut]
    created: int


class TimelineItem(Output):
    """A line of a post's timeline: an event, or an attempt to publish."""

    type: Literal["event", "attempt"]
    at: Instant
    kind: str
    detail: str
    actor: str
    number: int | None = None
    outcome: Outcome | None = None
    ended_at: Instant | None = None
    error_code: str | None = None
    status: int | None = None
    request_id: str | None = None


class TimelineOut(Output):
    items: list[TimelineItem]


class SlimPost(Output):
    id: str
    account_id: str
    platform: str
    state: PostState
    scheduled_at: Instant
    title: str = Field(description="the first line, up to 80 characters")
    media_kind: MediaKind | None
    version: int


class CalendarDay(Output):
    date: date
    count: int
    states: dict[PostState, int]
    posts: list[SlimPost]
    hours: dict[int, int] = Field(description="posts by local hour; empty without per_hour")


class CalendarOut(Output):
    days: list[CalendarDay]


class LogItem(Output):
    """One attempt to publish."""

    id: str
    post_id: str
    account_id: str
    number: int
    version: int
    scheduled_at: Instant
    started_at: Instant
    ended_at: Instant | None
    outcome: Outcome | None
    error_code: str | None
    error: str | None
    status: int | None
    request_id: str | None
    worker: str
    lateness_ms: int


class LogPage(Output):
    items: list[LogItem]
    next: str | None


class InboxItem(Output):
    """Something that needs a decision of a person."""

    kind: Literal["unknown", "failed", "account", "hold"]
    post: PostOut | None = None
    platform: str | None = None
    account_id: str | None = None
    reason: str
    since: Instant | None = None
    until: Instant | None = Field(None, description="of a hold; null: until a person resumes it")


class InboxOut(Output):
    items: list[InboxItem]


class HintOut(Output):
    weekday: int = Field(ge=0, le=6, description="0 is Monday")
    hour: int = Field(ge=0, le=23)
    posts: int


class HintsOut(Output):
    hints: list[HintOut]
    posts: int = Field(description="published posts that the hints are from")
    reason: str | None = Field(description="why there are no hints")


def problem_items(problems: tuple[Problem, ...] | list[Problem]) -> list[ProblemItem]:
    return [ProblemItem(field=one.field, message=one.message, code=one.code) for one in problems]
