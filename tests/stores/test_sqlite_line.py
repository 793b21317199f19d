"""Processes that write to one file do so in turn, whoever writes most."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from duetime.stores.sqlite import line, lockfile
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.entrance import Entrance
from duetime.stores.sqlite.line import Line
from tests.stores.test_sqlite_processes import PATIENCE

pytestmark = pytest.mark.skipif(not lockfile.AVAILABLE, reason="this system has no such locks: whoever comes by is served")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Line, Line]]:
    """As two processes have them: such locks belong to the open file."""
    one, other = Line(tmp_path / "d.db"), Line(tmp_path / "d.db")
    yield one, other
    one.close()
    other.close()


def test_one_is_first_until_it_leaves(pair: tuple[Line, Line]) -> None:
    one, other = pair
    assert one.may_try()
    assert [one.may_try(), other.may_try(), one.heading, other.heading] == [True, False, True, False]
    one.leave()
    assert [other.may_try(), one.may_try()] == [True, False]


def test_who_dies_stands_in_nobodys_way(pair: tuple[Line, Line]) -> None:
    one, other = pair
    assert [one.may_try(), other.may_try()] == [True, False]
    one.close()  # as the kernel does
    assert other.may_try()


def test_who_does_not_move_is_passed(pair: tuple[Line, Line], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = pair
    assert [one.may_try(), other.may_try()] == [True, False]
    with monkeypatch.context() as impatient:
        impatient.setattr(line, "PATIENCE", -1)
        assert [other.may_try(), other.heading] == [True, False]
    other.leave()
    assert other.may_try(), "the next time, too"
    monkeypatch.setattr(line, "monotonic_micros", lambda: other._passing_until)
    assert not other.may_try(), "for a while only"


def test_without_a_file_there_is_no_line(tmp_path: Path) -> None:
    nowhere = Line(tmp_path / "missing" / "d.db")
    assert nowhere.may_try()
    nowhere.leave()
    nowhere.close()


def test_where_nothing_can_be_locked_there_is_none_either(pair: tuple[Line, Line], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(opened: int, byte: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(line, "lock", refuse)
    assert [each.may_try() for each in pair] == [True, True]


def test_a_busy_neighbour_lets_others_in(tmp_path: Path) -> None:
    """It begins its next transaction the moment one has ended; others see the lock free only by chance."""
    path, begun, over = tmp_path / "d.db", threading.Event(), threading.Event()
    transactions = 0

    def opened() -> sqlite3.Connection:
        connection = connect(path)
        connection.execute("PRAGMA busy_timeout = 0")
        return connection

    def write(entrance: Entrance) -> None:
        connection = entrance.begin()
        over.wait(0.003)
        connection.execute("COMMIT")

    def neighbour() -> None:
        nonlocal transactions
        with closing(opened()) as connection, closing(Entrance(path, lambda: connection)) as entrance:
            while not over.is_set():
                write(entrance)
                transactions += 1
                begun.set()

    busy, passed = threading.Thread(target=neighbour), list[int]()
    busy.start()
    try:
        with closing(opened()) as connection, closing(Entrance(path, lambda: connection)) as entrance:
            assert begun.wait(PATIENCE)
            for _ in range(30):
                before = transactions
                write(entrance)
                passed.append(transactions - before)
    finally:
        over.set()
        busy.join()
    assert sorted(passed)[15] <= 3, passed
