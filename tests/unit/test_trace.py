"""Tracebacks end with the line that says what went wrong: lists and groups show that one only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from duetime.model.job import error_line, error_text, trace


def noted() -> Exception:
    problem = ValueError("no such customer")
    problem.add_note("while the report was made")
    return problem


def unreadable() -> Exception:
    try:
        compile("def f(:", "report.py", "exec")
    except SyntaxError as problem:
        return problem
    raise AssertionError


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: ValueError("no such customer"), "ValueError: no such customer"),
        (
            lambda: ValueError("no such customer\n[SQL: SELECT 1]\n(Background: https://example.org)"),
            "ValueError: no such customer",
        ),
        (lambda: ValueError("no such customer  \n"), "ValueError: no such customer"),
        (ValueError, "ValueError"),
        (noted, "ValueError: no such customer"),
        (
            lambda: ExceptionGroup("two went wrong", [ValueError("a"), KeyError("b")]),
            "ExceptionGroup: two went wrong (2 sub-exceptions)",
        ),
        (unreadable, "SyntaxError: invalid syntax"),
    ],
)
def test_the_last_line_says_what_went_wrong(make: Callable[[], Exception], line: str) -> None:
    problem = make()
    text = trace(problem, problem.__traceback__)
    assert error_line(text) == line


def test_nothing_is_said_twice_where_one_line_is_enough() -> None:
    assert trace(ValueError("no"), None) == "ValueError: no"


def test_the_whole_message_is_kept() -> None:
    assert trace(ValueError("first\nsecond"), None) == "ValueError: first\nsecond\nValueError: first"


def test_a_huge_error_still_ends_with_its_class() -> None:
    problem = ValueError("x" * 100_000)
    assert error_line(error_text(trace(problem, None))).startswith("ValueError: xxx")
