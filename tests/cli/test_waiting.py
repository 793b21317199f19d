"""`duetime job submit --wait`: the id is printed before the job ends, and a long wait says what it waits
for."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from duetime.cli.commands import job_submit
from duetime.errors import WaitTimeout
from duetime.model.views import WhyView
from tests.cli.conftest import Duetime
from tests.cli.node import Node


class Slow:
    """A job that has not ended at the first call."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []

    async def wait_for(self, job_id: UUID, timeout: str | None = None) -> str:
        self.asked.append(timeout)
        if timeout is not None:
            raise WaitTimeout("still pending")
        return "the job"

    async def why_job(self, job_id: UUID) -> WhyView:
        return WhyView(code="no_worker", why="waits: no worker is alive", remedy="start one")


async def test_long_wait_says_what_the_job_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    backend: Any = Slow()
    found: object = await job_submit.wait_for_end(backend, UUID(int=1))
    assert found == "the job"
    assert backend.asked == [job_submit.QUIET_WAIT, None]
    assert capsys.readouterr() == ("", "so far: waits: no worker is alive -> start one\n")


@pytest.mark.slow
def test_interrupted_wait_leaves_the_id_and_the_job(folder: Path, duetime: Duetime) -> None:
    waiting = Node(folder, "job", "submit", "unknown.task", "--wait")
    try:
        job_id = waiting.until("-").strip()
        status, err = waiting.end(signal.SIGINT)
    finally:
        waiting.kill()
    assert status == 130
    assert err.endswith(f"no longer waiting; the job is stored and goes on: `duetime job show {job_id}`\n")
    assert duetime("job", "show", job_id, "--json").json["state"] == "pending"
