"""Streams of server-sent events. A stream ends when the client disconnects or is too slow, its key expires,
or the service stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from duetime.api.long_poll import disconnected
from duetime.app.event_feed import FeedEvent, Subscription
from duetime.clock import pause
from duetime.errors import DuetimeError
from duetime.model.codec import encode

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_INTERVAL = 15.0  # seconds
KEY_CHECK_INTERVAL = 3.0  # seconds: the stream of a revoked key ends
SEND_TIMEOUT = 30.0  # seconds for the client to accept a chunk
BEGIN = b"retry: 2000\n\n"
HEARTBEAT = b": still here\n\n"
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventStream(Response):
    """Calls `on_end` when the stream ends."""

    def __init__(
        self,
        notices: AsyncGenerator[FeedEvent, None],
        seat: Subscription,
        still_allowed: Callable[[], Awaitable[bool]],
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(None, 200, HEADERS, MEDIA_TYPE)
        del self.headers["content-length"]
        self._notices = notices
        self._seat = seat
        self._still_allowed = still_allowed
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(disconnected(receive))
        watching = asyncio.create_task(self._watch_key())
        for ends in (gone, watching):
            ends.add_done_callback(lambda _: self._seat.end())
        try:
            # If the store fails or the client accepts nothing, the stream ends, and the client reconnects.
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
            self._on_end()

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield BEGIN
        async with aclosing(self._notices) as notices:
            coming = asyncio.ensure_future(anext(notices, None))
            try:
                while True:
                    done, _ = await asyncio.wait([coming], timeout=HEARTBEAT_INTERVAL)
                    if not done:
                        yield HEARTBEAT
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
            await pause(KEY_CHECK_INTERVAL)


def frame(notice: FeedEvent) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (notice.id, notice.kind.encode(), encode(notice.data))


async def _send(send: Send, message: dict[str, object]) -> None:
    async with asyncio.timeout(SEND_TIMEOUT):
        await send(message)
