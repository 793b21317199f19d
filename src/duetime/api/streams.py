"""Streams of events as answers: server-sent events, until the listener goes, is too slow, loses its key, or the service stops."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from duetime.api.problems import Refused
from duetime.app.audience import Notice, Seat
from duetime.clock import pause
from duetime.errors import DuetimeError
from duetime.model.codec import encode

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = 15.0  # seconds
CHECK_KEY = 3.0  # seconds: a key that was revoked stops listening, too
SEND_WITHIN = 30.0  # seconds for a listener to take what is sent
MOST_OF_ONE = 20  # streams of one key
MOST = 500  # of this process
BEGIN = b"retry: 2000\n\n"
BEAT = b": still here\n\n"
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class Streams:
    """How many there are, by who listens."""

    def __init__(self) -> None:
        self._open: Counter[tuple[str, str | None]] = Counter()

    def enter(self, who: tuple[str, str | None]) -> None:
        if self._open[who] >= MOST_OF_ONE or self._open.total() >= MOST:
            detail = f"too many streams are open: close one (at most {MOST_OF_ONE} of one key, {MOST} in all)"
            raise Refused(429, "streams_exhausted", detail, None, {"Retry-After": "5"})
        self._open[who] += 1

    def leave(self, who: tuple[str, str | None]) -> None:
        self._open[who] -= 1
        if not self._open[who]:
            del self._open[who]


class EventStream(Response):
    """`leave` is called in the end, whatever ended it."""

    def __init__(self, notices: AsyncGenerator[Notice, None], seat: Seat, still_allowed: Callable[[], Awaitable[bool]]) -> None:
        super().__init__(None, 200, HEADERS, MEDIA_TYPE)
        del self.headers["content-length"]
        self._notices = notices
        self._seat = seat
        self._still_allowed = still_allowed
        self.leave: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_until_gone(receive))
        watching = asyncio.create_task(self._watch_key())
        for ends in (gone, watching):
            ends.add_done_callback(lambda _: self._seat.end())
        try:
            # A store that is away or a listener that takes nothing: the stream ends, and the listener comes again.
            with suppress(TimeoutError, DuetimeError, OSError):
                await _send(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for chunk in self._chunks():
                    if gone.done():
                        return
                    await _send(send, {"type": "http.response.body", "body": chunk, "more_body": True})
                await _send(send, {"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            watching.cancel()
            self.leave()

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield BEGIN
        async with aclosing(self._notices) as notices:
            coming = asyncio.ensure_future(anext(notices, None))
            try:
                while True:
                    done, _ = await asyncio.wait([coming], timeout=HEARTBEAT)
                    if not done:
                        yield BEAT
                        continue
                    notice = coming.result()
                    if notice is None:
                        return
                    yield frame(notice)
                    coming = asyncio.ensure_future(anext(notices, None))
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError, DuetimeError):
                    await coming

    async def _watch_key(self) -> None:
        while await self._still_allowed():
            await pause(CHECK_KEY)


def frame(notice: Notice) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (notice.id, notice.kind.encode(), encode(notice.data))


async def _send(send: Send, message: dict[str, object]) -> None:
    async with asyncio.timeout(SEND_WITHIN):
        await send(message)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
