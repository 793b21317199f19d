"""`make site`: every page, a search index, nothing from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.docs_site import DOCS, build, navigation

OUTSIDE = re.compile(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(https?:)?//""")


def test_navigation_is_the_index() -> None:
    sections = {
        title: entries
        for one in navigation((DOCS / "index.md").read_text("utf-8"))
        for title, entries in one.items()
    }
    assert sections["Duetime"] == "index.md"
    assert {"Quick start": "quickstart.md"} in sections["Start here"]  # type: ignore[operator]
    assert {"Settings": "reference/settings.md"} in sections["Reference"]  # type: ignore[operator]


@pytest.mark.slow
def test_site_has_every_page_and_a_search_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """The build is strict: a link to a page that is not there fails it."""
    site = build(tmp_path / "documentation")
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    made = {path.relative_to(site) for path in site.rglob("*.html")}
    assert pages <= made
    found = json.loads((site / "search.json").read_text("utf-8"))["items"]
    assert {str(page) for page in pages} <= {
        one["location"].partition("#")[0] or "index.html" for one in found
    }
    for page in made:
        assert not OUTSIDE.search((site / page).read_text("utf-8")), page
