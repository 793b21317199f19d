"""An app with a store on a server that does not exist: the kit must never connect to it."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest

import duetime as dt

UNREACHABLE = "postgresql://user@host.invalid/none"


@pytest.fixture
def app() -> dt.App:
    return dt.App(UNREACHABLE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop per test: on the loop that other tests share there may be a browser, and its input would get
    real time."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:  # of all folders
        if str(item.path).startswith(here) and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="function"), append=False)
