"""`duetime doctor` and `duetime node list`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duetime.cli.commands.doctor import Observation, examine
from duetime.model.instant import SECOND
from duetime.model.lease import Lease, Node, NodeId
from duetime.model.limit import Queue, QueueCounts
from tests.cli.conftest import Duetime
from tests.cli.fleet import Past

NOW = 2_000_000_000 * SECOND
NODE = Node(NodeId(1), "n", ("planner", "worker"), "1", NOW - SECOND, NOW + SECOND, False, 0)
LEASE = Lease("leader", NodeId(1), 1, NOW + SECOND)
WELL = Observation(NOW, 0, [NODE], [LEASE], [], [], 1, [], [], 0)


def warnings(seen: Observation) -> set[str]:
    return {check.name for check in examine(seen) if check.level == "warn"}


def test_healthy_store_has_no_warnings() -> None:
    assert warnings(WELL) == set()
    assert warnings(replace(WELL, dead_letters=3)) == set()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"skew": 3 * SECOND}, "clock"),
        ({"skew": -3 * SECOND}, "clock"),
        ({"nodes": []}, "nodes"),
        ({"nodes": [replace(NODE, dead=True)]}, "nodes"),
        (
            {
                "nodes": [replace(NODE, roles=("planner",))],
                "queues": [Queue("q", counts=QueueCounts(1, 1, 0))],
            },
            "nodes",
        ),
        ({"nodes": [NODE, replace(NODE, id=NodeId(2), lease_until=NOW - 1)]}, "expired"),
        ({"leases": [LEASE, replace(LEASE, name="segment/1", holder=None)]}, "leases"),
        ({"leases": [replace(LEASE, holder=NodeId(9))]}, "leases"),
        ({"overdue_schedules": ["nightly"]}, "schedules"),
    ],
)
def test_each_problem_is_reported_with_a_remedy(change: dict[str, Any], name: str) -> None:
    seen = replace(WELL, **change)
    assert warnings(seen) == {name}
    assert all(check.remedy for check in examine(seen) if check.level == "warn")


def test_node_with_expired_lease_does_not_count_as_alive() -> None:
    assert warnings(replace(WELL, nodes=[replace(NODE, lease_until=NOW - 1)])) == {"nodes", "expired"}


def test_idle_store_passes_all_checks(duetime: Duetime) -> None:
    duetime("migrate")
    done = duetime("doctor", "--json")
    assert done.status == 0, done.out
    assert [list(check) for check in done.json] == [["name", "level", "text", "remedy"]] * 9


def test_work_without_a_node_is_reported(duetime: Duetime, past: Past) -> None:
    assert duetime("doctor").status == 0
    duetime("schedule", "add", "s", "t", "--every", "5m")
    done = duetime("doctor")
    assert done.status == 1
    assert "warn 1 schedule and no planner is alive" in done.out
    assert "duetime serve" in done.out


def test_overdue_jobs_are_reported(duetime: Duetime) -> None:
    duetime("job", "submit", "send", "--at", "2020-01-01T00:00:00Z", "--queue", "mail")
    checks = {check["name"]: check for check in duetime("doctor", "--json").json}
    assert checks["jobs"]["level"] == "warn"
    assert "send in queue mail" in checks["jobs"]["text"]


def test_jobs_of_a_paused_queue_are_not_overdue(duetime: Duetime) -> None:
    duetime("job", "submit", "send", "--at", "2020-01-01T00:00:00Z", "--queue", "mail")
    duetime("queue", "pause", "mail")
    checks = {check["name"]: check for check in duetime("doctor", "--json").json}
    assert checks["jobs"]["level"] == "ok"
    assert checks["queues"]["text"] == "paused: mail; 1 job due in them"


def test_store_that_cannot_be_opened_is_reported(duetime: Duetime) -> None:
    done = duetime("doctor")
    assert (done.status, "there is no file" in done.out) == (1, True)


def test_missing_file_does_not_blame_the_network(duetime: Duetime) -> None:
    done = duetime("doctor")
    assert "create it with `duetime migrate`" in done.out
    assert "network" not in done.out


def test_node_list_shows_dead_nodes_only_with_all(duetime: Duetime, past: Past) -> None:
    assert duetime("node", "list", "--json").json == [], "the node has left"
    (node,) = duetime("node", "list", "--all", "--json").json
    assert list(node) == ["id", "name", "state", "roles", "version", "running", "started_at", "lease_until"]
    assert (node["state"], node["roles"]) == ("dead", ["worker"])
    assert node["name"] in duetime("node", "list", "--all").out
