"""`duetime doctor` and `duetime node list`."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import duetime as dt
from duetime.cli.commands.doctor import Observation, examine, secret_keys
from duetime.cli.production import checklist
from duetime.config import Settings
from duetime.errors import SchemaMissing
from duetime.invokers.http.secrets import SecretBox
from duetime.model.instant import SECOND
from duetime.model.target import HttpTarget, key_ids
from duetime.model.views import AlertChannelView, LeaseView, NodeView, QueueView
from tests.cli.conftest import Duetime
from tests.cli.fleet import Past
from tests.http.scene import RING

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NODE = NodeView(
    id=1, name="n", state="alive", roles=["planner", "worker"], version="1", running=0, started_at=NOW,
    lease_until=NOW,
)  # fmt: skip
LEASE = LeaseView(name="leader", holder=1, token=1, expires_at=NOW)
WELL = Observation(0, [NODE], [LEASE], [], 1, [], [], 0)


def warnings(seen: Observation) -> set[str]:
    return {check.name for check in examine(seen) if check.level == "warn"}


def test_healthy_store_has_no_warnings() -> None:
    assert warnings(WELL) == set()
    assert warnings(replace(WELL, dead_letters=3)) == set()


PRODUCTION = {
    "store": "postgresql://db/x",
    "auth": "keys",
    "secret_keys": ("a:b",),
    "watchdog_url": "https://monitor.example/ping",
}
CHANNEL = AlertChannelView(name="ops", type="slack")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, None),
        ({"store": "memory://"}, "durable store"),
        ({"nodes": [NODE]}, "planners"),
        ({"nodes": [NODE, replace(NODE, id=2, roles=["planner"])]}, "workers"),
        ({"nodes": [NODE, replace(NODE, id=2, version="2")]}, "versions"),
        ({"auth": None}, "access"),
        ({"secret_keys": ()}, "shared secret keys"),
        ({"channels": []}, "alerts"),
        ({"watchdog_url": None}, "watchdog"),
    ],
)
def test_production_checklist(change: dict[str, Any], name: str | None) -> None:
    given = {"nodes": [NODE, replace(NODE, id=2)], "channels": [CHANNEL], **PRODUCTION, **change}
    nodes, channels = given.pop("nodes"), given.pop("channels")
    warned = {check.name for check in checklist(Settings(**given), nodes, channels) if check.level == "warn"}
    assert (name in warned) if name == "planners" else warned == ({name} if name else set())


def test_production_checklist_of_a_new_store(duetime: Duetime) -> None:
    duetime("migrate")
    done = duetime("doctor", "--production")
    assert done.status == 1
    assert "no outside monitor is called" in done.out
    assert "planners" in done.out


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"skew": 3 * SECOND}, "clock"),
        ({"skew": -3 * SECOND}, "clock"),
        ({"nodes": [NODE, replace(NODE, id=2, clock_skew=-40.0)]}, "clock"),
        ({"nodes": []}, "nodes"),
        ({"nodes": [replace(NODE, state="dead")]}, "nodes"),
        (
            {
                "nodes": [replace(NODE, roles=["planner"])],
                "queues": [QueueView(name="q", pending=1, due=1)],
            },
            "nodes",
        ),
        ({"nodes": [NODE, replace(NODE, id=2, state="expired")]}, "expired"),
        ({"leases": [LEASE, replace(LEASE, name="segment/1", holder=None)]}, "leases"),
        ({"leases": [replace(LEASE, holder=9)]}, "leases"),
        ({"leases": "etcd does not answer"}, "leases"),
        ({"overdue_schedules": ["nightly"]}, "schedules"),
        ({"nodes": [replace(NODE, broker="redis://127.0.0.1")]}, "nodes"),
        (
            {
                "nodes": [NODE, replace(NODE, id=2, roles=["dispatcher"])],
                "leases": [LEASE, replace(LEASE, name="dispatch/1", holder=None)],
            },
            "leases",
        ),
    ],
)
def test_each_problem_is_reported_with_a_remedy(change: dict[str, Any], name: str) -> None:
    seen = replace(WELL, **change)
    assert warnings(seen) == {name}
    assert all(check.remedy for check in examine(seen) if check.level == "warn")


@pytest.mark.parametrize(
    ("others", "holder"),
    [
        ([replace(NODE, id=2, roles=["dispatcher"], broker="redis://127.0.0.1")], 2),
        ([], None),  # the broker was given up
    ],
)
def test_leases_of_dispatchers_are_not_expected_of_planners(
    others: list[NodeView], holder: int | None
) -> None:
    leases = [LEASE, replace(LEASE, name="dispatch/0", holder=holder)]
    assert warnings(replace(WELL, nodes=[NODE, *others], leases=leases)) == set()


def test_node_with_expired_lease_does_not_count_as_alive() -> None:
    assert warnings(replace(WELL, nodes=[replace(NODE, state="expired")])) == {"nodes", "expired"}


def test_different_permissions_are_named_and_only_waiting_jobs_warn() -> None:
    poor = replace(NODE, id=8, name="poor", lacks=["allow 10.0.0.0/8"])
    seen = replace(WELL, nodes=[NODE, poor])
    found = {check.name: check for check in examine(seen)}["permissions"]
    assert (found.level, found.text) == ("ok", "poor (8) lacks allow 10.0.0.0/8")
    assert warnings(replace(seen, not_here=3)) == {"permissions"}


def test_idle_store_passes_all_checks(duetime: Duetime) -> None:
    duetime("migrate")
    done = duetime("doctor", "--json")
    assert done.status == 0, done.out
    assert [list(check) for check in done.json] == [["name", "level", "text", "remedy"]] * 11


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


def test_node_that_left_is_listed_only_with_all(duetime: Duetime, past: Past) -> None:
    assert duetime("node", "list", "--json").json == [], "the node has left"
    (node,) = duetime("node", "list", "--all", "--json").json
    fields = ["id", "name", "state", "roles", "version", "running", "started_at", "lease_until", "broker"]
    assert list(node) == [*fields, "permissions", "lacks", "clock_skew"]
    assert (node["state"], node["roles"]) == ("left", ["worker"])
    assert node["name"] in duetime("node", "list", "--all").out


TARGET = HttpTarget.from_json({"url": "https://a.example", "secret_headers": {"X-Key": "x"}})


def test_missing_schema_is_not_blamed_on_the_network(
    duetime: Duetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(*_: Any) -> None:
        raise SchemaMissing("the database has schema 0: run `duetime migrate`")

    duetime("migrate")
    monkeypatch.setattr("duetime.cli.commands.doctor.observe", missing)
    [check] = duetime("doctor", "--json").json
    assert "duetime migrate" in check["text"]
    assert "network" not in check["remedy"]


def test_doctor_reports_a_secret_key_that_a_schedule_needs() -> None:
    store = dt.App("postgresql://user@db.example/x").store
    spec = SecretBox(RING).seal_target(TARGET, "default").to_spec()
    sealed = dict.fromkeys(key_ids(spec), "nightly")
    keys = {"k1": "k1:" + b64encode(b"k" * 32).decode(), "k2": "k2:" + b64encode(b"n" * 32).decode()}
    lost = secret_keys(Settings(secret_keys=(keys["k2"],)), store, sealed)
    assert (lost.level, "k1" in lost.text, "nightly" in lost.text) == ("warn", True, True)
    assert secret_keys(Settings(), store, sealed).level == "warn"
    rotated = secret_keys(Settings(secret_keys=(keys["k2"], keys["k1"])), store, sealed)
    assert (rotated.level, rotated.text) == ("ok", "k2 encrypts; schedules still need k1")
    assert secret_keys(Settings(), store, {}).level == "ok"
