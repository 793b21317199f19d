"""Values in the text of statements for MariaDB."""

from __future__ import annotations

import pytest

from duetime.model.job import State

pytest.importorskip("asyncmy")

from duetime.stores.mysql.literals import (
    FOREIGN_LITERALS,
    LITERALS,
    MAX_ROWS,
    MAX_TEXT,
    Values,
    pieces,
    rendered,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "1"),
        (-17, "-17"),
        ("it's", "'it''s'"),
        ("a\\' OR 1=1 -- ", "(_utf8mb4 x'615c27204f5220313d31202d2d20' COLLATE utf8mb4_bin)"),
        (State.DEAD, "'dead'"),
        (b"\x00'\\", "x'00275c'"),
        (bytearray(b""), "x''"),
        (Values(["a", 1]), "('a', 1)"),
        (Values(()), "(NULL)"),
    ],
)
def test_value_becomes_text_that_means_only_it(value: object, text: str) -> None:
    assert LITERALS[type(value)](value) == text


def test_text_for_a_foreign_connection_does_not_depend_on_its_character_set() -> None:
    assert FOREIGN_LITERALS[str]("ü") == "(_utf8mb4 x'c3bc' COLLATE utf8mb4_bin)"


def test_placeholder_in_a_value_is_left_alone() -> None:
    assert rendered("SELECT ?1, ?2", ["?2 :x", 5]) == "SELECT '?2 :x', 5"
    assert rendered("SELECT :x, :y", {"x": ":y", "y": "?1"}) == "SELECT ':y', '?1'"


def test_many_rows_become_several_statements() -> None:
    texts = [
        *pieces(
            "VALUES /* rows */ (?, ?) IN /* firsts */ ?1",
            [(n, "a") for n in range(MAX_ROWS + 1)],
            "ROW",
            LITERALS,
            (7,),
        )
    ]
    assert len(texts) == 2
    assert texts[1] == f"VALUES ROW({MAX_ROWS}, 'a') IN ({MAX_ROWS}) 7"


def test_long_rows_become_several_statements() -> None:
    texts = [*pieces("VALUES /* rows */ (?)", [("a" * (MAX_TEXT // 2),) for _ in range(3)], "")]
    assert [text.count("a" * (MAX_TEXT // 2)) for text in texts] == [1, 1, 1]
    assert [*pieces("VALUES /* rows */ (?)", [("a" * MAX_TEXT,), (1,)], "")][1] == "VALUES (1)"
