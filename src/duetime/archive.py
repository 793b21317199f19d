"""The archive contract: a place for files of finished jobs, outside of the store."""

from __future__ import annotations

from typing import Protocol


class ArchivePlace(Protocol):
    """Names are paths with `/`. Verbs raise `ArchiveUnavailable` when the place cannot be used."""

    async def create(self, name: str, data: bytes) -> None:
        """Durable when it returns. A file that exists under this name is left as it is."""
        ...

    async def read(self, name: str) -> bytes | None:
        """From the place itself, not from a cache; None if there is no such file."""
        ...
