"""Worker processes that are killed: in the call that publishes, and in the middle of an upload."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from momentum.database import attempts
from momentum.model import Post, PostState
from tests.momentum.media.samples import mp4
from tests.momentum.platforms.fixtures import Sandbox
from tests.momentum.processes import FleetSettings, MomentumFleet, running_fleet, with_files

pytestmark = pytest.mark.slow
FOREVER = 3600


@pytest.fixture
async def fleet(database_url: str, sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[MomentumFleet]:
    settings = FleetSettings(
        database_url, sandbox.url, f"file://{tmp_path / 'media'}", options={"first_delay": 0.1}
    )
    async with running_fleet(settings, tmp_path) as running:
        yield running


async def state_of(fleet: MomentumFleet, post: Post) -> PostState:
    return (await fleet.stored(post)).state


@pytest.mark.parametrize("accepted", [True, False])
async def test_worker_killed_after_the_intent_never_leads_to_a_second_call(
    fleet: MomentumFleet, sandbox: Sandbox, accepted: bool
) -> None:
    await sandbox.faults("timeout_after" if accepted else "timeout_before", seconds=FOREVER)
    await sandbox.faults("slow", seconds=0, times=100)  # counts the calls after it
    account = await fleet.account("m-1")
    worker = fleet.spawn()
    post = await fleet.post(account)

    async def calls() -> int:
        return sum(fault["done"] for fault in await sandbox.scripted())

    async def called() -> bool:
        return await calls() == 1 and len(await sandbox.posts()) == accepted

    await fleet.until(called, "the call")
    await fleet.kill(worker)
    fleet.spawn()

    async def in_doubt() -> bool:
        return await state_of(fleet, post) is PostState.UNKNOWN

    await fleet.until(in_doubt, "doubt")
    follower = await fleet.post(account)  # the account is free again

    async def published() -> bool:
        return await state_of(fleet, follower) is PostState.PUBLISHED

    await fleet.until(published, "the next post")
    assert await calls() == 2  # one for each post
    assert len(await sandbox.posts()) == 1 + accepted
    async with fleet.momentum.database.reading() as connection:
        [attempt] = await attempts.of_post(connection, post.id)
    assert (attempt.outcome, attempt.error_code) == ("unknown", "worker_lost")


async def test_upload_of_40_mb_killed_in_the_middle_resumes_without_a_second_asset(
    fleet: MomentumFleet, sandbox: Sandbox
) -> None:
    await sandbox.faults("timeout_before", "upload", skip=4, seconds=FOREVER)
    account = await fleet.account("m-1")
    video = await fleet.file(mp4(size=40 * 1024 * 1024), "film.mp4")
    worker = fleet.spawn()
    post = await fleet.post(account, content=with_files("A film", video))

    async def parts() -> list[int]:
        """How often each part that has arrived has arrived."""
        [asset] = await sandbox.assets() or [{"parts": []}]
        return [part["times"] for part in asset["parts"] if part["etag"]]

    async def in_the_middle() -> bool:
        # One request begins the upload, four parts are there, and the fifth hangs.
        return len(await parts()) == 4 and await state_of(fleet, post) is PostState.PREPARING

    await fleet.until(in_the_middle, "four parts")
    await fleet.kill(worker)
    fleet.spawn()

    async def published() -> bool:
        return await state_of(fleet, post) is PostState.PUBLISHED

    await fleet.until(published, "the post")
    [asset] = await sandbox.assets()
    [there] = await sandbox.posts()
    assert there["content"]["media"]["id"] == asset["urn"]
    assert len(asset["parts"]) == 11
    # The part whose progress was not yet saved when the worker was killed may have been sent again.
    assert sum(await parts()) <= 12
