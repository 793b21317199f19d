"""How a filter writes a name and its value in one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.model.search import format_pair, parse_pair


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("team:billing", ("team", "billing")),
        ("team:web:shop", ("team", "web:shop")),
        ("team:", ("team", "")),
        (r"env\:team:web:shop", ("env:team", "web:shop")),
        (r"drive\\:c", ("drive\\", "c")),
        (r"a\b:c\:d", (r"a\b", r"c\:d")),
        ("team", None),
        (":billing", None),
        (r"team\:billing", None),
    ],
)
def test_first_colon_without_a_backslash_ends_the_name(text: str, pair: tuple[str, str] | None) -> None:
    assert parse_pair(text) == pair


@given(st.text(min_size=1), st.text())
def test_every_written_pair_is_read_back(name: str, value: str) -> None:
    assert parse_pair(format_pair(name, value)) == (name, value)
