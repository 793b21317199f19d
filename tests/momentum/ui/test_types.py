"""The types of the page match the API."""

from __future__ import annotations

from tools.ui_types import MOMENTUM_FILE, momentum_document, momentum_text_of


def test_types_of_the_page_match_the_api() -> None:
    assert MOMENTUM_FILE.read_text() == momentum_text_of(momentum_document()), "run `make ui`"
