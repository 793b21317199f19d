"""Files that are being received: those of one tenant share what is left of its quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import contextmanager


class TooManyBytes(Exception):
    """The files that the tenant sends at the same time do not fit together."""


class Incoming:
    """The bytes that this process has received and not stored yet, by tenant."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()

    @contextmanager
    def counted(self, stream: AsyncIterable[bytes], tenant: str, free: int) -> Iterator[AsyncIterator[bytes]]:
        """The chunks of the stream. They count until the block ends. A single file that is too large is not
        refused here."""
        size = 0

        async def chunks() -> AsyncIterator[bytes]:
            nonlocal size
            async for chunk in stream:
                size += len(chunk)
                self._bytes[tenant] += len(chunk)
                if free < self._bytes[tenant] != size:
                    self._bytes[tenant] -= size  # before others are refused for it
                    size = 0
                    raise TooManyBytes
                yield chunk

        try:
            yield chunks()
        finally:
            self._bytes[tenant] -= size
            if not self._bytes[tenant]:
                del self._bytes[tenant]
