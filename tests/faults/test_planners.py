"""Planners that join, are killed, stopped and leave share the segments again each time; the leader's duties
are taken over; every fire runs once. How long it takes: `python -m tests.faults.planners`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.planners import planner_run
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.server]


async def test_segments_and_leader_survive_killed_stopped_and_leaving_planners(
    durable_server: PostgresServer, tmp_path: Path
) -> None:
    store = durable_server.create_database("planners")
    run = await planner_run(store, tmp_path, schedules=60, lease=3, stopped=4, most=3, seconds=12)
    run.account.check()
    assert [step.shares for step in run.steps] == [(64,), (21, 21, 22), (32, 32), (64,), (32, 32), (64,)]
    assert [step.pruned_after is not None for step in run.steps] == [False, False, True, True, False, False]
