"""Jobs as rows, for a copy: read in the order of ids, and stored in every list and index that belongs to
them. Each call of the server handles some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from duetime.errors import Conflict
from duetime.model.job import State
from duetime.model.stored import JobRow, RowKey
from duetime.stores.redis.connection import Argument, RedisConnection
from duetime.stores.redis.job_rows import attempt_row, job_row_of, live_row, past_row, run_record
from duetime.stores.redis.rows import optional, unique_name, uuid_of

BATCH = 500  # jobs or names of one call
MIN_IDS, MAX_IDS = 50, 2_000  # of one list; MAX_IDS also of one call
Value = TypeVar("Value")
_FIRST, _LAST = bytes(16), b"\xff" * 16


def batches(rows: Sequence[Value], size: int = BATCH) -> Iterator[Sequence[Value]]:
    return (rows[at : at + size] for at in range(0, len(rows), size))


class RedisJobRows:
    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    async def read(self, after: RowKey | None, limit: int) -> list[JobRow]:
        found: list[JobRow] = []
        ids = await self._ids(after[0].bytes if after else _FIRST, _LAST, limit)
        for some in batches(ids):
            found += [job_row_of(*row) for row in await self._connection.run("read_job_rows", *some)]
        return found

    async def write(self, rows: Sequence[JobRow], after: RowKey | None, until: RowKey | None) -> None:
        first, last = after[0].bytes if after else _FIRST, until[0].bytes if until else _LAST
        await self._refuse_taken_keys(rows, first, last)
        while ids := await self._ids(first, last, BATCH):
            await self._connection.run("forget_jobs", *ids)
        # Retention deletes jobs in the order in which they are stored as finished.
        for some in batches(sorted(rows, key=lambda row: row.finished_at or 0)):
            arguments = [argument for row in some for argument in _arguments(row)]
            await self._connection.run("write_job_rows", *arguments)

    async def _refuse_taken_keys(self, rows: Sequence[JobRow], first: bytes, last: bytes) -> None:
        names = [
            unique_name(row.tenant, row.unique_key)
            for row in rows
            if not row.state.final and row.unique_key is not None
        ]
        for some in batches(names):
            holders = await self._connection.command("HMGET", f"{self._connection.address.keys}unique", *some)
            for name, holder in zip(some, holders, strict=True):
                if holder is not None and not first < holder <= last:
                    key = name.partition("\0")[2]
                    raise Conflict(f"job {uuid_of(holder)} holds the unique key {key!r}")

    async def _ids(self, after: bytes, until: bytes, limit: int) -> list[bytes]:
        """The first ids of jobs after this one, in order, from the lists of all tenants."""
        found: list[bytes] = []
        names = await self._list_names()
        size = max(MIN_IDS, 2 * limit // max(1, len(names)))
        while names and len(found) < limit and after < until:
            size = min(size, MAX_IDS)
            lists: list[Any] = []
            for some in batches(names, max(1, MAX_IDS // size)):
                lists += await self._connection.run("ids_after", after, size, *some)
            end = min((last for _, last in lists if last), default=_LAST)
            found += sorted(one for ids, _ in lists for one in ids if one <= min(end, until))
            names = [name for name, (ids, _) in zip(names, lists, strict=True) if ids]
            after, size = end, 2 * size
        return found[:limit]

    async def _list_names(self) -> list[bytes]:
        names: list[bytes] = []
        while True:
            some = await self._connection.run("list_names", names[-1] if names else "", BATCH)
            names += some
            if len(some) < BATCH:
                return names


def _arguments(row: JobRow) -> Iterator[Argument]:
    final = row.state.final
    yield row.id.bytes
    yield live_row(row)
    yield past_row(row) if final else b""
    yield run_record(row) if row.state is State.RUNNING else b""
    yield row.waits_for or ""
    yield b"" if final else optional(None if row.error is None else row.error.encode())
    yield optional(row.checkpoint)
    yield optional(row.progress)
    yield len(row.attempts)
    yield from map(attempt_row, row.attempts)
    yield 2 * len(row.markers)
    for key, nonce in row.markers:
        yield key
        yield nonce.bytes
