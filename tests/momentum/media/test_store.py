"""Files in a folder and in S3 (moto's server): streamed in, read in parts, streamed out, deleted."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from momentum.errors import ConfigError, NotFound
from momentum.media import Incoming, MediaRefused, MediaStore, TooManyBytes
from momentum.model import MediaKind
from tests.momentum.media import samples
from tests.servers.brokers import MotoServer

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 service with the bucket `media`."""
    with MotoServer() as server:
        with urlopen(Request(f"{server.endpoint}/media", method="PUT"), timeout=60) as answer:
            assert answer.status == 200
        yield server.endpoint


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MediaStore:
    if request.param == "folder":
        return MediaStore.of(f"file://{tmp_path}/media")
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    endpoint = request.getfixturevalue("s3")
    return MediaStore.of("s3://media/some/prefix", environment={"MOMENTUM_S3_ENDPOINT": endpoint})


async def parts(content: bytes, size: int = 60_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def test_file_is_stored_and_read_back(store: MediaStore) -> None:
    content = samples.mp4(9, size=3_000_000)
    media = await store.put("one", "C:\\films\\clip.mp4", parts(content), "image/png")
    assert (media.kind, media.type, media.name, media.size) == (
        MediaKind.VIDEO,
        "video/mp4",
        "clip.mp4",
        len(content),
    )
    assert media.digest == sha256(content).hexdigest()
    file = store.open(media)
    assert await file.read(100, 50) == content[100:150]
    assert await file.read(len(content) - 3, 50) == content[-3:]
    assert b"".join([chunk async for chunk in file.stream()]) == content


async def test_deleted_file_is_gone_and_may_be_deleted_again(store: MediaStore) -> None:
    media = await store.put("one", "a.png", parts(samples.image()))
    await store.delete(media)
    await store.delete(media)
    with pytest.raises(NotFound, match=r"a\.png.*upload it again"):
        await store.open(media).read(0, 10)


async def test_large_video_is_not_in_memory(store: MediaStore) -> None:
    """40 MB through a process that never holds more than a few parts of Python memory."""
    size = 40 << 20
    head, tail = samples.mp4(30)[:28], samples.mp4(30)[36:]

    async def video() -> AsyncIterator[bytes]:
        yield head + (8 + size).to_bytes(4) + b"mdat"
        for _ in range(size >> 20):
            yield bytes(1 << 20)
        yield tail

    tracemalloc.start()
    try:
        media = await store.put("one", "long.mp4", video())
        received = 0
        async for chunk in store.open(media).stream():
            received += len(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert received == media.size > size
    assert peak < 12 << 20


async def test_refused_file_leaves_nothing(tmp_path: Path) -> None:
    store = MediaStore.of(f"file://{tmp_path}/media", max_bytes=10_000)
    with pytest.raises(MediaRefused, match="larger than 10,000 bytes"):
        await store.put("one", "a.mp4", parts(samples.mp4(size=20_000)))
    with pytest.raises(MediaRefused, match="is empty"):
        await store.put("one", "a.mp4", parts(b""))
    with pytest.raises(MediaRefused, match=r"sent as image/png"):
        await store.put("one", "a.png", parts(b"MZ this is a program"), "image/png")
    assert [path for path in (tmp_path / "media").rglob("*") if path.is_file()] == []


def test_new_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    MediaStore.of(f"file://{tmp_path}/media")
    assert (tmp_path / "media").stat().st_mode & 0o777 == 0o700


async def test_files_that_are_received_together_share_what_is_free() -> None:
    incoming = Incoming()
    with (
        incoming.counted(parts(b"x" * 60, 20), "one", 100) as first,
        incoming.counted(parts(b"x" * 60, 20), "one", 100) as second,
        incoming.counted(parts(b"x" * 60, 20), "two", 100) as other,
    ):
        assert [len(chunk) async for chunk in first] == [20, 20, 20]
        assert [len(await anext(second)) for _ in range(2)] == [20, 20]
        with pytest.raises(TooManyBytes):
            await anext(second)
        assert [len(chunk) async for chunk in other] == [20, 20, 20]
        with incoming.counted(parts(b"x" * 40, 20), "one", 100) as third:  # the refused one has ended
            assert [len(chunk) async for chunk in third] == [20, 20]
    with incoming.counted(parts(b"x" * 200, 20), "one", 100) as alone:  # the store refuses it
        assert len([chunk async for chunk in alone]) == 10


@pytest.mark.parametrize("url", ["media", "ftp://media", "s3://", "file://"])
def test_place_that_cannot_hold_files_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="media:"):
        MediaStore.of(url)
