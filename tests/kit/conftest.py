"""An app whose store is a server that does not exist: the kit must never touch it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import duetime as dt

NOWHERE = "postgresql://nobody@nowhere.invalid/none"


@pytest.fixture
def app() -> dt.App:
    return dt.App(NOWHERE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each on a loop of its own: on the one that all tests share there may be a browser, and what it might say would be waited for."""
    for item in items:
        if Path(__file__).parent in item.path.parents and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="function"), append=False)
