"""Momentum wired together: one process with all roles, or several with some of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from momentum.application import Momentum
from momentum.database import posts
from momentum.errors import ConfigError
from momentum.model import PostState
from momentum.platforms.linkedin.settings import LinkedInSettings
from momentum.settings import Settings
from tests.momentum.platforms.fixtures import Sandbox
from tests.momentum.processes import FleetSettings, MomentumFleet


@pytest.fixture
def settings(database_url: str, sandbox: Sandbox, tmp_path: Path) -> Settings:
    return FleetSettings(database_url, sandbox.url, f"file://{tmp_path / 'media'}").settings()


async def test_one_process_stores_posts_and_another_publishes(
    settings: Settings, sandbox: Sandbox, tmp_path: Path
) -> None:
    limited = replace(settings, platforms=("linkedin",))
    async with (
        Momentum.opened(settings, roles=("api",)) as api,
        Momentum.opened(limited, roles=("worker",)) as worker,
    ):
        assert api.app.node is None
        fleet = MomentumFleet(FleetSettings("", sandbox.url, ""), tmp_path, api, sandbox)
        post = await fleet.post(await fleet.account("m-1"))
        async with asyncio.timeout(60):
            while (await fleet.stored(post)).state is not PostState.PUBLISHED:
                await asyncio.sleep(0.02)
        assert worker.app.node is not None
    assert len(await sandbox.posts()) == 1


async def test_planner_declares_the_schedules(settings: Settings) -> None:
    async with Momentum.opened(settings) as momentum:
        names = sorted(schedule.name for schedule in await momentum.app.schedules())
        assert names == ["momentum.prune", "momentum.watch_posts", "momentum.watch_tokens"]
        assert momentum.app.node is not None
        job = await momentum.app.trigger("momentum.watch_posts")
        assert (await job.wait(timeout="60s")).result == "0 posts had no job"
        async with momentum.database.reading() as connection:
            with pytest.raises(Exception, match="there is no post"):
                await posts.get(connection, "default", "post_1")


@pytest.mark.parametrize("roles", [(), ("api", "manager")])
async def test_unknown_role_is_refused(roles: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="roles: "):
        async with Momentum.opened(Settings(), roles=roles):
            pass


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"auth": "password"}, "auth: 'password' is unknown"),
        ({"host": "0.0.0.0"}, "auth: without keys everyone"),
        ({"port": 70_000}, "port: 70000"),
        ({"concurrency": 0}, "concurrency: 0"),
    ],
)
def test_wrong_setting_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        replace(Settings(), **changes)  # type: ignore[arg-type]


def test_address_for_browsers() -> None:
    assert (
        Settings(public_url="https://posts.example.org/", auth="keys").base_url == "https://posts.example.org"
    )
    assert Settings(host="::1").base_url == "http://[::1]:8081"
    assert Settings(host="0.0.0.0", auth="keys").base_url == "http://0.0.0.0:8081"
    assert "secret" not in repr(Settings(linkedin=LinkedInSettings(client_secret="my-secret")))
