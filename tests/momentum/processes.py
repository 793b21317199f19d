"""Momentum as several processes under test: workers that can be killed, and a client in the test process that
stores accounts and posts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from momentum.application import Momentum
from momentum.database import media, posts
from momentum.database.accounts import SealedTokens
from momentum.ids import new_id
from momentum.model import Account, Content, Media, MediaUse, Post
from momentum.platforms.linkedin.settings import LinkedInSettings
from momentum.publishing.options import PublishingOptions
from momentum.secret_box import new_key
from momentum.settings import Settings
from tests.momentum.samples import sample_post, stored_account

if TYPE_CHECKING:
    from tests.momentum.platforms.fixtures import Sandbox

TIMEOUT = 120.0  # seconds
VARIABLE = "MOMENTUM_TEST_SETTINGS"


@dataclass(frozen=True)
class FleetSettings:
    """The settings of all processes, as JSON for those of them that are started."""

    database: str
    sandbox: str
    media: str
    key: str = field(default_factory=new_key)
    queue: str | None = None
    organizations: bool = True
    options: dict[str, Any] = field(default_factory=dict)  # of publishing; durations in seconds

    def settings(self) -> Settings:
        linkedin = LinkedInSettings(
            client_id="momentum",
            client_secret="sandbox-secret",
            web_url=self.sandbox,
            api_url=self.sandbox,
            organizations=self.organizations,
            grace=0.0,
        )
        return Settings(
            database=self.database,
            queue=self.queue,
            media=self.media,
            secret_keys=(self.key,),
            linkedin=linkedin,
            publishing=PublishingOptions(**{name: _durations(value) for name, value in self.options.items()}),
        )

    def to_json(self) -> str:
        return json.dumps(self.__dict__)

    @classmethod
    def from_environment(cls) -> FleetSettings:
        return cls(**json.loads(os.environ[VARIABLE]))


@dataclass
class MomentumFleet:
    fleet: FleetSettings
    folder: Path
    momentum: Momentum
    sandbox: Sandbox
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def spawn(self, roles: str = "planner,worker") -> subprocess.Popen[bytes]:
        variables = {VARIABLE: self.fleet.to_json(), "PYTHONPATH": ":".join(filter(None, sys.path))}
        with self._log(len(self.workers)).open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "tests.momentum.worker", roles],
                env={**os.environ, **variables},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.workers.append(worker)
        return worker

    async def kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.send_signal(signal.SIGKILL)
        await asyncio.to_thread(worker.wait, TIMEOUT)

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, timeout: float = TIMEOUT) -> None:
        try:
            async with asyncio.timeout(timeout):
                while not await holds():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"waited {timeout} s for {what}\n{self.logs()}") from None

    async def joined(self, count: int) -> None:
        async def enough() -> bool:
            return sum(not node.dead for node in await self.momentum.app.nodes()) >= count

        await self.until(enough, f"{count} nodes")

    async def account(self, member: str, organization: int | None = None, **changes: Any) -> Account:
        access = await self.sandbox.access(member, organization)
        tokens = SealedTokens(self.momentum.secrets.seal(access.token), None, None)
        async with self.momentum.database.transaction() as connection:
            return await stored_account(
                connection, tokens, author=access.author, scopes=access.scopes, **changes
            )

    async def post(self, account: Account, **changes: Any) -> Post:
        """Store a post and its job."""
        post = sample_post(account, **changes)
        async with self.momentum.database.transaction() as connection:
            await posts.insert(connection, post)
            await self.momentum.publisher.plan(connection, post)
        return post

    async def file(self, content: bytes, name: str) -> Media:
        async def parts() -> AsyncIterator[bytes]:
            yield content

        stored = await self.momentum.media.put("default", name, parts())
        async with self.momentum.database.transaction() as connection:
            await media.insert(connection, stored)
        return stored

    async def stored(self, post: Post) -> Post:
        async with self.momentum.database.reading() as connection:
            return await posts.get(connection, None, post.id)

    def logs(self) -> str:
        return "\n".join(
            f"--- worker {number}\n{self._log(number).read_text()[-1500:]}"
            for number in range(len(self.workers))
        )

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()

    def _log(self, number: int) -> Path:
        return self.folder / f"worker-{number}.log"


@asynccontextmanager
async def running_fleet(fleet: FleetSettings, folder: Path) -> AsyncIterator[MomentumFleet]:
    """The client; its workers are started by `spawn` and killed at the end."""
    from tests.momentum.platforms.fixtures import Sandbox  # it imports pytest, which no worker needs

    async with (
        aiohttp.ClientSession() as http,
        Momentum.opened(fleet.settings(), roles=("api",)) as momentum,
    ):
        running = MomentumFleet(fleet, folder, momentum, Sandbox(fleet.sandbox, http))
        try:
            yield running
        finally:
            running.close()


def with_files(text: str, *files: Media) -> Content:
    return Content(f"{text} {new_id('text')}", tuple(MediaUse(each.id) for each in files))


def _durations(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_durations(each) for each in value)
    return timedelta(seconds=value) if isinstance(value, float) else value
