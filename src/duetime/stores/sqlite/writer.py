"""The connection that writes, on a thread of its own. All requests that wait go into one transaction: one
sync to disk for all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from uuid import UUID

from duetime.clock import monotonic_micros, wall_micros
from duetime.model.instant import SECOND, Micros
from duetime.model.job import JobDraft
from duetime.stores.sql import jobs
from duetime.stores.sql.session import run_now
from duetime.stores.sqlite import errors
from duetime.stores.sqlite.session import SqliteTransaction
from duetime.stores.sqlite.threads import ThreadRequest
from duetime.stores.sqlite.write_lock import WriteLock

MAX_TRANSACTION = (
    SECOND // 10
)  # after this a transaction takes no more work: other processes want to write, too
MAX_DRAFTS_TOGETHER = 5_000  # of several callers in one batch

Requests = list[ThreadRequest[SqliteTransaction]]


@dataclass(frozen=True, slots=True)
class Addition:
    """A call of add_jobs. Calls that wait at the same time are stored together, as if one caller had
    submitted all their drafts."""

    drafts: Sequence[JobDraft]

    def __call__(self, transaction: SqliteTransaction) -> list[UUID]:
        return run_now(jobs.add(transaction, self.drafts))

    @staticmethod
    def together(transaction: SqliteTransaction, additions: Sequence[Addition]) -> list[list[UUID]]:
        drafts = [draft for addition in additions for draft in addition.drafts]
        ids = iter(run_now(jobs.add(transaction, drafts)))
        return [list(islice(ids, len(addition.drafts))) for addition in additions]


class SqliteWriter:
    """Serves verbs. A verb that fails does not harm the others of the same transaction."""

    def __init__(self, path: Path, committed: Callable[[list[SqliteTransaction]], None]) -> None:
        self._path = path
        self._committed = committed
        self.lock = WriteLock(path)
        self.counted_changes = (
            0  # how often this writer raised the counter of changes; never less than others can see
        )

    def serve(self, requests: Requests) -> None:
        groups = _grouped(requests)
        while groups:
            groups = groups[self._serve_in_one_transaction(groups) :]

    def close(self) -> None:
        self.lock.close()

    def _serve_in_one_transaction(self, groups: list[Requests]) -> int:
        """Returns how many of the groups have their answers or errors now; 0: to be tried again."""
        counted = self.counted_changes
        try:
            asked_at = monotonic_micros()
            connection = self.lock.begin()
            served = self._perform(connection, groups, monotonic_micros() - asked_at)
            self._commit(connection, served)
        except Exception as problem:
            self.counted_changes = counted
            if self._recover(problem):
                return 0
            self._serve_one_by_one(groups, problem)
            return len(groups)
        self._committed(served)
        return len(served)

    def _perform(
        self, connection: sqlite3.Connection, groups: list[Requests], waited: Micros
    ) -> list[SqliteTransaction]:
        now, stop_at = wall_micros(), monotonic_micros() + MAX_TRANSACTION
        served: list[SqliteTransaction] = []
        for group in groups:
            served.append(SqliteTransaction(connection, now, waited))
            _perform_group(served[-1], group)
            if monotonic_micros() > stop_at:
                break
        return served

    def _commit(self, connection: sqlite3.Connection, served: list[SqliteTransaction]) -> None:
        waking = next((transaction for transaction in served if transaction.wakes_others), None)
        if waking is not None:
            self.counted_changes += waking.count_change()
        connection.execute("COMMIT")

    def _serve_one_by_one(self, groups: list[Requests], problem: Exception) -> None:
        """One request is the cause, and the others succeed without it. A savepoint for each would avoid the
        repetition, but would cost more than the work itself: every page that a verb touches is copied for
        it."""
        requests = [request for group in groups for request in group]
        if len(requests) == 1 or errors.is_busy(problem):
            for request in requests:
                request.error = errors.translate(problem, self._path)
        else:
            for request in requests:
                self.serve([request])

    def _recover(self, problem: Exception) -> bool:
        """Whether to try again: the disk was full, and now has room."""
        connection = self.lock.connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.lock.close_connection()
        made_room = errors.is_full(problem) and self.lock.make_room()
        if errors.breaks_connection(problem):
            self.lock.close_connection()
        return made_room


def _grouped(requests: Requests) -> list[Requests]:
    """Additions in as few groups as possible, everything else separately."""
    groups: list[Requests] = []
    together: Requests = []
    room = MAX_DRAFTS_TOGETHER
    for request in requests:
        if not isinstance(request.work, Addition):
            groups.append([request])
            continue
        room -= len(request.work.drafts)
        if room < 0:
            groups.append(together)
            together, room = [], MAX_DRAFTS_TOGETHER
        together.append(request)
    return [group for group in (together, *groups) if group]


def _perform_group(transaction: SqliteTransaction, group: Requests) -> None:
    if len(group) == 1:
        group[0].perform(transaction)
        return
    additions = [request.work for request in group if isinstance(request.work, Addition)]
    answers = Addition.together(transaction, additions)
    for request, answer in zip(group, answers, strict=True):
        request.answer = answer
