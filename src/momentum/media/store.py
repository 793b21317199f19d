"""Files in a local folder or in an S3-compatible service, through obstore. Files are streamed: a video is
never in memory as a whole.

A file first goes to a temporary file of this machine, where it is inspected. Only what can be published is
stored, under `tenant/id`; the database has the row."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from momentum.errors import ConfigError, NotFound
from momentum.ids import new_id
from momentum.media.bounded import Inspector
from momentum.media.inspection import MediaRefused
from momentum.model import Media
from momentum.platform import MediaFile

if TYPE_CHECKING:
    from obstore.store import ObjectStore

WRITE_SIZE = 1 << 20  # bytes that are collected before a thread writes them
READ_SIZE = 1 << 20
PART_SIZE = 8 << 20  # of a multi-part upload to S3
CONCURRENT_PARTS = 2
MAX_BYTES = 500 * 1024 * 1024
MAX_NAME = 255


def now_utc() -> datetime:
    return datetime.now(UTC)


class MediaStore:
    def __init__(
        self, store: ObjectStore, *, max_bytes: int = MAX_BYTES, now: Callable[[], datetime] = now_utc
    ) -> None:
        self._store, self._max_bytes, self._now = store, max_bytes, now
        self._inspector = Inspector()

    @classmethod
    def of(
        cls, url: str, *, max_bytes: int = MAX_BYTES, environment: Mapping[str, str] = os.environ
    ) -> MediaStore:
        """`file://folder`, or `s3://bucket/prefix` with MOMENTUM_S3_ENDPOINT for other services than AWS."""
        parts = urlsplit(url)
        if parts.scheme == "file":
            return cls(_folder(parts.netloc + parts.path), max_bytes=max_bytes)
        if parts.scheme == "s3" and parts.netloc:
            return cls(_bucket(parts.netloc, parts.path.strip("/"), environment), max_bytes=max_bytes)
        raise ConfigError(f"media: {url!r} is not a place for files: use file://FOLDER or s3://BUCKET/PREFIX")

    async def put(
        self,
        tenant: str,
        name: str,
        stream: AsyncIterable[bytes],
        declared_type: str = "",
        *,
        max_bytes: int | None = None,
    ) -> Media:
        """Store the file if it can be published. The caller stores the row."""
        limit = self._max_bytes if max_bytes is None else min(max_bytes, self._max_bytes)
        async with _temporary_file() as path:
            size, digest = await _spool(stream, path, limit)
            facts = await self._inspector.inspect(path, declared_type, tenant)
            media = Media(
                new_id("media"),
                tenant,
                facts.kind,
                facts.type,
                _plain_name(name),
                size,
                digest,
                self._now(),
                facts.width,
                facts.height,
                facts.seconds,
                facts.pages,
            )
            import obstore

            await obstore.put_async(
                self._store,
                _path(media),
                path,
                chunk_size=PART_SIZE,
                max_concurrency=CONCURRENT_PARTS,
            )
        return media

    def open(self, media: Media) -> MediaFile:
        async def read(start: int, size: int) -> bytes:
            return await self.read(media, start, size)

        def stream() -> AsyncIterator[bytes]:
            return self.stream(media)

        return MediaFile(media, read, stream)

    async def read(self, media: Media, start: int, size: int) -> bytes:
        import obstore

        size = min(size, media.size - start)
        if size <= 0:
            return b""
        with _missing_file(media):
            return bytes(await obstore.get_range_async(self._store, _path(media), start=start, length=size))

    async def stream(self, media: Media, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`."""
        stop = media.size if end is None else end
        for position in range(start, stop, READ_SIZE):
            yield await self.read(media, position, min(READ_SIZE, stop - position))

    async def delete(self, media: Media) -> None:
        import obstore

        with suppress(FileNotFoundError):  # deleted before
            await obstore.delete_async(self._store, _path(media))


@contextmanager
def _missing_file(media: Media) -> Iterator[None]:
    """A row without its file: the folder or the bucket was emptied."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound(
            f"the file {media.id} ({media.name}) is no longer in the storage: upload it again"
        ) from None


def _folder(path: str) -> ObjectStore:
    from obstore.store import LocalStore

    if not path:
        raise ConfigError("media: file:// names no folder: write file://momentum-media")
    folder = Path(path).expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(f"media: the folder {folder} cannot be made ({problem.strerror})") from None
    return LocalStore(folder)


def _bucket(bucket: str, prefix: str, environment: Mapping[str, str]) -> ObjectStore:
    """Keys and region come from AWS_* variables or, on AWS, from the machine's role."""
    from obstore.store import S3Store

    endpoint = environment.get("MOMENTUM_S3_ENDPOINT", "")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    if not endpoint:
        return S3Store(bucket, prefix=prefix or None, region=region)
    return S3Store(
        bucket,
        prefix=prefix or None,
        endpoint=endpoint,
        region=region,
        virtual_hosted_style_request=False,
        client_options={"allow_http": endpoint.startswith("http://")},
    )


def _path(media: Media) -> str:
    return f"{media.tenant}/{media.id}"


def _plain_name(name: str) -> str:
    """The last part of the name, without characters that a header or a terminal would interpret."""
    last = name.replace("\\", "/").rpartition("/")[2]
    plain = "".join(letter for letter in last if letter.isprintable() and letter not in '"<>|').strip()
    return plain[:MAX_NAME] or "file"


@asynccontextmanager
async def _temporary_file() -> AsyncIterator[Path]:
    handle, name = tempfile.mkstemp(prefix="momentum-")
    os.close(handle)
    try:
        yield Path(name)
    finally:
        os.unlink(name)


async def _spool(stream: AsyncIterable[bytes], path: Path, limit: int) -> tuple[int, str]:
    """Write the stream to the file, in a thread, some chunks at a time. Returns size and digest."""
    digest, size, waiting = sha256(), 0, bytearray()
    with path.open("wb") as file:

        def write(data: bytes) -> None:
            digest.update(data)
            file.write(data)

        async for chunk in stream:
            size += len(chunk)
            if size > limit:
                raise MediaRefused(
                    f"is larger than {limit:,} bytes: make it smaller, or delete files that are not needed",
                    "media_too_large",
                )
            waiting += chunk
            if len(waiting) >= WRITE_SIZE:
                await asyncio.to_thread(write, bytes(waiting))
                waiting.clear()
        await asyncio.to_thread(write, bytes(waiting))
    if size == 0:
        raise MediaRefused("is empty: choose another file", "media_empty")
    return size, digest.hexdigest()
