"""Output on a terminal: no control characters, nothing cut off, colours only on a terminal."""

from __future__ import annotations

import io
import json
import logging
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from duetime.cli.format import (
    local,
    make_console,
    record_fields,
    relative,
    show_record,
    show_table,
    visible,
    visible_lines,
)
from duetime.cli.logs import JsonLines, TextLines

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
ID = "01935c2e-7b3a-7000-8000-000000000000"


@given(st.text())
def test_escaped_text_is_printable(text: str) -> None:
    assert visible(text).isprintable()
    assert all(line.isprintable() for line in visible_lines(text).split("\n"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00e4\u4e2d", "plain \u00e4\u4e2d"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb", "a\\nb"),
        ("\u202egpj", "\\u202egpj"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_control_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def printed(width: int, **more: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False, **more)  # type: ignore[arg-type]
    show_table(
        ("ID", "STATE", "TASK"),
        [(ID, "dead", "a-task-with-a-long-name[red]"), (ID, "running", "b")],
        "none",
        console,
    )
    return out.getvalue()


def test_wide_terminal_gets_a_table() -> None:
    assert [line.split() for line in printed(100).splitlines()] == [
        ["ID", "STATE", "TASK"], [ID, "dead", "a-task-with-a-long-name[red]"], [ID, "running", "b"],
    ]  # fmt: skip


@pytest.mark.parametrize("width", [20, 40, 60])
def test_narrow_terminal_gets_records_and_full_ids(width: int) -> None:
    shown = printed(width)
    assert shown.count(ID) == 2
    assert "a-task-with-a-long-name[red]" in shown
    assert f"ID     {ID}" in shown


@pytest.mark.parametrize("width", [60, 80, 100, 120, 140])
def test_values_with_spaces_are_not_cut_off(width: int) -> None:
    out = io.StringIO()
    row = (
        ID,
        "dead",
        "2030-01-01 09:00:00+00:00 (5 s ago)",
        "ValueError: there is no customer with this number",
    )
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    show_table(("ID", "STATE", "DIED", "REASON"), [row], "none", console)
    assert [value for value in row if value not in out.getvalue()] == []


def test_colours_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31m" in printed(100, force_terminal=True)
    assert "\x1b" not in printed(100)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in printed(100, force_terminal=True)


def test_output_into_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert make_console().width > 10_000


def test_multi_line_values_are_indented() -> None:
    out = io.StringIO()
    show_record([("error", "one\n  two\x07"), ("id", ID)], Console(file=out, width=200))
    assert out.getvalue() == f"error  one\n         two\\x07\nid     {ID}\n"


@pytest.mark.parametrize(
    ("distance", "shown"),
    [
        (timedelta(), "now"),
        (timedelta(milliseconds=-900), "now"),
        (timedelta(seconds=59), "in 59 s"),
        (timedelta(minutes=5, seconds=3), "in 5 min"),
        (timedelta(hours=-30), "1 d ago"),
        (timedelta(hours=-3, minutes=-59), "3 h ago"),
    ],
)
def test_relative_time_uses_the_largest_unit(distance: timedelta, shown: str) -> None:
    assert relative(NOW + distance, NOW) == shown


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        ({"done": 3, "total": 10, "note": "pages"}, "3 of 10 (30 %): pages"),
        ({"done": 3, "total": None, "note": None}, "3"),
        ({"done": 0.5, "total": 0}, "0.5 of 0"),
        ({"other": 1}, '{"other": 1}'),
    ],
)
def test_progress_is_shown_as_text(progress: dict[str, object], shown: str) -> None:
    assert dict(record_fields({"progress": progress}))["progress"] == shown


def test_local_time_has_its_utc_offset() -> None:
    assert local(NOW, timezone(timedelta(hours=5, minutes=30))) == "2030-01-01 17:30:00+05:30"


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("duetime.task", logging.WARNING, "", 0, message, (), None)
    vars(made).update(created=NOW.timestamp(), **fields)
    return made


def test_log_records_are_single_lines() -> None:
    text = TextLines().format(record("job\nfailed \x1b[1m", job_id="j", attempt=2))
    assert text.endswith(" WARNING duetime.task: job\\nfailed \\x1b[1m job_id=j attempt=2")
    line = JsonLines().format(record("job\nfailed \x9b", job_id="j"))
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line) == {
        "at": "2030-01-01T12:00:00.000Z", "level": "warning", "logger": "duetime.task",
        "message": "job\nfailed \x9b", "job_id": "j",
    }  # fmt: skip


def test_log_records_have_tracebacks() -> None:
    try:
        raise ValueError("\x1bbad")
    except ValueError as problem:
        failed = record("it broke", exc_info=(type(problem), problem, problem.__traceback__))
    assert TextLines().format(failed).splitlines()[-1] == "ValueError: \\x1bbad"
    assert json.loads(JsonLines().format(failed))["error"].endswith("ValueError: \x1bbad")
