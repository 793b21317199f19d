"""The run queue: claimed jobs that wait for a slot. An urgent job passes the others, but only so many in a
row."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from duetime.model.job import Claimed

MAX_PASSING = 64  # urgent jobs in a row before those they pass have a turn


class RunQueue(deque[Claimed]):
    """Jobs in the order taken, except that more urgent ones go to the front. Runners take from the left."""

    def __init__(self) -> None:
        super().__init__()
        self._length = 0  # when it was last looked at: what is missing since has started
        self._ahead = 0  # urgent jobs in front of the first that was passed
        self._passed_by = 0  # urgent jobs that went before that one in all

    def add(self, jobs: Sequence[Claimed]) -> None:
        """`jobs`: most urgent first."""
        if self and jobs and jobs[0].priority > self[-1].priority:
            self._let_pass(jobs)
        else:
            self.extend(jobs)
            self._length += len(jobs)

    def _let_pass(self, jobs: Sequence[Claimed]) -> None:
        self._ahead -= self._length - len(self)
        if self._ahead < 0:  # the first that was passed has had its turn
            self._ahead = self._passed_by = 0
        others = self[-1].priority
        urgent = list(takewhile(lambda job: job.priority > others, jobs))[: MAX_PASSING - self._passed_by]
        if urgent:
            place = self._ahead if urgent[0].priority <= self[0].priority else 0
            self.rotate(-place)
            self.extendleft(reversed(urgent))
            self.rotate(place)
        self._ahead += len(urgent)
        self._passed_by += len(urgent)
        self.extend(jobs[len(urgent) :])
        self._length = len(self)
