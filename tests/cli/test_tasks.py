"""`duetime task`, and the hint of `duetime job submit` about unknown tasks."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Duetime
from tests.cli.node import Node, python_path

SHOP = '''
import duetime

app = duetime.App("sqlite:///duetime.db")


@app.task("invoice.send", queue="billing")
async def send(customer: str = "") -> None:
    """Send an invoice.

    To the customer.
    """
'''


@pytest.fixture
def shop(folder: Path) -> Path:
    (folder / "shop_of_tasks.py").write_text(SHOP)
    return folder


def test_task_list_without_tasks(duetime: Duetime) -> None:
    duetime("migrate")
    assert duetime("task", "list").out == "no tasks: run yours with `duetime --app module:app serve`\n"
    assert duetime("task", "list", "--json").json == []


def test_task_list_shows_tasks_of_an_app(duetime: Duetime, shop: Path) -> None:
    listed = duetime("--app", "shop_of_tasks:app", "task", "list")
    assert (listed.status, listed.out.split("\n")[1].split(maxsplit=2)) == (
        0,
        ["invoice.send", "billing", "Send an invoice."],
    ), listed.err


def test_task_list_shows_tasks_of_a_running_worker(duetime: Duetime, shop: Path) -> None:
    """Completion offers its name, and submitting a mistyped name suggests it."""
    duetime("migrate")
    early = duetime("job", "submit", "invoice.send", "--delay", "1h")
    so_far = "no node has had the task {!r} so far{}: its jobs wait until one has\n"
    assert early.err == so_far.format("invoice.send", "")
    node = Node(shop, "--app", "shop_of_tasks:app", "serve", PYTHONPATH=python_path(shop))
    try:
        node.until("stop")
        while (
            found := duetime("task", "list", "--json").json
        ) == []:  # the worker publishes its tasks after its start
            pass
        assert [one["name"] for one in found] == ["invoice.send"]
        wrong = duetime("job", "submit", "invoice.sent", "--delay", "1h")
        assert (wrong.status, len(wrong.out.split())) == (0, 1)
        assert wrong.err == so_far.format("invoice.sent", " (did you mean 'invoice.send'?)")
        assert duetime("job", "submit", "invoice.send", "--wait").err == ""
        added = duetime("schedule", "add", "daily", "invoice.sent", "--every", "1d")
        assert "did you mean 'invoice.send'?" in " ".join(added.out.split())
    finally:
        node.end(signal.SIGTERM)
    later = duetime("job", "submit", "invoice.send", "--delay", "1h")
    assert later.err == "no running worker knows the task 'invoice.send': the job waits until one does\n"


@pytest.mark.parametrize("words", [("https://agent.example/run",), ("send", "--json")])
def test_unknown_task_is_not_reported_for_urls_and_json(duetime: Duetime, words: tuple[str, ...]) -> None:
    assert duetime("job", "submit", *words, "--delay", "1h").err == ""
