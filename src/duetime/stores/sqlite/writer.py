"""The one connection that writes. Whatever waits when it becomes free goes into one transaction: one sync to disk for all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Event

from duetime.clock import monotonic_micros, wall_micros
from duetime.model.instant import SECOND, Micros
from duetime.stores.sqlite import faults
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.jobs import Addition
from duetime.stores.sqlite.session import Transaction
from duetime.stores.sqlite.thread import Request
from duetime.stores.sqlite.turnstile import Turnstile, turnstile_of

BUSY_LIMIT = 8 * SECOND  # longer than a task may hold the lock
# SQLite's own waiting grows to 100 ms between looks, which a busy neighbour easily outlasts; at this pace nobody starves.
BUSY_PAUSE_SECONDS = 0.001
LONGEST_TURN = SECOND // 10  # after this a transaction takes no more work: others want to write, too
MOST_TOGETHER = 5_000  # drafts of several callers in one batch

Requests = list[Request[Transaction]]


class Writer:
    """Serves verbs. One that fails harms none of those in the same transaction."""

    def __init__(self, path: Path, committed: Callable[[list[Transaction]], None]) -> None:
        self._path = path
        self._turnstile = turnstile_of(path)
        self._committed = committed
        self._connection: sqlite3.Connection | None = None
        self._pause = Event()
        self.pulses = 0  # how often this writer raised the pulse, counted no later than anybody can see it

    def serve(self, requests: Requests) -> None:
        groups = _grouped(requests)
        while groups:
            groups = groups[self._turn(groups) :]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _turn(self, groups: list[Requests]) -> int:
        """One transaction; answers how many groups have their outcome now."""
        pulses = self.pulses
        try:
            asked_at = monotonic_micros()
            connection = begin_immediate(self._open, self._pause, self._turnstile)
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
            self.close()
        if faults.breaks_connection(problem):
            self.close()


def begin_immediate(opened: Callable[[], sqlite3.Connection], pause: Event, turnstile: Turnstile) -> sqlite3.Connection:
    """Wait for the write lock, in sight of those of this process who could let us through."""
    give_up_at, waiting = monotonic_micros() + BUSY_LIMIT, False
    try:
        while True:
            try:
                connection = opened()
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as problem:
                if not faults.is_busy(problem) or monotonic_micros() > give_up_at:
                    raise
            else:
                return connection
            if not waiting:
                turnstile.enter()
                waiting = True
            pause.wait(BUSY_PAUSE_SECONDS)
    finally:
        if waiting:
            turnstile.leave()


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
