"""The write lock of a SQLite file: connections and processes get it in turn, however much one of them
writes."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from duetime.stores.sqlite import file_locks, write_lock
from duetime.stores.sqlite.write_lock import WriteLock, WriteQueue
from tests.stores.test_sqlite_processes import TIMEOUT_SECONDS

pytestmark = pytest.mark.skipif(not file_locks.AVAILABLE, reason="without byte locks there is no queue")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[WriteQueue, WriteQueue]]:
    """As two processes have them: byte locks belong to the open file."""
    one, other = WriteQueue(tmp_path / "d.db"), WriteQueue(tmp_path / "d.db")
    yield one, other
    one.close()
    other.close()


def test_head_of_the_queue_is_held_until_it_is_left(pair: tuple[WriteQueue, WriteQueue]) -> None:
    one, other = pair
    assert one.may_try()
    assert [one.may_try(), other.may_try(), one.at_head, other.at_head] == [True, False, True, False]
    one.leave()
    assert [other.may_try(), one.may_try()] == [True, False]


def test_dead_process_does_not_block_the_queue(pair: tuple[WriteQueue, WriteQueue]) -> None:
    one, other = pair
    assert [one.may_try(), other.may_try()] == [True, False]
    one.close()  # as the kernel does
    assert other.may_try()


def test_stalled_head_is_bypassed_for_a_while(
    pair: tuple[WriteQueue, WriteQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair
    assert [one.may_try(), other.may_try()] == [True, False]
    with monkeypatch.context() as impatient:
        impatient.setattr(write_lock, "MAX_WAIT_AT_HEAD", -1)
        assert [other.may_try(), other.at_head] == [True, False]
    other.leave()
    assert other.may_try(), "the next time, too"
    monkeypatch.setattr(write_lock, "monotonic_micros", lambda: other._bypass_until)
    assert not other.may_try(), "for a while only"


def test_there_is_no_queue_without_a_lock_file(tmp_path: Path) -> None:
    nowhere = WriteQueue(tmp_path / "missing" / "d.db")
    assert nowhere.may_try()
    nowhere.leave()
    nowhere.close()


def test_there_is_no_queue_where_files_cannot_be_locked(
    pair: tuple[WriteQueue, WriteQueue], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(opened: int, byte: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(write_lock, "lock", refuse)
    assert [each.may_try() for each in pair] == [True, True]


def test_busy_neighbour_lets_others_write(tmp_path: Path) -> None:
    """It begins its next transaction immediately after the last; others see the lock free only by chance."""
    path, begun, over = tmp_path / "d.db", threading.Event(), threading.Event()
    transactions = 0

    def write(lock: WriteLock) -> None:
        connection = lock.begin()
        over.wait(0.003)
        connection.execute("COMMIT")

    def neighbour() -> None:
        nonlocal transactions
        with closing(WriteLock(path)) as lock:
            while not over.is_set():
                write(lock)
                transactions += 1
                begun.set()

    busy, passed = threading.Thread(target=neighbour), list[int]()
    busy.start()
    try:
        with closing(WriteLock(path)) as lock:
            assert begun.wait(TIMEOUT_SECONDS)
            for _ in range(30):
                before = transactions
                write(lock)
                passed.append(transactions - before)
    finally:
        over.set()
        busy.join()
    assert sorted(passed)[15] <= 3, passed
