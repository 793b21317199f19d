"""`duetime queue`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Duetime

FIELDS = ["name", "paused", "pause_note", "paused_at", "max_running", "rate", "pending", "due", "running"]


def test_queue_pause_resume_and_list(duetime: Duetime) -> None:
    job_id = duetime("job", "submit", "send", "--queue", "mail").out.strip()
    paused = duetime("queue", "pause", "mail", "--note", "server moves", "--json")
    assert paused.status == 0, paused.err
    assert list(paused.json) == FIELDS
    assert (paused.json["paused"], paused.json["pause_note"], paused.json["pending"]) == (
        True,
        "server moves",
        1,
    )
    assert duetime("queue", "list", "--json").json == [paused.json]
    assert "server moves" in duetime("queue", "list").out
    assert (
        duetime("job", "show", job_id, "--json")
        .json["why"]
        .startswith("waits: queue mail has been paused since")
    )
    assert "server moves" in duetime("job", "show", job_id).out
    assert duetime("queue", "resume", "mail").out == "mail is active; no limit\n"
    assert "no worker" in duetime("why", job_id).out


def test_queue_limit_replaces_the_previous_limits(duetime: Duetime) -> None:
    duetime("migrate")
    assert duetime("queue", "limit", "mail", "--max-running", "5", "--rate", "100/1m").out == (
        "mail is active; at most 5 running and at most 100/1m starts\n"
    )
    assert (
        duetime("queue", "pause", "mail").out
        == "mail is paused; 0 still running, 0 waiting; at most 5 running and at most 100/1m starts\n"
    )
    changed = duetime("queue", "limit", "mail", "--rate", "10/s", "--json").json
    assert (changed["max_running"], changed["rate"], changed["paused"]) == (None, "10/1s", True)
    assert duetime("queue", "limit", "mail", "--none", "--json").json["rate"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mail"], "give --max-running, --rate or both, or --none"),
        (["mail", "--none", "--max-running", "1"], "give --max-running, --rate or both, or --none"),
        (["mail", "--max-running", "0"], "0 must be a whole number from 1"),
        (["mail", "--rate", "often"], "'often' is not a rate"),
        (["@mail", "--max-running", "1"], "is reserved"),
    ],
)
def test_invalid_queue_limits_are_refused(duetime: Duetime, arguments: list[str], message: str) -> None:
    duetime("migrate")
    done = duetime("queue", "limit", *arguments)
    assert (done.status, message in done.err) == (2, True), done.err


def test_queue_list_without_queues(duetime: Duetime) -> None:
    duetime("migrate")
    assert duetime("queue", "list").out == "no queues\n"
