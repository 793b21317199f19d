"""A short fleet proof for each queue. The long one: `python -m tests.momentum.fleet`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.momentum.fleet import OPTIONS, QUEUES, fleet_run, queue_server
from tests.momentum.platforms.fixtures import running_sandbox
from tests.momentum.processes import FleetSettings

pytestmark = [pytest.mark.slow, pytest.mark.server]


@pytest.mark.parametrize("queue", QUEUES)
async def test_each_post_is_published_once_or_in_doubt(
    queue: str, postgres_database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "sandbox").mkdir()
    with queue_server(queue) as url, running_sandbox(tmp_path / "sandbox") as sandbox:
        settings = FleetSettings(
            postgres_database_url, sandbox.url, f"file://{tmp_path / 'media'}", queue=url, options=OPTIONS
        )
        tally = await fleet_run(settings, tmp_path, count=40, seconds=8, kill_every=3)
    tally.check()
    assert tally.kills >= 1
    assert tally.faults >= 8
