"""Moves old finished jobs from the store to an archive. A job leaves the store when its copy was read back.

A part is one file of jobs that ended on the same day. Its steps: the store remembers the part; its file is
created under a name that is the hash of its content; the file is read back and compared; its manifest is
created; the jobs that the file names are deleted. A run that was killed is continued: with a manifest the
jobs of the part are deleted, without one the part is forgotten, and its jobs go into a new one. A file
without a manifest does not count."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from duetime.archive import Archive
from duetime.engine.failpoint import failpoint
from duetime.engine.node.options import NodeOptions
from duetime.errors import ArchiveUnavailable, Conflict
from duetime.model.codec import decode, encode
from duetime.model.history import KeepRules
from duetime.model.instant import SECOND, Micros, to_iso
from duetime.model.job import DEFAULT_TENANT
from duetime.model.stored import JobRow, RowKind, row_key
from duetime.store import Store

PAGE = 2_000
MAX_PART = 50_000  # jobs held in memory
FORGET_BATCH = 1_000
LOCK_FOR = 120 * SECOND  # renewed with every page; so long nothing runs after a run that was killed
LOCK = ("archive", DEFAULT_TENANT, "lock")
PART = ("archive", DEFAULT_TENANT, "part")


@dataclass(slots=True)
class ArchiveResult:
    jobs: int = 0  # that left the store
    parts: int = 0
    bytes: int = 0  # of files
    oldest: Micros | None = None  # the earliest end of a job that is still in the store


Progress = Callable[[ArchiveResult], None]


class Archiver:
    def __init__(
        self, store: Store, archive: Archive | None, rules: KeepRules, progress: Progress = lambda _: None
    ) -> None:
        """Without an archive, old jobs are only deleted."""
        self._store = store
        self._archive = archive
        self._rules = rules
        self._progress = progress
        self._lock = 0  # its version

    async def run(self) -> ArchiveResult:
        self._lock = 0
        now = await self._store.time()
        await self._hold_lock()
        try:
            result = ArchiveResult()
            await self._finish_earlier(result)
            await self._move(now, result)
            return result
        finally:
            await self._store.put_record(*LOCK, None, self._lock)

    async def _hold_lock(self) -> None:
        until = await self._store.time() + LOCK_FOR
        self._lock = await self._store.put_record(*LOCK, b"1", self._lock, until)
        if not self._lock:
            raise Conflict(
                "another process archives now: wait until it has ended; a killed one counts as ended after "
                f"{LOCK_FOR // SECOND} seconds"
            )

    async def _move(self, now: Micros, result: ArchiveResult) -> None:
        days: defaultdict[str, list[JobRow]] = defaultdict(list)
        held, after = 0, None
        while page := await self._store.read_rows(RowKind.JOBS, after, PAGE):
            after = row_key(page[-1])
            await self._hold_lock()
            for row in page:
                assert isinstance(row, JobRow)
                if self._rules.is_old(row, now):
                    days[to_iso(row.finished_at or 0)[:10]].append(row)
                    held += 1
                elif row.finished_at is not None:
                    result.oldest = min(row.finished_at, result.oldest or row.finished_at)
            if held >= MAX_PART:
                await self._write(days, result)
                held = 0
        await self._write(days, result)

    async def _write(self, days: defaultdict[str, list[JobRow]], result: ArchiveResult) -> None:
        for day in sorted(days):
            rows = days.pop(day)
            if self._archive is not None:
                result.bytes += await self._copy(self._archive, day, rows)
                result.parts += 1
            result.jobs += await self._forget([row.id for row in rows])
            if self._archive is not None:
                await self._store.put_record(*PART, None)
            self._progress(result)

    async def _copy(self, archive: Archive, day: str, rows: list[JobRow]) -> int:
        place = archive.place
        data = await asyncio.to_thread(archive.format.pack, rows)  # takes seconds: jobs start meanwhile
        digest = sha256(data).hexdigest()
        name = f"jobs/day={day}/{digest[:32]}.{archive.format.suffix}"
        manifest = {
            "file": name,
            "sha256": digest,
            "bytes": len(data),
            "rows": len(rows),
            "day": day,
            "first_finished_at": to_iso(min(row.finished_at or 0 for row in rows)),
            "last_finished_at": to_iso(max(row.finished_at or 0 for row in rows)),
        }
        listed = f"manifests/day={day}/{digest[:32]}.json"
        await self._hold_lock()
        await self._store.put_record(*PART, listed.encode())
        failpoint("archive.before_file")
        await place.create(name, data)
        failpoint("archive.after_file")
        if len(await self._read_back(archive, name, digest)) != len(rows):
            raise ArchiveUnavailable(f"{name} has another number of jobs than written: none was deleted")
        await place.create(listed, encode(manifest))
        failpoint("archive.after_manifest")
        if await place.read(listed) != encode(manifest):
            raise ArchiveUnavailable(f"{listed} is not what was written: move it away, then run it again")
        return len(data)

    async def _finish_earlier(self, result: ArchiveResult) -> None:
        """Of a run that was killed."""
        part = await self._store.get_record(*PART)
        if part is None:
            return
        if self._archive is None:
            raise Conflict(
                "an archive was interrupted: run `duetime archive` with the same --to again before jobs "
                "are deleted"
            )
        manifest = await self._archive.place.read(part.value.decode())
        if manifest is not None:
            known = decode(manifest)
            result.jobs += await self._forget(
                await self._read_back(self._archive, known["file"], known["sha256"])
            )
        await self._store.put_record(*PART, None)

    async def _read_back(self, archive: Archive, name: str, digest: str) -> list[UUID]:
        """The ids of the jobs in the file."""
        data = await archive.place.read(name)
        if data is None or sha256(data).hexdigest() != digest:
            raise ArchiveUnavailable(f"{name} is not what was written: no job was deleted; look at the place")
        return await asyncio.to_thread(archive.format.ids, name, data)

    async def _forget(self, ids: list[UUID]) -> int:
        gone = 0
        for at in range(0, len(ids), FORGET_BATCH):
            gone += await self._store.prune(ids[at : at + FORGET_BATCH])
            failpoint("archive.after_forget")
        return gone


def history_of(
    store: Store, options: NodeOptions, targets: Mapping[str, Micros]
) -> Callable[[], Awaitable[Micros | None]] | None:
    """For the leader, if the options ask for more than one retention of all jobs."""
    if options.archive is None and options.keep_failed is None and not options.keep_queues:
        return None
    rules = KeepRules(options.retention, options.keep_failed, options.keep_queues, targets)
    archiver = Archiver(store, options.archive, rules)

    async def run() -> Micros | None:
        return (await archiver.run()).oldest

    return run
