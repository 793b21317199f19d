"""Momentum with everything open: the database, the platforms, the media, the accounts and Duetime. One
process can have all roles; a fleet gives each process some of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import duetime as dt
from momentum.accounts import Accounts
from momentum.database import Database
from momentum.errors import ConfigError
from momentum.media import MediaStore
from momentum.platform import Platform
from momentum.platforms import platforms_of
from momentum.publishing import tasks
from momentum.publishing.parts import Parts
from momentum.publishing.publisher import Publisher
from momentum.secret_box import SecretBox
from momentum.settings import ROLES, Settings

SCHEDULES = "momentum"  # the set that the schedules of the code are declared in


@dataclass(frozen=True, slots=True)
class Momentum:
    settings: Settings
    database: Database
    platforms: Mapping[str, Platform]
    media: MediaStore
    secrets: SecretBox
    accounts: Accounts
    app: dt.App
    publisher: Publisher

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: Settings, *, roles: Sequence[str] = ROLES) -> AsyncIterator[Momentum]:
        """Everything, until the block ends. `api` alone stores posts and their jobs; `planner` fires the
        schedules, and gives due jobs to the broker if there is one; `worker` publishes."""
        unknown = [role for role in roles if role not in ROLES]
        if unknown or not roles:
            raise ConfigError(f"roles: {', '.join(unknown) or 'none given'}: use some of {', '.join(ROLES)}")
        async with AsyncExitStack() as stack:
            momentum, parts = await cls._wired(settings, stack)
            app = momentum.app
            app.include(tasks.make_tasks(parts))
            await app.open()
            stack.push_async_callback(app.close)
            if "planner" in roles:
                await app.declare_schedules(SCHEDULES, tasks.schedules(parts))
            if node_roles := _node_roles(settings, roles):
                await stack.enter_async_context(
                    app.running(roles=node_roles, queues=_queues(settings), concurrency=settings.concurrency)
                )
            yield momentum

    @classmethod
    async def _wired(cls, settings: Settings, stack: AsyncExitStack) -> tuple[Momentum, Parts]:
        database = Database.of(settings.database)
        stack.push_async_callback(database.close)
        app = dt.App(settings.database, queue=settings.queue)
        await app.migrate()
        await database.migrate()
        platforms = platforms_of(settings)
        for platform in platforms.values():
            stack.push_async_callback(platform.close)
        media = MediaStore.of(settings.media)
        secrets = SecretBox(settings.secret_keys)
        accounts = Accounts(database, secret_box=secrets, platforms=platforms)
        publisher = Publisher(app, settings.publishing)
        parts = Parts(database, platforms, accounts, media, publisher, settings.publishing)
        return cls(settings, database, platforms, media, secrets, accounts, app, publisher), parts


def _node_roles(settings: Settings, roles: Sequence[str]) -> list[str]:
    dispatching = ["dispatcher"] if settings.queue and "planner" in roles else []
    return [*(role for role in roles if role != "api"), *dispatching]


def _queues(settings: Settings) -> list[str]:
    return [*settings.platforms, tasks.QUEUE] if settings.platforms else []
