"""Secret headers reach only the target: not the store, errors, results, logs or tracebacks."""

from __future__ import annotations

import gzip
import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duetime.errors import InvalidInput
from duetime.model.job import State
from duetime.model.keyring import KeyRing
from duetime.model.signing import write_secret
from tests.http.scene import LOCAL, RING, Sink, attempt, calling, job, serving

CANARY = "canary-secret-4711"
SIGNING = write_secret(b"canary-signing-secret-4711-canary")
TARGET = {"secret_headers": {"Authorization": CANARY}, "signing_secret": SIGNING}


def echo(status: int) -> bytes:
    body = f"you sent {CANARY} and {SIGNING}"
    head = f"HTTP/1.1 {status} {CANARY}\r\nX-Request-Id: {CANARY}\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n{body}".encode()


@pytest.mark.parametrize("status", [200, 302, 404, 500])
async def test_a_target_that_sends_the_secret_back(status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(Sink(echo(status))) as sink, calling() as handler:
        wanted = job({"url": sink.url(path=f"/run?token={CANARY}"), **TARGET}, failures=4)
        done = await attempt(handler, wanted)
    assert f"Authorization: {CANARY}".encode() in sink.requests[0]
    assert wanted.target_spec is not None
    stored = wanted.target_spec.replace(f"token={CANARY}".encode(), b"")
    for text in (
        str(done),
        str(done.error),
        str(done.result),
        caplog.text,
        str(stored),
        repr(handler._targets.__dict__).replace(f"token={CANARY}", ""),
    ):
        assert CANARY not in text
        assert SIGNING not in text
    assert b"you sent *** and ***" in (done.result or b"")


@pytest.mark.parametrize("before", range(250, 257))
async def test_secret_at_the_end_of_what_is_kept_is_hidden_whole(before: int) -> None:
    """It is hidden before the text is cut: a part of it could not be found."""
    body = "b" * (4_096 - 256 + before) + CANARY
    packed = gzip.compress(body.encode())
    head = f"HTTP/1.1 200 OK\r\nX-Request-Id: {'h' * before}{CANARY}\r\n"
    plain = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    small = f"{head}Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode() + packed
    for response in (plain, small):
        async with serving(Sink(response)) as sink, calling() as handler:
            done = await attempt(handler, job({"url": sink.url(), **TARGET}))
        assert b"h" * before in (done.result or b"")
        assert CANARY[:1].encode() not in (done.result or b"").partition(b"h" * before)[2][:6]
        assert b"b" + CANARY[:2].encode() not in (done.result or b"")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://10.0.0.1/", "http://no-such-name.invalid/", "https://127.0.0.1:1/"]
)
async def test_failing_call_raises_its_error(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with calling(LOCAL) as handler:
        done = await attempt(handler, job({"url": url, **TARGET}))
    assert done.state in (State.PENDING, State.DEAD)
    assert CANARY not in f"{done} {caplog.text}"


async def test_a_node_without_the_key_says_so_and_does_not_call() -> None:
    async with serving(Sink()) as sink, calling(ring=KeyRing()) as handler:
        done = await attempt(handler, job({"url": sink.url(), **TARGET}))
    assert (done.state, done.failures, sink.connections) == (State.PENDING, 0, 0)
    assert "add it to this node's secret_keys" in (done.error or "")


async def test_another_tenant_cannot_open_it() -> None:
    """The sealed value copied into another tenant's job."""
    stolen = job({"url": "http://127.0.0.1:1/", **TARGET}, tenant="acme")._replace(tenant="evil")
    async with serving(Sink()) as sink, calling() as handler:
        done = await attempt(handler, stolen)
    assert "cannot be decrypted" in (done.error or "")
    assert sink.connections == 0


# -- on the wire
# ------------------------------------------------------------------------------------------------------
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.dictionaries(
        st.text(st.sampled_from("aX-\r\n: \0ä_"), min_size=1, max_size=6),
        st.text(st.sampled_from("a\r\n:\t \0ä;"), max_size=8),
        max_size=3,
    ),
    st.text(st.sampled_from("ab\r\n\0 ä%,"), max_size=8),
)
async def test_nothing_a_caller_writes_ends_a_header(headers: dict[str, str], schedule: str) -> None:
    """S29, on a raw socket: as many lines as headers, and no second request."""
    async with serving(Sink()) as sink, calling(LOCAL, RING) as handler:
        try:
            wanted = job(
                {"url": sink.url(), "headers": headers}, b'"GET / HTTP/1.1\\r\\n\\r\\n"', schedule=schedule
            )
        except InvalidInput:
            return
        await attempt(handler, wanted)
    [request] = sink.requests
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert body == b'"GET / HTTP/1.1\\r\\n\\r\\n"'
    assert not any(byte in head.replace(b"\r\n", b"") for byte in b"\r\n\0")
    names = [line.partition(b":")[0].lower() for line in lines[1:]]
    assert len(names) == len(set(names))
    assert {name.lower().encode() for name in headers} <= set(names)
