"""The nouns of Momentum, as plain values: accounts, media, posts and attempts. Rows become these, and the API
shows these."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from json import dumps


class PostState(StrEnum):
    DRAFT = "draft"  # not to be published
    SCHEDULED = "scheduled"  # stored with its job; nothing has happened yet
    PREPARING = "preparing"  # its files are on their way to the platform
    READY = "ready"  # only the one call is missing
    PUBLISHING = "publishing"  # the intent is stored; the call may have been made
    PUBLISHED = "published"  # accepted by the platform
    FAILED = "failed"  # certainly not published, and not tried again
    UNKNOWN = "unknown"  # it may have been published: a person decides
    CANCELLED = "cancelled"


# States in which the post can still be edited, moved or cancelled: certainly nothing was published.
EDITABLE = (
    PostState.DRAFT,
    PostState.SCHEDULED,
    PostState.PREPARING,
    PostState.READY,
    PostState.FAILED,
    PostState.CANCELLED,
)
# States from which the publisher goes on.
PLANNED = (PostState.SCHEDULED, PostState.PREPARING, PostState.READY)


class MediaKind(StrEnum):
    IMAGE = "image"
    DOCUMENT = "document"
    VIDEO = "video"


class AuthorKind(StrEnum):
    MEMBER = "member"
    ORGANIZATION = "organization"


class AccountState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"  # expired or revoked at the platform: connect it again
    DISCONNECTED = "disconnected"


class Outcome(StrEnum):
    """How an attempt to publish ended."""

    PUBLISHED = "published"
    RETRY = "retry"  # nothing was created; the post is tried again
    HELD = "held"  # a limit or a stopped platform; the post waits
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Author:
    """Who a post is by, in the platform's own terms."""

    urn: str
    name: str
    kind: AuthorKind = AuthorKind.MEMBER
    picture: str | None = None
    handle: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    id: str
    tenant: str
    platform: str
    author: Author
    server: str
    scopes: tuple[str, ...]
    state: AccountState
    expires_at: datetime | None
    can_refresh: bool
    probe: bool  # resolve doubt by sending the identical post again; off unless a person turns it on
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Media:
    id: str
    tenant: str
    kind: MediaKind
    type: str
    name: str
    size: int
    digest: str
    created_at: datetime
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class MediaUse:
    """A file in a post."""

    media_id: str
    alt_text: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Article:
    """A link with its own card."""

    url: str
    title: str
    description: str = ""
    thumbnail: str | None = None  # id of an image


@dataclass(frozen=True, slots=True)
class Content:
    """What is published. In `text`, mentions are written `@[Name](urn:li:organization:1)` and hashtags
    `#tag`; everything else is what the reader sees."""

    text: str = ""
    media: tuple[MediaUse, ...] = ()
    article: Article | None = None
    visibility: str = "PUBLIC"


@dataclass(frozen=True, slots=True)
class Post:
    id: str
    tenant: str
    account_id: str
    state: PostState
    version: int  # grows with every change; messages of older versions are dropped
    content: Content
    scheduled_at: datetime | None
    zone: str  # IANA name: in which the person chose the time
    created_at: datetime
    updated_at: datetime
    published_at: datetime | None = None
    platform_id: str | None = None
    url: str | None = None
    error_code: str | None = None
    error: str | None = None
    job_id: str | None = None
    labels: tuple[str, ...] = field(default=())

    @property
    def digest(self) -> str:
        """Equal for posts that the platform would call identical."""
        media = [use.media_id for use in self.content.media]
        article = self.content.article and self.content.article.url
        return sha256(dumps([self.account_id, self.content.text, media, article]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to publish, stored before the call: the intent, and later how it ended. The execution log is
    the list of these."""

    id: str
    tenant: str
    post_id: str
    number: int
    version: int
    digest: str
    scheduled_at: datetime
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Outcome | None = None  # None: running, or its worker died
    error_code: str | None = None
    error: str | None = None
    status: int | None = None  # of the platform's HTTP response
    request_id: str | None = None  # the platform's own, for its support
    worker: str = ""


@dataclass(frozen=True, slots=True)
class PostEvent:
    """One line of a post's timeline."""

    at: datetime
    kind: str
    detail: str = ""
    actor: str = ""
