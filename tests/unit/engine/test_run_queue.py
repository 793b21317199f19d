"""Among claimed jobs that wait for a slot: an urgent one goes first, and no job is passed without limit."""

from __future__ import annotations

from collections import deque
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from duetime.engine.run.capacity import MAX_PASSING, RunQueue
from duetime.model.job import Claimed


def job(number: int, priority: int) -> Claimed:
    return Claimed(
        UUID(int=number),
        1,
        "task",
        b"{}",
        0,
        "default",
        priority,
        0,
        0,
        0,
        False,
        None,
        None,
        None,
        None,
        None,
        None,
        "default",
    )


def numbers(ready: deque[Claimed]) -> list[int]:
    return [waiting.id.int for waiting in ready]


def test_equals_go_in_the_order_they_came() -> None:
    ready = RunQueue()
    ready.add([job(1, 5), job(2, 5)])
    ready.add([job(3, 5)])
    ready.add([job(4, 3)])
    assert numbers(ready) == [1, 2, 3, 4]


def test_an_urgent_one_passes_a_backlog() -> None:
    ready = RunQueue()
    ready.add([job(number, 0) for number in range(100)])
    ready.add([job(100, 9), job(101, 9), job(102, 1), job(103, 0)])
    assert numbers(ready)[:4] == [100, 101, 102, 0]
    assert numbers(ready)[-1] == 103


def test_urgent_ones_keep_their_order_among_themselves() -> None:
    ready = RunQueue()
    ready.add([job(1, 0), job(2, 0)])
    for number, priority in [(3, 9), (4, 9), (5, 5), (6, 9)]:
        ready.add([job(number, priority)])
    assert numbers(ready)[:2] == [3, 4]
    assert numbers(ready)[-2:] == [1, 2]


@given(st.integers(1, 10), st.integers(1, 10), st.integers(0, 5))
def test_a_job_is_passed_only_so_often(batch: int, slots: int, others: int) -> None:
    """Slots get free, urgent jobs come, again and again: the one that is not urgent still has its turn."""
    ready, numbers, started = RunQueue(), iter(range(1, 1_000_000)), 0
    ready.add([job(0, 0), *(job(next(numbers), 0) for _ in range(others))])
    while any(waiting.id.int == 0 for waiting in ready):
        ready.add([job(next(numbers), 9) for _ in range(batch)])
        for _ in range(min(slots, len(ready))):
            ready.popleft()
            started += 1
        assert started <= 2 * MAX_PASSING + slots


@given(st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=20), st.integers(0, 20)), max_size=40))
def test_no_job_is_lost_or_doubled(steps: list[tuple[list[int], int]]) -> None:
    ready, numbers = RunQueue(), iter(range(1_000_000))
    added, started = 0, list[int]()
    for priorities, starts in steps:
        jobs = [job(next(numbers), priority) for priority in sorted(priorities, reverse=True)]
        added += len(jobs)
        ready.add(jobs)
        started += [ready.popleft().id.int for _ in range(min(starts, len(ready)))]
    assert sorted(started + [waiting.id.int for waiting in ready]) == list(range(added))
