"""Changes of posts, for event streams. While someone listens, the service reads the newest lines of all
timelines twice a second: workers in other processes write them, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from logging import getLogger

from sqlalchemy import select

from momentum.database import Database, tables
from momentum.ids import ALPHABET
from momentum.model import PostState

INTERVAL = 0.5  # seconds
# An id begins with the time at which it was made, and is visible after its commit: so look back a little.
LOOK_BACK = timedelta(seconds=20)
MAX_WAITING = 1_000  # changes for one listener; a slower one is ended, and its page loads everything again
log = getLogger("momentum.api")


@dataclass(frozen=True, slots=True)
class Change:
    id: str
    state: PostState
    version: int


Listener = asyncio.Queue[Change | None]


class ChangeFeed:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: dict[Listener, str] = {}
        self._reading: asyncio.Task[None] | None = None
        self._closed = False

    @asynccontextmanager
    async def listen(self, tenant: str) -> AsyncIterator[Listener]:
        """Changes of this tenant from now on. None: the stream ends."""
        listener: Listener = asyncio.Queue(MAX_WAITING)
        if self._closed:
            listener.put_nowait(None)
        self._listeners[listener] = tenant
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="momentum-changes")
        try:
            yield listener
        finally:
            self._listeners.pop(listener, None)
            if not self._listeners and self._reading is not None:
                self._reading.cancel()
                self._reading = None

    def close(self) -> None:
        self._closed = True
        for listener in list(self._listeners):
            self._end(listener)

    async def _read(self) -> None:
        seen: dict[str, None] = {}
        first = datetime.now(UTC)
        while True:
            try:
                await self._read_once(seen, first)
            except Exception:
                log.exception("changes cannot be read; the next try follows")
            await asyncio.sleep(INTERVAL)

    async def _read_once(self, seen: dict[str, None], first: datetime) -> None:
        """`seen` has the ids that were sent, so that looking back sends nothing twice."""
        events, posts = tables.events, tables.posts
        since = max(datetime.now(UTC) - LOOK_BACK, first)
        query = (
            select(events.c.id, events.c.tenant, events.c.post_id, posts.c.state, posts.c.version)
            .join(posts, posts.c.id == events.c.post_id)
            .where(events.c.id >= _id_at(since))
            .order_by(events.c.id)
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).all()
        latest = {
            row.post_id: (row.tenant, Change(row.post_id, PostState(row.state), row.version))
            for row in rows
            if row.id not in seen
        }
        seen.update(dict.fromkeys(row.id for row in rows))
        oldest = _id_at(since - LOOK_BACK)
        for known in [known for known in seen if known < oldest]:
            del seen[known]
        for tenant, change in latest.values():
            self._send(tenant, change)

    def _send(self, tenant: str, change: Change) -> None:
        for listener, theirs in list(self._listeners.items()):
            if theirs == tenant:
                try:
                    listener.put_nowait(change)
                except asyncio.QueueFull:
                    self._end(listener)

    def _end(self, listener: Listener) -> None:
        while listener.full():
            listener.get_nowait()
        listener.put_nowait(None)


def _id_at(instant: datetime) -> str:
    """The smallest id of an event that is made at this time."""
    number = int(instant.timestamp() * 1_000) << 80
    return "evt_" + "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
