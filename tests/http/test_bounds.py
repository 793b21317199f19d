"""However large, packed or slow an answer is: what it costs is bounded."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from duetime.model.job import State
from tests.http.scene import Serve, Sink, attempt, calling, job, read_request, result, serving

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def fixed(body: bytes, *headers: bytes) -> bytes:
    return b"%s%sContent-Length: %d\r\n\r\n%s" % (
        HEAD,
        b"".join(line + b"\r\n" for line in headers),
        len(body),
        body,
    )


@pytest.mark.parametrize(
    ("size", "truncated", "reused"),
    [
        (0, False, True),
        (4_096, False, True),
        (4_097, True, True),
        (60_000, True, True),
        (5_000_000, True, False),
    ],
)
async def test_large_response_is_truncated(size: int, truncated: bool, reused: bool) -> None:
    async with serving(Sink(fixed(b"x" * size))) as sink, calling() as handler:
        for _ in range(2):
            done = await attempt(handler, job({"url": sink.url()}))
            kept = result(done)
            assert (done.state, len(kept["body"]), kept.get("truncated", False)) == (
                State.SUCCEEDED,
                min(size, 4_096),
                truncated,
            )
    assert sink.connections == (1 if reused else 2)


@pytest.mark.parametrize("packing", [b"gzip", b"deflate"])
async def test_compression_bomb_is_not_decompressed(packing: bytes) -> None:
    bomb = gzip.compress(bytes(50_000_000)) if packing == b"gzip" else zlib.compress(bytes(50_000_000))
    assert len(bomb) < 64 * 1024
    async with serving(Sink(fixed(bomb, b"Content-Encoding: " + packing))) as sink, calling() as handler:
        tracemalloc.start()
        try:
            done = await attempt(handler, job({"url": sink.url()}))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (len(result(done)["body"]), result(done)["truncated"]) == (4_096, True)
    assert peak < 2_000_000
    assert b"Accept-Encoding: identity" in sink.requests[0]


@pytest.mark.parametrize(
    ("body", "packing", "shown"),
    [
        (gzip.compress(b"hello", mtime=0), b"gzip", "hello"),
        (b"no gzip at all", b"gzip", "(cannot be decompressed)"),
        (b"abc", b"br", "(encoded as br: 3 bytes)"),
        (b"abc", b"identity", "abc"),
        (gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), b"gzip, gzip", "(encoded as gzip, gzip: "),
    ],
)
async def test_packed_though_not_asked_for(body: bytes, packing: bytes, shown: str) -> None:
    async with serving(Sink(fixed(body, b"Content-Encoding: " + packing))) as sink, calling() as handler:
        assert result(await attempt(handler, job({"url": sink.url()})))["body"].startswith(shown)


@pytest.mark.parametrize("chunked", [True, False])
async def test_endless_response_is_cut(chunked: bool) -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"\r\n"))
        piece = b"x" * 8_192
        try:
            while True:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                await writer.drain()
        finally:
            ended.set()

    async with serving(Sink(serve=serve)) as sink, calling() as handler:
        done = await attempt(handler, job({"url": sink.url()}))
        await asyncio.wait_for(ended.wait(), 60)  # we have hung up
    assert (done.state, len(result(done)["body"]), result(done)["truncated"]) == (
        State.SUCCEEDED,
        4_096,
        True,
    )


def dripping(first: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(first)
        while True:
            await asyncio.sleep(0.02)
            writer.write(b"x")
            await writer.drain()

    return serve


@pytest.mark.parametrize(
    "first",
    [b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nX: ", HEAD + b"Content-Length: 1000\r\n\r\n", HEAD + b"\r\n"],
)
async def test_a_slow_drip_ends_with_the_timeout(first: bytes) -> None:
    """Whatever part of the answer comes letter by letter."""
    async with serving(Sink(serve=dripping(first))) as sink, calling() as handler:
        done = await asyncio.wait_for(attempt(handler, job({"url": sink.url(), "timeout": "300ms"})), 60)
    assert done.state is State.PENDING
    assert done.error == f"no complete response within 300ms from POST {sink.url()}"


@pytest.mark.parametrize(
    ("body", "shown"),
    [(b"a\0b", "a\ufffdb"), (b"\xff\xfe", "\ufffd\ufffd"), (b"\xed\xa0\x80", "\ufffd" * 3)],
)
async def test_kept_body_is_text_every_store_can_hold(body: bytes, shown: str) -> None:
    async with serving(Sink(fixed(body))) as sink, calling() as handler:
        assert result(await attempt(handler, job({"url": sink.url()})))["body"] == shown


async def test_only_few_headers_are_kept_and_none_is_long() -> None:
    answer = fixed(
        b"", b"Set-Cookie: canary", b"Server: x", b"X-Request-Id: " + b"r" * 1_000, b"ETag: \xff\x1b[0m"
    )
    async with serving(Sink(answer)) as sink, calling() as handler:
        kept = result(await attempt(handler, job({"url": sink.url()})))["headers"]
    assert set(kept) == {"Content-Type", "Content-Length", "X-Request-Id", "ETag"}
    assert len(kept["X-Request-Id"]) == 256


async def test_the_error_is_one_clear_line() -> None:
    """Whatever the answer holds."""
    answer = fixed(b"first\r\nsecond \x1b[31mred\x07 " + b"x" * 1_000).replace(b"200 OK", b"500 Oh\x01no")
    async with serving(Sink(answer)) as sink, calling() as handler:
        error = (await attempt(handler, job({"url": sink.url()}))).error or ""
    assert error.isprintable()
    assert len(error) < 400


async def test_the_reason_of_the_status_line_is_ours() -> None:
    async with (
        serving(Sink(b"HTTP/1.1 404 canary\r\nContent-Length: 0\r\n\r\n")) as sink,
        calling() as handler,
    ):
        assert (
            await attempt(handler, job({"url": sink.url()}))
        ).error == f"HTTP 404 Not Found from POST {sink.url()}"
