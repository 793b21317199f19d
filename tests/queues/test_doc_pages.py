"""The page of each broker: its commands name an extra that exists, and an address that its driver takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from duetime.queues import EXTRAS, queue_for

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "brokers").glob("*.md"))


def test_every_driver_has_a_page() -> None:
    assert {page.stem for page in PAGES} == set(EXTRAS.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_fit_the_driver(page: Path) -> None:
    text = page.read_text("utf-8")
    [extras] = re.findall(r"pip install 'duetime\[([a-z,]+)\]'", text)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {page.stem} < set(extras.split(",")) <= known.keys()
    [url] = re.findall(r"DUETIME_QUEUE=(\S+)", text)
    assert EXTRAS[url.partition("://")[0]] == page.stem
    queue_for(url)
