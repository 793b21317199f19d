"""The one connection that writes. Whatever waits when it becomes free goes into one transaction: one sync to disk for all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from duetime.clock import monotonic_micros, wall_micros
from duetime.model.instant import SECOND, Micros
from duetime.stores.sqlite import faults
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.entrance import Entrance
from duetime.stores.sqlite.jobs import Addition
from duetime.stores.sqlite.session import Transaction
from duetime.stores.sqlite.thread import Request

LONGEST_TURN = SECOND // 10  # after this a transaction takes no more work: others want to write, too
MOST_TOGETHER = 5_000  # drafts of several callers in one batch

Requests = list[Request[Transaction]]


class Writer:
    """Serves verbs. One that fails harms none of those in the same transaction."""

    def __init__(self, path: Path, committed: Callable[[list[Transaction]], None]) -> None:
        self._path = path
        self._entrance = Entrance(path, self._open)
        self._committed = committed
        self._connection: sqlite3.Connection | None = None
        self.pulses = 0  # how often this writer raised the pulse, counted no later than anybody can see it

    def serve(self, requests: Requests) -> None:
        groups = _grouped(requests)
        while groups:
            groups = groups[self._turn(groups) :]

    def close(self) -> None:
        self._entrance.close()
        self._forget_connection()

    def _forget_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _turn(self, groups: list[Requests]) -> int:
        """One transaction; answers how many groups have their outcome now."""
        pulses = self.pulses
        try:
            asked_at = monotonic_micros()
            connection = self._entrance.begin()
            served = self._perform(connection, groups, monotonic_micros() - asked_at)
            self._commit(connection, served)
        except Exception as problem:
            self.pulses = pulses
            self._recover(problem)
            self._one_by_one(groups, problem)
            return len(groups)
        self._committed(served)
        return len(served)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self._path, busy_milliseconds=0)
        return self._connection

    def _perform(self, connection: sqlite3.Connection, groups: list[Requests], waited: Micros) -> list[Transaction]:
        now, stop_at = wall_micros(), monotonic_micros() + LONGEST_TURN
        served: list[Transaction] = []
        for group in groups:
            served.append(Transaction(connection, now, waited))
            _work(served[-1], group)
            if monotonic_micros() > stop_at:
                break
        return served

    def _commit(self, connection: sqlite3.Connection, served: list[Transaction]) -> None:
        if any(transaction.pulse for transaction in served):
            self.pulses += served[0].change("raise_pulse")
        connection.execute("COMMIT")

    def _one_by_one(self, groups: list[Requests], problem: Exception) -> None:
        """One of them is the cause, and the others succeed without it. A savepoint for each would spare them the repetition, but
        costs more than the work itself: every page that a verb touches is copied for it."""
        requests = [request for group in groups for request in group]
        if len(requests) == 1 or faults.is_busy(problem):
            for request in requests:
                request.error = faults.translate(problem, self._path)
        else:
            for request in requests:
                self._turn([[request]])

    def _recover(self, problem: Exception) -> None:
        if self._connection is None:
            return
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._forget_connection()
        if faults.breaks_connection(problem):
            self._forget_connection()


def _grouped(requests: Requests) -> list[Requests]:
    """Additions in as few groups as may be, everything else by itself."""
    groups: list[Requests] = []
    together: Requests = []
    room = MOST_TOGETHER
    for request in requests:
        if not isinstance(request.work, Addition):
            groups.append([request])
            continue
        room -= len(request.work.drafts)
        if room < 0:
            groups.append(together)
            together, room = [], MOST_TOGETHER
        together.append(request)
    return [group for group in (together, *groups) if group]


def _work(transaction: Transaction, group: Requests) -> None:
    if len(group) == 1:
        group[0].answer = group[0].work(transaction)
        return
    answers = Addition.together(transaction, [request.work for request in group if isinstance(request.work, Addition)])
    for request, answer in zip(group, answers, strict=True):
        request.answer = answer
