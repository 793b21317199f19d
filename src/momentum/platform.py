"""The contract of a platform: what Momentum asks of LinkedIn and any other place where posts are published.

A platform is one object without state of its own: Momentum keeps tokens, uploads, budgets and the intent to
publish. Adding a platform means one file in `platforms/` and its line in `platforms/__init__.py`.

Publishing has two phases. `upload` and `is_processed` may be repeated as often as needed. `publish` has an
effect that cannot be undone: it is called once for each recorded intent, and its exceptions say what is known
about the effect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from momentum.errors import Problem
from momentum.model import Author, Media, MediaKind, Post


@dataclass(frozen=True, slots=True)
class MediaRule:
    """What a platform accepts of one kind of media."""

    types: tuple[str, ...]  # MIME types
    max_bytes: int
    max_count: int = 1
    min_bytes: int = 1
    max_pixels: int | None = None
    max_pages: int | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of a platform. They are checked when a post is saved, and the page shows them."""

    max_text: int
    fold_after: int | None = None  # characters that a feed shows before "see more"
    media: dict[MediaKind, MediaRule] = field(default_factory=dict)
    articles: bool = False
    visibilities: tuple[str, ...] = ("PUBLIC",)
    requests_per_account_per_day: int | None = None
    requests_per_app_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What an authorization gave: tokens, their expiry and the scopes that were really granted."""

    access_token: str
    expires_at: datetime | None
    scopes: tuple[str, ...]
    refresh_token: str | None = None
    refresh_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """An account as a platform needs it: the author and the token to act with."""

    author: Author
    token: str
    scopes: tuple[str, ...] = ()
    server: str = ""  # of platforms with many servers, such as Mastodon


@dataclass(frozen=True, slots=True)
class Published:
    """The post as the platform knows it."""

    id: str
    url: str | None = None


@dataclass(slots=True)
class Upload:
    """One file at the platform: its asset id, and how far the upload has come. `state` belongs to the
    platform: JSON that lets another process resume."""

    asset: str | None = None
    state: dict[str, Any] = field(default_factory=dict)
    sent: bool = False  # all bytes are there
    ready: bool = False  # processed: it can be published


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A stored file, readable in parts."""

    media: Media
    read: Callable[[int, int], Awaitable[bytes]]  # from the first byte, so many bytes
    stream: Callable[[], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a post together with its asset at the platform."""

    media: Media
    asset: str
    alt_text: str = ""
    title: str = ""


class Meter(Protocol):
    """Counts requests against the daily budgets before they are made."""

    async def spend(self, requests: int = 1) -> None:
        """Raises Throttled when a budget is used up: then no request is made."""
        ...


SaveUpload = Callable[[Upload], Awaitable[None]]


class PlatformError(Exception):
    """A call to a platform did not succeed. The subclasses say what follows from it."""

    def __init__(
        self, message: str, *, code: str = "", status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.status, self.request_id = message, code, status, request_id


class Rejected(PlatformError):
    """The platform refuses this post or file for good: nothing was created."""


class TryLater(PlatformError):
    """Nothing was created, and a later call can succeed."""


class NotSent(TryLater):
    """The request did not reach the platform: no connection, no name, no TLS."""


class Throttled(PlatformError):
    """A limit is reached: nothing was created. Hold the account, or the whole platform, until then."""

    def __init__(
        self, message: str, *, until: datetime, whole_platform: bool = False, **details: Any
    ) -> None:
        super().__init__(message, **details)
        self.until, self.whole_platform = until, whole_platform


class ReconnectNeeded(PlatformError):
    """The token is expired, revoked or lacks a scope: a person must connect the account again."""


class PlatformStopped(PlatformError):
    """No request of this app can succeed until an operator acts, for example a dead API version."""


class OutcomeUnknown(PlatformError):
    """The request was sent, and nothing proves whether it had its effect. Never repeat it blindly."""


class DuplicatePost(Rejected):
    """The platform already has a post with this content, and names it."""

    def __init__(self, message: str, existing: Published | None, **details: Any) -> None:
        super().__init__(message, **details)
        self.existing = existing


class Platform(Protocol):
    name: str  # in URLs, in the database, and the name of its queue
    title: str  # for people
    rules: Rules  # where nothing else is known

    async def learn_rules(self, server: str) -> None:
        """Ask the server for its own rules, unless they are known. Never fails."""
        ...

    def rules_at(self, server: str) -> Rules:
        """The rules of this server as far as they are known. No request is made."""
        ...

    def notices(self, now: datetime) -> Sequence[str]:
        """Warnings for the operator, such as an API version that ends soon."""
        ...

    async def authorize_url(self, state: str, verifier: str, redirect_uri: str, server: str = "") -> str:
        """Where a person grants access. `verifier` is for PKCE, where it is supported."""
        ...

    async def exchange(self, code: str, verifier: str, redirect_uri: str, server: str = "") -> Grant:
        """Turn the code into tokens. Raises ReconnectNeeded if a needed scope was not granted."""
        ...

    async def authors(self, grant: Grant, server: str = "") -> Sequence[Author]:
        """The member, and the organizations that the member may post for."""
        ...

    async def refresh(self, refresh_token: str, server: str = "") -> Grant: ...

    async def revoke(self, access: Access) -> None: ...

    def check(self, post: Post, media: Sequence[Media]) -> Sequence[Problem]:
        """What the platform would refuse, beyond what `rules` says."""
        ...

    async def upload(
        self, access: Access, file: MediaFile, upload: Upload, save: SaveUpload, meter: Meter
    ) -> None:
        """Bring the file to the platform, or go on where `upload` stopped. The asset id is saved before the
        first byte is sent, and progress after each part."""
        ...

    async def is_processed(self, access: Access, media: Media, upload: Upload, meter: Meter) -> bool:
        """Whether the asset can be published. Raises Rejected if processing failed."""
        ...

    async def publish(
        self, access: Access, post: Post, attachments: Sequence[Attachment], meter: Meter
    ) -> Published:
        """Create the post: one request, never repeated inside. Raises one of the errors above."""
        ...

    @property
    def can_find(self) -> bool:
        """Whether `find` can work at all on this platform."""
        ...

    async def find(self, access: Access, post: Post, since: datetime, meter: Meter) -> Published | None:
        """Look for a post whose creation is in doubt. None: it is certainly not there. Raises OutcomeUnknown
        if this account may not read its posts."""
        ...

    async def close(self) -> None: ...
