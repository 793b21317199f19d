"""What the routes work with: one object for the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from momentum.api.changes import ChangeFeed
from momentum.application import Momentum
from momentum.posts.commands import PostCommands
from momentum.settings import Settings

CALLBACK_PATH = "/api/v1/oauth/callback"


@dataclass(frozen=True, slots=True)
class ServiceState:
    momentum: Momentum
    posts: PostCommands = field(init=False)
    changes: ChangeFeed = field(init=False)

    def __post_init__(self) -> None:
        momentum = self.momentum
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
