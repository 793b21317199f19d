"""Everything in the store as rows, for a copy: all tables can be listed, and a row put into each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

from duetime.errors import Conflict
from duetime.model.instant import Micros
from duetime.model.stored import JobRow, RowKey, RowKind, StoredRow, row_key
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.nodes import MemoryNodes
from duetime.stores.memory.records import MemoryRecords
from duetime.stores.memory.row import row_of, stored_of
from duetime.stores.memory.schedules import MemorySchedules


class _Table(NamedTuple):
    every: Callable[[], Iterable[Any]]
    restore: Callable[[Any], None]
    remove: Callable[..., None]  # takes a key


class MemoryRows:
    def __init__(
        self,
        nodes: MemoryNodes,
        jobs: MemoryJobs,
        schedules: MemorySchedules,
        records: MemoryRecords,
        now: Callable[[], Micros],
    ) -> None:
        self._jobs = jobs
        limits = jobs.limits
        self._tables = {
            RowKind.NODES: _Table(lambda: nodes.known(False), nodes.restore, nodes.remove),
            RowKind.QUEUES: _Table(limits.queue_rows, limits.restore_queue, limits.remove_queue),
            RowKind.LIMIT_KEYS: _Table(limits.key_rows, limits.restore_key, limits.remove_key),
            RowKind.SCHEDULES: _Table(schedules.every, schedules.restore, schedules.remove),
            RowKind.VERSIONS: _Table(
                schedules.every_version, schedules.restore_version, schedules.remove_version
            ),
            RowKind.JOBS: _Table(self._every_job, self._restore_job, self._forget_job),
            RowKind.RECORDS: _Table(lambda: records.every(now()), records.restore, records.remove),
        }

    def read(self, kind: RowKind, after: RowKey | None, limit: int) -> list[StoredRow]:
        return nsmallest(limit, self._between(kind, after, None), key=row_key)

    def write(
        self, kind: RowKind, rows: Sequence[StoredRow], after: RowKey | None, until: RowKey | None
    ) -> None:
        table, replaced = self._tables[kind], [row_key(row) for row in self._between(kind, after, until)]
        self._refuse_taken_keys(rows, {key[0] for key in replaced})
        for key in replaced:
            table.remove(*key)
        for row in rows:
            table.restore(row)

    def _between(self, kind: RowKind, after: RowKey | None, until: RowKey | None) -> list[StoredRow]:
        return [
            row
            for row in self._tables[kind].every()
            if (after is None or row_key(row) > after) and (until is None or row_key(row) <= until)
        ]

    def _refuse_taken_keys(self, rows: Sequence[StoredRow], replaced: set[Any]) -> None:
        for row in rows:
            if isinstance(row, JobRow) and not row.state.final:
                holder = self._jobs.holder(row.tenant, row.unique_key)
                if holder is not None and holder not in replaced:
                    raise Conflict(f"job {holder} holds the unique key {row.unique_key!r}")

    def _every_job(self) -> list[JobRow]:
        jobs = self._jobs
        return [
            stored_of(row, jobs.attempts.get(row.draft.id, ()), jobs.markers.get(row.draft.id, {}))
            for row in jobs.every()
        ]

    def _restore_job(self, stored: JobRow) -> None:
        self._jobs.restore(row_of(stored))
        if stored.attempts:
            self._jobs.attempts[stored.id] = list(stored.attempts)
        if stored.markers:
            self._jobs.markers[stored.id] = dict(stored.markers)

    def _forget_job(self, job_id: Any) -> None:
        self._jobs.forget(self._jobs.live.get(job_id) or self._jobs.past[job_id])
