"""Calls of an application to servers that its users name: `duetime.egress`."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from duetime.egress import Answer, CallFailed, GuardedClient
from tests.http.scene import Sink, serving

HEAD = b"HTTP/1.1 200 OK\r\n"
HERE = ("127.0.0.1",)


@asynccontextmanager
async def client(*allowed: str, **options: Any) -> AsyncIterator[GuardedClient]:
    made = GuardedClient(allowed, plain_http=True, **options)
    yield made
    await made.close()


def fixed(body: bytes, *headers: bytes) -> Sink:
    lines = b"".join(b"%s\r\n" % line for line in headers)
    return Sink(b"%s%sContent-Length: %d\r\n\r\n%s" % (HEAD, lines, len(body), body))


async def failure(client: GuardedClient, url: str) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await client.request("GET", url)
    assert caught.value.__cause__ is None
    return caught.value


async def test_allowed_server_is_called() -> None:
    async with serving(fixed(b"{}")) as sink, client(*HERE, headers={"User-Agent": "me"}) as calls:
        answer = await calls.request("POST", sink.url(), headers={"X-One": "1"}, json={"a": 1})
    assert (answer.status, answer.body) == (200, b"{}")
    for line in (b"POST /run HTTP/1.1", b"User-Agent: me", b"X-One: 1", b"Accept-Encoding: identity"):
        assert line in sink.requests[0]


async def test_other_addresses_get_nothing() -> None:
    async with serving(Sink()) as sink, client() as calls:
        for host in ("127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "2130706433"):
            failed = await failure(calls, sink.url(host))
            assert (failed.sent, failed.allowed) == (False, False), host
            assert host == "2130706433" or str(failed) == "its address is not allowed"
    assert sink.connections == 0
    made = GuardedClient(HERE)
    assert not (await failure(made, sink.url())).allowed, "plain http"
    await made.close()


async def test_redirect_is_an_answer() -> None:
    moved = Sink(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.9/\r\nContent-Length: 0\r\n\r\n")
    async with serving(moved) as sink, client(*HERE) as calls:
        answer: Answer = await calls.request("GET", sink.url())
    assert (answer.status, len(sink.requests)) == (302, 1)


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        (b"x" * 1_000, b"X-A: b", b"x" * 1_000),
        (gzip.compress(b"x" * 1_000), b"Content-Encoding: gzip", b"x" * 1_000),
        (zlib.compress(b"x" * 1_000), b"Content-Encoding: deflate", b"x" * 1_000),
        (b"x" * 1_001, b"X-A: b", None),
        (gzip.compress(b"x" * 1_001), b"Content-Encoding: gzip", None),
        (gzip.compress(b"x" * 900)[:-9], b"Content-Encoding: gzip", None),
        (b"not packed", b"Content-Encoding: gzip", None),
        (b"packed", b"Content-Encoding: br", None),
    ],
)
async def test_answer_is_bounded(body: bytes, header: bytes, expected: bytes | None) -> None:
    async with serving(fixed(body, header)) as sink, client(*HERE, max_answer=1_000) as calls:
        if expected is None:
            assert (await failure(calls, sink.url())).sent
        else:
            assert (await calls.request("GET", sink.url())).body == expected


async def test_what_is_known_of_a_failed_call() -> None:
    async with serving(Sink(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")) as sink:
        pass
    async with client(*HERE) as calls:
        failed = await failure(calls, sink.url())
        assert (failed.sent, failed.allowed) == (False, True), "the server has ended"
    async with serving(Sink(b"no http\r\n\r\n")) as sink, client(*HERE) as calls:
        assert (await failure(calls, sink.url())).sent
