"""Publish targets on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Duetime
from tests.cli.node import Node
from tests.cli.served import served
from tests.servers.brokers import PASSWORD, RedisServer


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


def test_job_is_published_by_a_node_that_shows_no_password(
    redis: RedisServer, duetime: Duetime, folder: Path
) -> None:
    node = Node(folder, "serve", DUETIME_DESTINATIONS=f"orders={redis.url}/0?stream=orders")
    try:
        started = node.until("stop")
        words = ("--destination", "orders", "--message-key", "c1", "--payload", '{"n": 1}')
        done = duetime("job", "submit", *words, "--wait", "--json")
        assert (done.status, done.json["state"]) == (0, "succeeded"), done.err
        assert done.json["target"] == {"type": "publish", "destination": "orders", "key": "c1"}
        shown = duetime("job", "show", done.json["id"])
        assert "orders c1" in shown.out
        listed = duetime("job", "list", "--target", "@publish:orders", "--json")
        assert [job["id"] for job in listed.json] == [done.json["id"]]
        nodes = duetime("node", "list", "--json")
    finally:
        node.process.terminate()
        said = "".join(node.process.communicate(timeout=60))
    for text in (started, said, shown.out, nodes.out):
        assert PASSWORD not in text
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in stored


def test_schedule_can_publish_and_be_edited(duetime: Duetime) -> None:
    when = ("--every", "1h")
    assert duetime("schedule", "add", "nightly", "--destination", "orders", "--report", *when).status == 0
    shown = duetime("schedule", "show", "nightly", "--json").json["target"]
    assert shown == {"type": "publish", "destination": "orders", "report": "required"}
    assert duetime("schedule", "edit", "nightly", "--destination", "audit").status == 0
    shown = duetime("schedule", "show", "nightly", "--json").json["target"]
    assert shown == {"type": "publish", "destination": "audit"}


def test_key_of_a_message_needs_a_destination(duetime: Duetime) -> None:
    done = duetime("job", "submit", "invoice.send", "--message-key", "c1")
    assert (done.status, "message-key: works only with --destination" in done.err) == (2, True), done.err
    done = duetime("job", "submit", "invoice.send", "--destination", "orders")
    assert "--destination" in done.err


def test_unknown_destination_is_refused_on_the_store_and_by_the_service(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from duetime.model import destination

    known = {"orders": "redis://cache.example?stream=orders"}
    with served(f"sqlite:///{folder}/kept.db", destinations=destination.parse(known)) as address:
        done = duetime("--server", address, "job", "submit", "--destination", "ordres")
    assert (done.status, "use orders" in done.err) == (2, True), done.err
    monkeypatch.setenv("DUETIME_DESTINATIONS", f"orders={known['orders']}")
    done = duetime("job", "submit", "--destination", "ordres")
    assert (done.status, "use orders" in done.err) == (2, True), done.err
