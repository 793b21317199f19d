"""What the routes work with: one object for the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from duetime.serving import OpenCounts, Refused, WrongKeys
from momentum.api.changes import ChangeFeed
from momentum.application import Momentum
from momentum.media import Incoming
from momentum.posts.commands import PostCommands
from momentum.settings import Settings

CALLBACK_PATH = "/api/v1/oauth/callback"
MAX_STREAMS_PER_KEY, MAX_STREAMS = 50, 500
NO_STREAM = Refused(
    429,
    "streams_exhausted",
    f"too many open streams: close one (at most {MAX_STREAMS_PER_KEY} of one key, {MAX_STREAMS} in all)",
    None,
    {"Retry-After": "5"},
)
MAX_UPLOADS_PER_TENANT, MAX_UPLOADS = 20, 100
NO_UPLOAD = Refused(
    429,
    "uploads_exhausted",
    "too many files are uploaded or checked at the same time: send this one again "
    f"(at most {MAX_UPLOADS_PER_TENANT} of one tenant, {MAX_UPLOADS} in all)",
    None,
    {"Retry-After": "5"},
)


@dataclass(frozen=True, slots=True)
class ServiceState:
    momentum: Momentum
    posts: PostCommands = field(init=False)
    changes: ChangeFeed = field(init=False)
    wrong_keys: WrongKeys = field(init=False)
    valid_keys: set[bytes] = field(default_factory=set)  # digests that this process has seen to be valid
    streams: OpenCounts = field(
        default_factory=lambda: OpenCounts(NO_STREAM, MAX_STREAMS_PER_KEY, MAX_STREAMS)
    )
    uploads: OpenCounts = field(
        default_factory=lambda: OpenCounts(NO_UPLOAD, MAX_UPLOADS_PER_TENANT, MAX_UPLOADS)
    )
    incoming: Incoming = field(default_factory=Incoming)

    def __post_init__(self) -> None:
        momentum = self.momentum
        object.__setattr__(self, "wrong_keys", WrongKeys(momentum.settings.trusted_proxies()))
        commands = PostCommands(momentum.database, momentum.platforms, momentum.publisher)
        object.__setattr__(self, "posts", commands)
        object.__setattr__(self, "changes", ChangeFeed(momentum.database))

    @property
    def settings(self) -> Settings:
        return self.momentum.settings

    def now(self) -> datetime:
        return datetime.now(UTC)

    def redirect_uri(self, request: Request) -> str:
        """Where the platform sends the browser back: this service as the browser knows it."""
        base = self.settings.public_url or f"{request.url.scheme}://{request.headers['host']}"
        return base.rstrip("/") + CALLBACK_PATH


def state_of(request: Request) -> ServiceState:
    found: ServiceState = request.app.state.service
    return found


State = Annotated[ServiceState, Depends(state_of)]
