"""How SQL files are read: names, comments, and columns that go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from duetime.stores.statements import load


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty package with a folder `sql`."""
    name = f"package_{tmp_path.name}"
    (tmp_path / name / "sql").mkdir(parents=True)
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path / name / "sql")
    return name


def test_statements_by_their_names(package: str) -> None:
    Path("one.sql").write_text(
        "-- About all of them.\n\n-- name: first\n-- What it does.\nSELECT 1;\n\n-- name: second\nSELECT 2\n"
    )
    assert load(package, "sql") == {"first": "SELECT 1", "second": "SELECT 2"}


def test_columns_stand_where_they_are_named(package: str) -> None:
    Path("a.sql").write_text(
        "-- name: copy\nINSERT INTO kept ({all}) SELECT {j.all}, {few} FROM jobs j WHERE x = '{}'\n"
    )
    Path("columns.sql").write_text(
        "-- columns: few\n-- What is short.\nid, name\n\n-- columns: all\n{few},\nstate\n"
    )
    assert load(package, "sql") == {
        "copy": "INSERT INTO kept (id, name, state) "
        "SELECT j.id, j.name, j.state, id, name FROM jobs j WHERE x = '{}'"
    }


def test_parts_stand_where_they_are_named(package: str) -> None:
    Path("a.sql").write_text(
        "-- part: due\n-- Of the lane l.\nj.queue = l.queue\nAND j.due_at < $1\n\n"
        "-- name: next\nSELECT id FROM jobs j WHERE {due} AND j.target = $2\n"
    )
    assert load(package, "sql") == {
        "next": "SELECT id FROM jobs j WHERE j.queue = l.queue AND j.due_at < $1 AND j.target = $2"
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT 1", "text before the first"),
        ("-- name: one\nSELECT 1;\n-- name: one\nSELECT 2", "'one' is defined twice"),
        ("-- columns: one\nid\n-- columns: one\nid", "'one' is defined twice"),
        ("-- name: one\n-- Nothing follows.\n", "'one' is empty"),
        ("-- name: one\nSELECT {j.no_such} FROM jobs j", "no columns are called 'no_such'"),
    ],
)
def test_files_that_make_no_sense(package: str, text: str, complaint: str) -> None:
    Path("bad.sql").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        load(package, "sql")
