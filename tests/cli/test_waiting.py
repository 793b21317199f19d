"""`duetime job submit --wait`: the job is known before it has ended, and whoever waits is told for what."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from duetime.cli import submit
from duetime.errors import WaitTimeout
from duetime.remote.results import Why
from tests.cli.conftest import Duetime
from tests.cli.node import Node


class Slow:
    """A job that is not over at the first look."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []

    async def wait_for(self, job_id: str, timeout: str | None = None) -> str:
        self.asked.append(timeout)
        if timeout is not None:
            raise WaitTimeout("still pending")
        return "the job"

    async def why_job(self, job_id: str) -> Why:
        return Why(code="no_worker", why="waits: no worker is alive", remedy="start one")


async def test_after_a_while_it_says_what_the_job_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    access: Any = Slow()
    found: object = await submit._ended(access, "some id")
    assert found == "the job"
    assert access.asked == [submit.PATIENCE, None]
    assert capsys.readouterr() == ("", "so far: waits: no worker is alive -> start one\n")


@pytest.mark.slow
def test_a_wait_that_is_broken_off_leaves_the_id_and_the_job(folder: Path, duetime: Duetime) -> None:
    waiting = Node(folder, "job", "submit", "nobody.knows.it", "--wait")
    try:
        job_id = waiting.until("-").strip()
        status, told = waiting.end(signal.SIGINT)
    finally:
        waiting.kill()
    assert status == 130
    assert told.endswith(f"no longer waiting; the job is stored and goes on: `duetime job show {job_id}`\n")
    assert duetime("job", "show", job_id, "--json").json["state"] == "pending"
