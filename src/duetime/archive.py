"""The archive contract: files of finished jobs, outside of the store. A place holds the files; a format says
what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable
from uuid import UUID

from duetime.model.stored import JobRow


@runtime_checkable
class ArchivePlace(Protocol):
    """Names are paths with `/`. Verbs raise `ArchiveUnavailable` when the place cannot be used."""

    async def create(self, name: str, data: bytes) -> None:
        """Durable when it returns. A file that exists under this name is left as it is."""
        ...

    async def read(self, name: str) -> bytes | None:
        """From the place itself, not from a cache; None if there is no such file."""
        ...


class ArchiveFormat(Protocol):
    @property
    def suffix(self) -> str:
        """The end of the names of its files."""
        ...

    def pack(self, rows: Sequence[JobRow]) -> bytes:
        """A file of these jobs."""
        ...

    def ids(self, name: str, data: bytes) -> list[UUID]:
        """Of the jobs in a file, all of which was read. It may have another format: a run that was killed may
        have written it."""
        ...


class Archive(NamedTuple):
    place: ArchivePlace
    format: ArchiveFormat
