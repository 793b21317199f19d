"""Everything of one store into another: one walk over both, in the order of keys. A range of keys that
differs is replaced in the target. A walk over an empty target copies, a second one resumes or catches up, and
one that writes nothing compares."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

from duetime.app.adoption import STAMP, why_refused
from duetime.clock import monotonic_micros, pause
from duetime.engine.plan.leases import HOLDERS
from duetime.errors import Conflict, CopyDiffers, CopyRefused, CopyUnfinished, StoreNotAdopted
from duetime.model.codec import encode
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_TENANT
from duetime.model.lease import Node
from duetime.model.limit import Queue
from duetime.model.schedule import Schedule, ScheduleVersion
from duetime.model.stored import QueueRow, Record, RowKey, RowKind, StoredRow, row_key
from duetime.store import Store

PAGE = 5_000
MAX_EXAMPLES = 5  # of differences
LOOK_INTERVAL = 0.5  # seconds between two looks at the nodes of the source
MOVED = "moved to another store by `duetime copy`"  # the note of queues that a live copy has paused
_MARKER = ("copy", DEFAULT_TENANT, "unfinished")  # a record in the target, while the copy is not finished


async def refuse_unfinished(store: Store) -> None:
    """Jobs that are stored next to an unfinished copy would be replaced by it."""
    found = await store.get_record(*_MARKER)
    if found is not None:
        raise CopyUnfinished(
            f"the store holds an unfinished copy of {found.value.decode()}: run `duetime copy` again until "
            "it is finished, or use another store"
        )


class Checksum:
    def __init__(self) -> None:
        self.rows = 0
        self._digest = blake2b(digest_size=8)

    def add(self, rows: list[bytes]) -> None:
        self.rows += len(rows)
        self._digest.update(b"\n".join([*rows, b""]))

    @property
    def text(self) -> str:
        return self._digest.hexdigest()


@dataclass(slots=True)
class KindTotals:
    """What a walk found of one kind."""

    kind: RowKind
    compared: bool  # or copied
    source: Checksum = field(default_factory=Checksum)
    target: Checksum = field(default_factory=Checksum)
    written: int = 0
    examples: list[str] = field(default_factory=list)  # of differences

    @property
    def equal(self) -> bool:
        return (self.source.rows, self.source.text) == (self.target.rows, self.target.text)


class Waiting(NamedTuple):
    """What a live copy waits for."""

    nodes: list[Node]

    @property
    def running(self) -> int:
        return sum(node.running or 0 for node in self.nodes)


Progress = Callable[[KindTotals | Waiting], None]


class StoreCopy:
    """`origin` names the source: a copy that was interrupted is resumed only from there."""

    def __init__(self, source: Store, target: Store, origin: str, progress: Progress) -> None:
        self._source = source
        self._target = target
        self._marker = Record(*_MARKER, origin.encode(), 0, None)
        self._progress = progress

    async def run(self) -> list[KindTotals]:
        """Of a source without nodes."""
        if nodes := await living(self._source):
            raise CopyRefused(
                f"the source has {_named(nodes)}: stop every node first, or copy with --live; the lease of a "
                "killed node ends by itself"
            )
        await self._begin()
        return await self._finish()

    async def run_live(self, wait: Micros | None) -> list[KindTotals]:
        """Of a source whose nodes work. They go on until most is copied; then no job starts any more, and the
        rest follows when the nodes have stopped."""
        await self._begin()
        await self._write_all()
        async with self._paused_queues():
            await self._wait_for_nodes(wait)
            return await self._finish()

    async def compare(self) -> list[KindTotals]:
        return [await self._compare(kind) for kind in RowKind]

    # -- begin and end
    async def _begin(self) -> None:
        await refuse_unfinished(self._source)
        if (reason := await why_refused(self._source)) is not None:
            raise StoreNotAdopted(f"{reason}: run `duetime adopt` on the source first")
        marker, mine = await self._target.get_record(*_MARKER), self._marker
        if marker is not None and marker.value != mine.value:
            raise CopyRefused(
                f"the target holds an unfinished copy of {marker.value.decode()}, not of "
                f"{mine.value.decode()}: finish that one, or use an empty store"
            )
        if nodes := await living(self._target):
            raise CopyRefused(f"the target has {_named(nodes)}: start nodes there after the copy")
        if marker is None:
            for kind in RowKind:
                if [row for row in await self._target.read_rows(kind, None, 2) if row_key(row) != STAMP]:
                    raise CopyRefused(f"the target already holds {kind}: a copy needs an empty store")
            await self._target.write_rows(RowKind.RECORDS, [mine], None, None)

    async def _finish(self) -> list[KindTotals]:
        written = await self._write_all()
        found = await self.compare()
        if not all(totals.equal for totals in found):
            raise CopyDiffers(
                f"the source changed during the copy ({differences(found)}): stop its clients, then run "
                "`duetime copy` again, which copies only what differs"
            )
        await self._target.put_record(*_MARKER, None)
        return [replace(totals, written=written[totals.kind]) for totals in found]

    # -- the source, while it is live
    @asynccontextmanager
    async def _paused_queues(self) -> AsyncIterator[None]:
        """They stay paused after the copy: a node that was forgotten must not run the jobs a second time."""
        now = await self._source.time()
        try:
            for queue in await self._source.queues():
                if not queue.paused:
                    await self._source.set_queue(replace(queue, paused=True, pause_note=MOVED, paused_at=now))
            yield
        except BaseException:
            for queue in await self._source.queues():
                if queue.pause_note == MOVED:
                    await self._source.set_queue(_as_before(queue))
            raise

    async def _wait_for_nodes(self, wait: Micros | None) -> None:
        began = monotonic_micros()
        while nodes := await living(self._source):
            if wait is not None and monotonic_micros() - began > wait:
                running = Waiting(nodes).running
                raise CopyRefused(
                    f"{running} jobs of the source still run, and it has {_named(nodes)}: its queues work "
                    "again; repeat the copy with a longer --wait, and stop the nodes when no job runs"
                )
            self._progress(Waiting(nodes))
            await pause(LOOK_INTERVAL)

    # -- walking
    async def _write_all(self) -> dict[RowKind, int]:
        """How many rows of each kind were written."""
        return {kind: await self._write(kind) for kind in RowKind}

    async def _write(self, kind: RowKind) -> int:
        totals = KindTotals(kind, compared=False)
        async with _Walk(kind, self._source, self._target) as walk:
            async for ours, theirs in walk:
                totals.source.rows += len(ours)
                if len(ours) != len(theirs) or _packed(ours) != _packed(theirs):
                    await self._replace(walk, ours)
                    totals.written += len(ours)
                self._progress(totals)
        return totals.written

    async def _replace(self, walk: _Walk, rows: list[StoredRow]) -> None:
        marker = [self._marker] if walk.kind is RowKind.RECORDS else []
        try:
            await walk.write([*rows, *(row for row in marker if walk.includes(row))], walk.until)
        except Conflict:
            # A row that comes later holds a name that one of these has now: it is copied again.
            if walk.until is None:
                raise
            await walk.write([*rows, *marker], None)
            walk.begin_again()

    async def _compare(self, kind: RowKind) -> KindTotals:
        totals = KindTotals(kind, compared=True)
        async with _Walk(kind, self._source, self._target) as walk:
            async for ours, theirs in walk:
                packed, stored = _packed(ours), _packed(theirs)
                totals.source.add(packed)
                totals.target.add(stored)
                if packed != stored:
                    totals.examples += _examples(ours, theirs)[: MAX_EXAMPLES - len(totals.examples)]
                self._progress(totals)
        return totals


class _Walk:
    """The rows of one kind in both stores, range by range. The last range has no end."""

    def __init__(self, kind: RowKind, source: Store, target: Store) -> None:
        self.kind = kind
        self._source = source
        self._target = target
        self._after: RowKey | None = None
        self.until: RowKey | None = None

    async def __aenter__(self) -> _Walk:
        self._ours, self._theirs = _Pages(self._source, self.kind), _Pages(self._target, self.kind)
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._ours.stop()
        self._theirs.stop()

    async def __aiter__(self) -> AsyncIterator[tuple[list[StoredRow], list[StoredRow]]]:
        while not (self._ours.is_over and self._theirs.is_over):
            ends = [await pages.fill() for pages in (self._ours, self._theirs)]
            self.until = min((end for end in ends if end is not None), default=None)
            ours, theirs = self._ours.take(self.until), self._theirs.take(self.until)
            if self.kind is RowKind.RECORDS:
                now = max(await self._source.time(), await self._target.time())
                ours, theirs = _records(ours, now), _records(theirs, now)
            if self.kind in (RowKind.NODES, RowKind.QUEUES):
                ours = [_as_copied(row) for row in ours]
            yield ours, theirs
            self._after = self.until

    def includes(self, row: StoredRow) -> bool:
        key = row_key(row)
        return (self._after is None or key > self._after) and (self.until is None or key <= self.until)

    async def write(self, rows: list[StoredRow], until: RowKey | None) -> None:
        await self._target.write_rows(self.kind, rows, self._after, until)

    def begin_again(self) -> None:
        """Behind this range, with what the target has there now."""
        self._theirs.stop()
        self._theirs = _Pages(self._target, self.kind, self.until)


class _Pages:
    """Rows of one kind, a page at a time. The next page is read while the caller works."""

    def __init__(self, store: Store, kind: RowKind, after: RowKey | None = None) -> None:
        self._store = store
        self._kind = kind
        self._rows: list[StoredRow] = []
        self._reading: asyncio.Task[list[StoredRow]] | None = self._read(after)

    def _read(self, after: RowKey | None) -> asyncio.Task[list[StoredRow]]:
        return asyncio.create_task(self._store.read_rows(self._kind, after, PAGE))

    @property
    def is_over(self) -> bool:
        return self._reading is None and not self._rows

    async def fill(self) -> RowKey | None:
        """Have a row, if there is one more. Returns until where the rows are known; None: to the end."""
        if not self._rows and self._reading is not None:
            self._rows = await self._reading
            self._reading = self._read(row_key(self._rows[-1])) if len(self._rows) == PAGE else None
        return None if self._reading is None else row_key(self._rows[-1])

    def take(self, until: RowKey | None) -> list[StoredRow]:
        number = len(self._rows) if until is None else bisect_right(self._rows, until, key=row_key)
        taken, self._rows = self._rows[:number], self._rows[number:]
        return taken

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()


async def living(store: Store) -> list[Node]:
    now = await store.time()
    return [node for node in await store.nodes(living=True, counted=True) if node.state(now) == "alive"]


def differences(found: Iterable[KindTotals]) -> str:
    """For an error: the first of them."""
    examples = [example for totals in found for example in totals.examples]
    return "; ".join(examples[:MAX_EXAMPLES])


def _named(nodes: list[Node]) -> str:
    names = ", ".join(node.name for node in nodes[:MAX_EXAMPLES])
    return f"{len(nodes)} living node{'s' if len(nodes) > 1 else ''} ({names})"


def _as_copied(row: StoredRow) -> StoredRow:
    """In the target no node of the source lives. Queues are as they were before a live copy."""
    match row:
        case Node():
            return replace(row, dead=True)
        case QueueRow():
            return row._replace(queue=_as_before(row.queue))
        case _:
            return row


def _as_before(queue: Queue) -> Queue:
    moved = queue.pause_note == MOVED
    return replace(queue, paused=False, pause_note=None, paused_at=None) if moved else queue


def _records(rows: list[StoredRow], now: Micros) -> list[StoredRow]:
    """Without what belongs to one store only, and without what has expired: the stores were read at different
    times."""
    own = (_MARKER, STAMP, HOLDERS)
    return [
        row
        for row in rows
        if isinstance(row, Record) and row[:3] not in own and (row.expires_at or now + 1) > now
    ]


def _packed(rows: list[StoredRow]) -> list[bytes]:
    # The rule of a schedule has parts that are not data; its text leaves them out.
    as_text = bool(rows) and isinstance(rows[0], Schedule | ScheduleVersion)
    return [repr(row).encode() if as_text else encode(row) for row in rows]


def _examples(ours: list[StoredRow], theirs: list[StoredRow]) -> list[str]:
    left, right = (dict(zip(map(row_key, rows), _packed(rows), strict=True)) for rows in (ours, theirs))
    found: list[str] = []
    for key in sorted({*left, *right}):
        name = "/".join(str(part) for part in key)
        if key not in right:
            found.append(f"{name} is only in the source")
        elif key not in left:
            found.append(f"{name} is only in the target")
        elif left[key] != right[key]:
            found.append(f"{name} differs")
    return found
