"""What the steps of publishing work with, and how they end early."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from logging import getLogger
from random import SystemRandom
from typing import Protocol

import duetime as dt
from momentum.database import Database, accounts, posts
from momentum.errors import NotFound
from momentum.model import PLANNED, Account, Media, Post, PostState
from momentum.platform import Access, MediaFile, Meter, Platform
from momentum.publishing.budget import DailyMeter
from momentum.publishing.options import PublishingOptions
from momentum.publishing.publisher import Publisher, utc_now

log = getLogger("momentum.publishing")


class AccountAccess(Protocol):
    """The tokens of accounts: `momentum.accounts.Accounts`."""

    async def access(self, account_id: str) -> Access:
        """Raises ReconnectNeeded if a person must connect the account again."""
        ...

    async def refresh(self, account_id: str, rejected: Access | None = None) -> Access:
        """Get a new token, or any but the rejected one. Raises ReconnectNeeded if the platform refuses."""
        ...

    async def expire(self, account_id: str, reason: str, rejected: Access | None = None) -> bool:
        """The token is of no use any more. False: there is another than the rejected one."""
        ...


class MediaFiles(Protocol):
    """The bytes of media: `momentum.media.MediaStore`."""

    def open(self, media: Media) -> MediaFile: ...


@dataclass(frozen=True, slots=True)
class Parts:
    database: Database
    platforms: Mapping[str, Platform]
    accounts: AccountAccess
    media: MediaFiles
    publisher: Publisher
    options: PublishingOptions
    now: Callable[[], datetime] = utc_now
    chance: Callable[[], float] = SystemRandom().random
    worker: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")

    def jitter(self) -> timedelta:
        return self.chance() * self.options.hold_jitter


@dataclass(frozen=True, slots=True)
class Work:
    """One post on its way."""

    post: Post
    account: Account
    platform: Platform
    last_try: bool = False  # Duetime will not try again after this attempt

    def meter(self, parts: Parts, reserve: int = 0) -> Meter:
        return DailyMeter(parts.database, self.platform, self.account.id, parts.now, reserve)


class Skip(Exception):
    """There is nothing to do for this message; the reason says why."""


class PostFailed(Exception):
    """The post is not tried again. Its job becomes a dead letter with this reason."""


class TryAgain(Exception):
    """Nothing was created. Duetime tries again, with its delays."""


async def overtaken(parts: Parts, work: Work) -> Skip | dt.Snooze:
    """Why a step did not find the post as it was loaded. A person may have changed it: then there is nothing
    to do. Or another attempt of the same job has it, by a worker that only seemed to be dead: then this job
    must go on. It is the only one that follows if that attempt publishes nothing."""
    async with parts.database.reading() as connection:
        now_stored = await posts.get(connection, None, work.post.id)
    if now_stored.version == work.post.version and now_stored.state is PostState.PUBLISHING:
        return dt.Snooze(parts.options.call_timeout, "another attempt is publishing the post")
    if now_stored.version == work.post.version and now_stored.state in PLANNED:
        return dt.Snooze(parts.options.recheck, "another attempt has the post")
    return Skip("the post was changed in the meantime")


async def load(parts: Parts, post_id: str, version: int, last_try: bool = False) -> Work:
    """The post that a message names. A message of an older version is dropped."""
    try:
        async with parts.database.reading() as connection:
            post = await posts.get(connection, None, post_id)
            account = await accounts.get(connection, None, post.account_id)
    except NotFound as problem:
        raise Skip(problem.message) from None
    if post.version != version:
        raise Skip(f"the post has version {post.version}, this message is for {version}")
    platform = parts.platforms.get(account.platform)
    if platform is None:
        # No attempt is used up: the post is not to blame, and another worker may know it.
        reason = f"this worker does not know the platform {account.platform!r}"
        raise dt.Snooze(parts.options.recheck, reason)
    return Work(post, account, platform, last_try)
