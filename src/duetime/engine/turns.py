"""Whose turn it is among claimed jobs that wait for a slot: an urgent one passes the others, but they are not passed for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from duetime.model.job import Claimed

MOST_PASSED = 64  # urgent jobs in a row before those they pass have a turn


class Turns:
    """Keeps jobs in the order taken, except that more urgent ones go to the front. Runners take from the left."""

    def __init__(self) -> None:
        self._length = 0  # with everybody who was here when it was looked at last: who is missing now has started
        self._ahead = 0  # urgent jobs in front of the first that was passed
        self._passed_by = 0  # urgent jobs that went before that one in all

    def add(self, ready: deque[Claimed], jobs: Sequence[Claimed]) -> None:
        """`jobs`: most urgent first."""
        if ready and jobs and jobs[0].priority > ready[-1].priority:
            self._let_pass(ready, jobs)
        else:
            ready.extend(jobs)
            self._length += len(jobs)

    def _let_pass(self, ready: deque[Claimed], jobs: Sequence[Claimed]) -> None:
        self._ahead -= self._length - len(ready)
        if self._ahead < 0:  # the first that was passed has had its turn
            self._ahead = self._passed_by = 0
        others = ready[-1].priority
        urgent = list(takewhile(lambda job: job.priority > others, jobs))[: MOST_PASSED - self._passed_by]
        if urgent:
            place = self._ahead if urgent[0].priority <= ready[0].priority else 0
            ready.rotate(-place)
            ready.extendleft(reversed(urgent))
            ready.rotate(place)
        self._ahead += len(urgent)
        self._passed_by += len(urgent)
        ready.extend(jobs[len(urgent) :])
        self._length = len(ready)
