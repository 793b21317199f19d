"""`duetime task`, and what `duetime job submit` says of names that no worker knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Duetime
from tests.cli.node import Node

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


def test_there_are_none(duetime: Duetime) -> None:
    duetime("migrate")
    assert duetime("task", "list").out == "no tasks: `duetime --app module:app serve` runs yours\n"
    assert duetime("task", "list", "--json").json == []


def test_those_of_an_app(duetime: Duetime, shop: Path) -> None:
    listed = duetime("--app", "shop_of_tasks:app", "task", "list")
    assert (listed.status, listed.out.split("\n")[1].split(maxsplit=2)) == (0, ["invoice.send", "billing", "Send an invoice."]), listed.err


def test_those_of_a_worker_that_lives(duetime: Duetime, shop: Path) -> None:
    """Its name is offered after TAB, and one that was mistyped is told when its job is submitted."""
    duetime("migrate")
    early = duetime("job", "submit", "invoice.send", "--delay", "1h")
    assert early.err == "no worker runs a task 'invoice.send' at present: the job waits until one does\n"
    node = Node(shop, "--app", "shop_of_tasks:app", "serve", PYTHONPATH=str(shop))
    try:
        node.until("stop")
        while (found := duetime("task", "list", "--json").json) == []:  # it says so in its own time
            pass
        assert [one["name"] for one in found] == ["invoice.send"]
        wrong = duetime("job", "submit", "invoice.sent", "--delay", "1h")
        assert (wrong.status, len(wrong.out.split())) == (0, 1)
        assert wrong.err == (
            "no worker runs a task 'invoice.sent' at present: the job waits until one does; did you mean 'invoice.send'?\n"
        )
        assert duetime("job", "submit", "invoice.send", "--wait").err == ""
    finally:
        node.kill()


@pytest.mark.parametrize("words", [("https://agent.example/run",), ("send", "--json")])
def test_nothing_is_said_where_it_has_no_meaning_or_a_program_reads(duetime: Duetime, words: tuple[str, ...]) -> None:
    assert duetime("job", "submit", *words, "--delay", "1h").err == ""
