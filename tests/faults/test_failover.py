"""PostgreSQL with Patroni: the primary changes under load, as planned and by a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.failover import failover_run
from tests.servers.patroni import PatroniCluster

pytestmark = [pytest.mark.slow, pytest.mark.server]


async def test_acknowledged_jobs_survive_switchover_and_kill_of_the_primary(tmp_path: Path) -> None:
    """The failover run in small. The leader's key ends earlier than Patroni's manual allows, to save time."""
    with PatroniCluster(ttl=5) as cluster:
        account = await failover_run(cluster, tmp_path, rounds=1, nodes=2)
    account.check()
    assert [failover.fault for failover in account.failovers] == ["switchover", "kill -9"]
    assert account.acknowledged > 500
