"""`duetime queue`, and what jobs are told to wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duetime.cli.waiting import obstacle
from duetime.model.ids import Ids
from duetime.model.instant import SECOND
from duetime.model.job import Job, State
from duetime.model.lease import Node, NodeId
from duetime.model.limit import Queue
from tests.cli.conftest import Duetime

FIELDS = ["name", "paused", "pause_note", "paused_at", "most", "rate", "pending", "due", "running"]
NOW = 2_000_000_000 * SECOND
NODE = Node(NodeId(1), "n", ("worker",), "1", NOW - SECOND, NOW + SECOND, False, 0)
JOB = Job(
    id=Ids().new(NOW), tenant="default", schedule_id=None, schedule=None, fire_time=NOW, due_at=NOW, queue="mail", priority=5, overlap=None,
    target="send", target_spec=None, payload=b"{}", policies=None, owner=None, labels=None, unique_key=None, retry_of=None, gate=None,
    state=State.PENDING, attempt=0, failures=0, losses=0, node=None, cancel_requested=False, checkpoint=None, progress=None, created_at=NOW,
    claimed_at=None, started_at=None, finished_at=None, result=None, error=None, disposition=None,
)  # fmt: skip


def test_pause_resume_and_list(duetime: Duetime) -> None:
    job_id = duetime("job", "submit", "send", "--queue", "mail").out.strip()
    paused = duetime("queue", "pause", "mail", "--note", "server moves", "--json")
    assert paused.status == 0, paused.err
    assert list(paused.json) == FIELDS
    assert (paused.json["paused"], paused.json["pause_note"], paused.json["pending"]) == (True, "server moves", 1)
    assert duetime("queue", "list", "--json").json == [paused.json]
    assert "server moves" in duetime("queue", "list").out
    assert duetime("job", "show", job_id, "--json").json["waits_for"] == "queue mail is paused: server moves"
    assert "waits for" in duetime("job", "show", job_id).out
    assert duetime("queue", "resume", "mail").out == "mail is active; no limit\n"
    assert duetime("job", "show", job_id, "--json").json["waits_for"] == "a worker: none is alive"


def test_a_limit_replaces_what_was_said_before(duetime: Duetime) -> None:
    duetime("migrate")
    assert duetime("queue", "limit", "mail", "--most", "5", "--rate", "100/1m").out == (
        "mail is active; at most 5 at once and at most 100/1m starts\n"
    )
    assert (
        duetime("queue", "pause", "mail").out == "mail is paused; 0 still running, 0 waiting; at most 5 at once and at most 100/1m starts\n"
    )
    changed = duetime("queue", "limit", "mail", "--rate", "10/s", "--json").json
    assert (changed["most"], changed["rate"], changed["paused"]) == (None, "10/1s", True)
    assert duetime("queue", "limit", "mail", "--none", "--json").json["rate"] is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["mail"], "give --most, --rate or both, or --none"),
        (["mail", "--none", "--most", "1"], "give --most, --rate or both, or --none"),
        (["mail", "--most", "0"], "0 must be a whole number from 1"),
        (["mail", "--rate", "often"], "'often' is no rate"),
        (["@mail", "--most", "1"], "is reserved"),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(duetime: Duetime, arguments: list[str], told: str) -> None:
    duetime("migrate")
    done = duetime("queue", "limit", *arguments)
    assert (done.status, told in done.err) == (2, True), done.err


def test_no_queues(duetime: Duetime) -> None:
    duetime("migrate")
    assert duetime("queue", "list").out == "no queues\n"


@pytest.mark.parametrize(
    ("job", "queue", "nodes", "told"),
    [
        ({}, Queue("mail"), [NODE], "a worker with room that knows send and serves queue mail"),
        ({}, Queue("mail"), [replace(NODE, roles=("planner",))], "a worker: none is alive"),
        ({}, Queue("mail"), [replace(NODE, lease_until=NOW - 1)], "a worker: none is alive"),
        ({}, Queue("mail", most=3), [NODE], "room in queue mail: 3 run, 3 may"),
        ({}, Queue("mail", most=4), [NODE], "a worker with room"),
        ({}, Queue("mail", paused=True), [], "queue mail is paused"),
        ({"due_at": NOW + SECOND}, Queue("mail"), [], "its time, 2033-05-18T03:33:21Z"),
        ({"due_at": NOW + SECOND, "failures": 1}, Queue("mail"), [], "its next try, 2033-05-18T03:33:21Z"),
        ({"gate": "send/c1"}, Queue("mail"), [NODE], "its turn at gate send/c1"),
        ({"overlap": "queue", "schedule": "nightly"}, Queue("mail"), [NODE], "the job of schedule nightly before it"),
    ],
)
def test_the_first_obstacle_is_named(job: dict[str, Any], queue: Queue, nodes: list[Node], told: str) -> None:
    assert obstacle(replace(JOB, **job), NOW, queue, 3, nodes).startswith(told)
