"""Publishing on a real database, against the local LinkedIn: a test calls the steps itself, or runs a node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

import duetime as dt
from momentum.database import Database, accounts, attempts, events, media, posts
from momentum.database.accounts import SealedTokens
from momentum.model import Account, AccountState, Attempt, Content, Media, MediaKind, MediaUse, Post
from momentum.platform import Access, MediaFile, PlatformError, ReconnectNeeded
from momentum.platforms.linkedin import LinkedIn
from momentum.publishing.options import SECOND, PublishingOptions
from momentum.publishing.parts import Parts, Skip
from momentum.publishing.prepare import prepare_post
from momentum.publishing.publish import publish_post
from momentum.publishing.publisher import Publisher
from momentum.publishing.resolve import resolve_post
from tests.momentum.platforms.fixtures import Sandbox, media_file
from tests.momentum.samples import stored_account, stored_post, utc_now

QUICK = PublishingOptions(
    lead=2 * SECOND,
    max_attempts=3,
    first_delay=0.05 * SECOND,
    poll_delays=(0.1 * SECOND,),
    hold_jitter=timedelta(),
    recheck=0.1 * SECOND,
    find_delays=(0.05 * SECOND, 0.05 * SECOND),
    probe_delay=timedelta(),
)


@dataclass
class KnownAccounts:
    """The tokens of a test's accounts."""

    database: Database
    tokens: dict[str, Access] = field(default_factory=dict)
    refreshed: dict[str, Access | PlatformError] = field(default_factory=dict)  # what a refresh gives

    async def access(self, account_id: str) -> Access:
        async with self.database.reading() as connection:
            account = await accounts.get(connection, None, account_id)
        if account.state is not AccountState.ACTIVE:
            raise ReconnectNeeded("the account is expired", code="expired")
        return self.tokens[account_id]

    async def refresh(self, account_id: str, rejected: Access | None = None) -> Access:
        if self._has_another(account_id, rejected):
            return self.tokens[account_id]
        given = self.refreshed[account_id]
        if isinstance(given, PlatformError):
            raise given
        self.tokens[account_id] = given
        return given

    async def expire(self, account_id: str, reason: str, rejected: Access | None = None) -> bool:
        if self._has_another(account_id, rejected):
            return False
        async with self.database.transaction() as connection:
            await accounts.set_state(connection, account_id, AccountState.EXPIRED)
        return True

    def _has_another(self, account_id: str, rejected: Access | None) -> bool:
        return rejected is not None and self.tokens[account_id].token != rejected.token


@dataclass
class KnownFiles:
    """The bytes of a test's media."""

    files: dict[str, MediaFile] = field(default_factory=dict)

    def open(self, media: Media) -> MediaFile:
        return self.files[media.id]


class StepContext:
    """The part of a task's context that the steps use."""

    def __init__(self, last_checkpoint: Any = None) -> None:
        self.last_checkpoint = last_checkpoint

    async def checkpoint(self, value: Any) -> None:
        self.last_checkpoint = value


@dataclass
class Scene:
    sandbox: Sandbox
    database: Database
    parts: Parts
    known: KnownAccounts
    files: KnownFiles

    @property
    def app(self) -> dt.App:
        return self.parts.publisher.app

    def with_options(self, **changes: Any) -> Scene:
        options = replace(self.parts.options, **changes)
        publisher = replace(self.parts.publisher, options=options)
        return replace(self, parts=replace(self.parts, options=options, publisher=publisher))

    async def account(
        self,
        member: str = "m-1_a",
        organization: int | None = None,
        can_refresh: bool = False,
        **changes: Any,
    ) -> Account:
        access = await self.sandbox.access(member, organization)
        async with self.database.transaction() as connection:
            refresh_token = b"sealed" if can_refresh else None
            account = await stored_account(
                connection,
                SealedTokens(b"sealed", refresh_token, None),
                author=access.author,
                can_refresh=can_refresh,
                scopes=access.scopes,
                **changes,
            )
        self.known.tokens[account.id] = access
        return account

    async def post(self, account: Account, *, planned: bool = False, **changes: Any) -> Post:
        async with self.database.transaction() as connection:
            post = await stored_post(connection, account, **changes)
            if planned:
                await self.parts.publisher.plan(connection, post)
        return post

    async def file(self, kind: MediaKind, content: bytes, name: str = "file") -> MediaUse:
        made = media_file(kind, content, name, f"med_{len(self.files.files)}")
        self.files.files[made.media.id] = made
        async with self.database.transaction() as connection:
            await media.insert(connection, made.media)
        return MediaUse(made.media.id)

    async def post_with(self, account: Account, *uses: MediaUse, **changes: Any) -> Post:
        return await self.post(account, content=Content("With files", uses), **changes)

    # -- the pipelines, as their tasks call them
    async def publish(self, post: Post, last_try: bool = False) -> str:
        try:
            return await publish_post(self.parts, post.id, post.version, last_try)
        except Skip as skip:
            return f"skipped: {skip}"

    async def prepare(self, post: Post, context: StepContext | None = None, last_try: bool = False) -> str:
        ctx: Any = context or StepContext()
        return await prepare_post(self.parts, ctx, post.id, post.version, last_try)

    async def resolve(self, post: Post, probe: bool | None = None, context: StepContext | None = None) -> str:
        ctx: Any = context or StepContext()
        return await resolve_post(self.parts, ctx, post.id, post.version, probe, False)

    # -- what is stored
    async def stored(self, post: Post) -> Post:
        async with self.database.reading() as connection:
            return await posts.get(connection, None, post.id)

    async def attempts(self, post: Post) -> Sequence[Attempt]:
        async with self.database.reading() as connection:
            return await attempts.of_post(connection, post.id)

    async def outcomes(self, post: Post) -> list[str | None]:
        return [each.outcome.value if each.outcome else None for each in await self.attempts(post)]

    async def timeline(self, post: Post) -> list[str]:
        async with self.database.reading() as connection:
            return [event.kind for event in await events.of_post(connection, post.id)]

    async def account_state(self, account: Account) -> AccountState:
        async with self.database.reading() as connection:
            return (await accounts.get(connection, None, account.id)).state

    async def texts(self) -> list[str]:
        """Of the posts that LinkedIn has."""
        return [each["typed"] for each in await self.sandbox.posts()]


@pytest.fixture
async def scene(sandbox: Sandbox, database: Database, app: dt.App) -> AsyncIterator[Scene]:
    platform = LinkedIn(sandbox.settings(organizations=True))
    known, files = KnownAccounts(database), KnownFiles()
    parts = Parts(
        database,
        {"linkedin": platform},
        known,
        files,
        Publisher(app, QUICK),
        QUICK,
        utc_now,
        lambda: 0.0,
        "worker-1",
    )
    yield Scene(sandbox, database, parts, known, files)
    await platform.close()
