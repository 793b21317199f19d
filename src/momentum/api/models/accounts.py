"""The service's status, accounts, media and keys."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from momentum.api.models.fields import Input, Instant, Output
from momentum.model import AccountState, AuthorKind, MediaKind


class UsageOut(Output):
    """Requests to the platform since 00:00 UTC."""

    today: int
    limit: int | None


class HoldOut(Output):
    until: Instant | None = Field(description="null: until a person resumes it")
    code: str
    reason: str


class PlatformOut(Output):
    name: str
    title: str
    rules: dict[str, Any]
    notices: list[str]
    hold: HoldOut | None
    usage: UsageOut


class CountsOut(Output):
    drafts: int
    scheduled: int
    inbox: int
    failed: int


class StatusOut(Output):
    version: str
    now: Instant
    demo: bool
    auth: str
    operator: bool = Field(description="whether the caller may resume a whole platform")
    platforms: list[PlatformOut]
    counts: CountsOut


class AuthorOut(Output):
    urn: str
    name: str
    kind: AuthorKind
    picture: str | None
    handle: str | None


class AccountOut(Output):
    id: str
    platform: str
    author: AuthorOut
    server: str
    state: AccountState
    scopes: list[str]
    expires_at: Instant | None
    expires_soon: bool
    can_refresh: bool
    probe: bool
    scheduled_after_expiry: int
    usage: UsageOut
    max_text: int | None = Field(description="characters of a post; null: the platform is not enabled")


class AccountList(Output):
    items: list[AccountOut]


class ConnectIn(Input):
    platform: str = Field(max_length=40)
    server: str | None = Field(None, max_length=255, description="of platforms with many servers")


class ConnectOut(Output):
    url: str = Field(description="open it in the browser: there the person grants access")


class AccountPatchIn(Input):
    probe: bool = Field(description="resolve doubt by sending the identical post again")


class MediaOut(Output):
    id: str
    kind: MediaKind
    type: str
    name: str
    size: int
    width: int | None
    height: int | None
    seconds: float | None
    pages: int | None
    created_at: Instant


class SessionIn(Input):
    key: str = Field(max_length=200)


class SessionOut(Output):
    tenant: str
    name: str
