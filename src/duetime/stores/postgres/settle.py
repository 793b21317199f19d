"""Settlements, thousands at a time, and the successors that get the permits of settled jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any
from uuid import UUID

from duetime.clock import monotonic_micros
from duetime.model.hint import DoneHint
from duetime.model.instant import Micros
from duetime.model.job import Claimed, Ending
from duetime.model.settle import Settlement
from duetime.store import Settled, Successors
from duetime.stores.postgres.claim import PERMITS_EXPECTED_FOR, hints_of
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.notifier import Notifier
from duetime.stores.postgres.rows import claimed_of

_id, _kind = itemgetter(0), itemgetter(1, 6, 10)  # of a settlement: attempt, ending and error
MIN_SUCCESSES = 200  # fewer are not worth a statement of their own beside other endings
NO_SUCCESSORS: tuple[Any, ...] = (None, 0, (), ())


class PostgresSettlements:
    def __init__(self, connections: PostgresConnections, notifier: Notifier) -> None:
        self._connections = connections
        self._notifier = notifier
        self._permits_until: Micros = (
            0  # a recent batch had jobs with permits: until then expect more of them
        )

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        if not settlements:  # prepares the statement, so that the first settlements need not wait for it
            await self._connections.settle.count(SQL["settle_successes"], (), 0, (), (), (), None)
            return Settled([], [])
        batch = _each_attempt_once(settlements)
        rest = batch if monotonic_micros() < self._permits_until else await self._write_successes(batch)
        if not rest and len(batch) == len(settlements):
            return Settled([], [])
        unwritten, started = await self._write(rest, successors) if rest else ([], [])
        if unwritten:
            # A row that was touched (by a cancellation, say) between the statement's snapshot and its lock
            # may be missed once.
            unwritten, later = await self._write(unwritten, successors, len(started))
            started += later
        doubtful = unwritten if len(batch) == len(settlements) else settlements
        return Settled(await self._refused(doubtful) if doubtful else [], started)

    async def _write_successes(self, batch: Sequence[Settlement]) -> Sequence[Settlement]:
        """Successes take half the time in a statement of their own. Returns the settlements that are still to
        be written."""
        kind, count = Counter(map(_kind, batch)).most_common(1)[0]
        if kind[1:] != (Ending.SUCCEEDED, None) or count < min(MIN_SUCCESSES, len(batch)):
            return batch
        alike = batch if count == len(batch) else [one for one in batch if _kind(one) == kind]
        columns = list(zip(*alike, strict=True))
        ids, results = columns[0], columns[9]
        # Mostly they are all the same, and an array is the most expensive thing to send.
        of_each, of_all = ((), results[0]) if results.count(results[0]) == len(results) else (results, None)
        values = (ids, alike[0].attempt, columns[7], columns[8], of_each, of_all)
        written = await self._connections.settle.count(SQL["settle_successes"], *values)
        if done := self._connections.take_done():
            self._notifier.notify([DoneHint(job_id) for job_id in done])
        if written < count:
            self._permits_until = monotonic_micros() + PERMITS_EXPECTED_FOR
            return batch
        return [] if count == len(batch) else [one for one in batch if _kind(one) != kind]

    async def _write(
        self, batch: Sequence[Settlement], successors: Successors | None, taken: int = 0
    ) -> tuple[list[Settlement], list[Claimed]]:
        """The settlements that were not written, and the successors."""
        wanted = {} if successors is None else successors.wanted
        heir = NO_SUCCESSORS
        if successors is not None:
            heir = (successors.node, successors.room - taken, successors.queues, successors.targets)
        values = (*zip(*batch, strict=True), [wanted.get(one.id, 1) for one in batch], *heir)
        # Not repeated after a lost reply if it may have started successors: it would be unknown which.
        news = await self._connections.settle.fetch(SQL["settle"], *values, repeat=successors is None)
        self._notifier.notify(hints_of(news))
        missed = {row["id"] for row in news if row["kind"] == "unwritten"}
        started = [claimed_of(row[2:]) for row in news if row["kind"] == "started"]
        return [one for one in batch if one.id in missed], started

    async def _refused(self, batch: Sequence[Settlement]) -> list[UUID]:
        ids, attempts, states, due, *_ = zip(*batch, strict=True)
        return [
            row["id"]
            for row in await self._connections.settle.fetch(SQL["refused"], ids, attempts, states, due)
        ]


def _each_attempt_once(settlements: Sequence[Settlement]) -> Sequence[Settlement]:
    """The first decision about each: one statement would write them all, because none sees what the others
    do."""
    if len(set(map(_id, settlements))) == len(settlements):
        return settlements
    return list({settlement[:2]: settlement for settlement in reversed(settlements)}.values())
