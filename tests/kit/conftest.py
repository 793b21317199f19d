"""An app whose store is a server that does not exist: the kit must never touch it."""

from __future__ import annotations

import pytest

import duetime as dt

NOWHERE = "postgresql://nobody@nowhere.invalid/none"


@pytest.fixture
def app() -> dt.App:
    return dt.App(NOWHERE)
