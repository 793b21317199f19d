"""Failures between a client and the service: nothing is lost, nothing is done twice, and the error says what
happened."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime import errors
from duetime.errors import DuetimeError, InvalidInput
from duetime.remote import request as requests
from duetime.remote.request import KINDS, problem_of
from tests.remote.conftest import KINDS as CLIENTS
from tests.remote.conftest import Caller, caller
from tests.remote.scripted import CUT, HANG, Script, answer, problem, scripted

ID = "01935c2e-7b3a-7000-8000-000000000000"
AT = "2030-01-01T09:00:00Z"
SUBMITTED = {
    "id": ID,
    "state": "pending",
    "created": True,
    "queue": "q",
    "priority": 5,
    "fire_time": AT,
    "due_at": AT,
    "novelty": 1,
}
JOB = {
    "id": ID,
    "state": "cancelled",
    "target": {"type": "task", "name": "t"},
    "fire_time": AT,
    "due_at": AT,
    "queue": "q",
    "priority": 5,
    "created_at": AT,
}
OK = answer(201, SUBMITTED)
EMPTY = answer(200, {"items": [], "next_cursor": None})

pytestmark = pytest.mark.parametrize("kind", CLIENTS)


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FIRST_RETRY_DELAY", 0.001)


def client(kind: str, script: Script, **options: Any) -> Caller:
    return caller(kind, script.url, **{"timeout": "5s", **options})


@pytest.mark.parametrize(
    "trouble",
    [
        CUT,
        problem(503, "store_unavailable", Retry_After="0"),
        problem(429, "rate_limited"),
        answer(502, b"<html>bad gateway", "text/html"),
        problem(409, "idempotency_in_progress"),
    ],
)
async def test_a_submission_is_repeated_with_the_same_idempotency_key(kind: str, trouble: bytes) -> None:
    async with scripted(trouble, trouble, OK) as script:
        service = client(kind, script)
        done = await service.submit("send", {"n": 1})
        assert str(done.id) == ID
        keys = {seen.headers["idempotency-key"] for seen in script.seen}
        assert (len(script.seen), len(keys)) == (3, 1)
        assert {seen.body for seen in script.seen} == {
            b'{"target":{"type":"task","name":"send"},"payload":{"n":1}}'
        }
        await service.submit("send")
        assert script.seen[-1].headers["idempotency-key"] not in keys
        await service.submit("send", idempotency_key="mine")
        assert script.seen[-1].headers["idempotency-key"] == "mine"
        await service.close()


async def test_request_fails_after_the_last_retry(kind: str) -> None:
    async with scripted(problem(503, "store_unavailable")) as script:
        with pytest.raises(dt.StoreUnavailable) as raised:
            await client(kind, script, retries=2).jobs()
        assert len(script.seen) == 3
        assert raised.value.__notes__ == ["request id r1"]


async def test_retry_after_is_respected_unless_it_is_too_long(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted(problem(429, "too_fast", Retry_After="1"), EMPTY) as script:
        began = asyncio.get_running_loop().time()
        await client(kind, script).jobs()
        assert asyncio.get_running_loop().time() - began >= 1
    async with scripted(problem(429, "too_fast", Retry_After="3600"), EMPTY) as script:
        with pytest.raises(dt.RateLimited) as raised:
            await client(kind, script).jobs()
        assert (raised.value.code, raised.value.status) == ("too_fast", 429)


async def test_unreachable_service_is_retried_and_reported(kind: str) -> None:
    async with scripted(EMPTY) as script:
        pass
    with pytest.raises(dt.ServiceUnreachable, match="cannot be reached") as raised:
        await client(kind, script, retries=1).jobs()
    assert raised.value.sent is False


async def test_missing_reply_ends_with_a_timeout(kind: str) -> None:
    async with scripted(HANG) as script:
        with pytest.raises(dt.ServiceUnreachable, match=r"no answer within 2 s") as raised:
            await client(kind, script, timeout="2s", retries=0).jobs()
        assert raised.value.sent is True


async def test_request_that_is_not_repeatable_is_sent_once(kind: str) -> None:
    """An edit that names its version: its answer was lost, and it is unknown whether it was done."""
    async with scripted(CUT) as script:
        with pytest.raises(dt.ServiceUnreachable):
            await client(kind, script).edit_schedule("s", {"priority": 1}, version=3)
        assert len(script.seen) == 1
        assert script.seen[0].headers["if-match"] == '"3"'


async def test_cancel_with_a_lost_reply_is_known_to_be_done(kind: str) -> None:
    async with scripted(CUT, problem(409, "job_finished"), answer(200, JOB)) as script:
        job = await client(kind, script).cancel_job(ID, "why not")
        assert job.state is dt.State.CANCELLED
        assert [seen.method for seen in script.seen] == ["DELETE", "DELETE", "GET"]
        assert script.seen[0].path.endswith("?reason=why+not")
    async with scripted(
        CUT, problem(409, "job_finished"), answer(200, {**JOB, "state": "succeeded"})
    ) as script:
        with pytest.raises(dt.JobFinished):
            await client(kind, script).cancel_job(ID)
    async with scripted(problem(409, "job_finished"), answer(200, JOB)) as script:
        with pytest.raises(dt.JobFinished):  # no reply was lost: another caller did it
            await client(kind, script).cancel_job(ID)


async def test_removal_with_a_lost_reply_is_known_to_be_done(kind: str) -> None:
    async with scripted(CUT, problem(404, "schedule_not_found")) as script:
        await client(kind, script).remove("s")
    async with scripted(problem(404, "schedule_not_found")) as script:
        with pytest.raises(dt.ScheduleNotFound):
            await client(kind, script).remove("s")


async def test_report_with_a_lost_reply_is_checked(kind: str) -> None:
    async with scripted(
        CUT, problem(409, "job_finished"), answer(200, {**JOB, "state": "succeeded"})
    ) as script:
        assert (await client(kind, script).complete(ID, "t")).state is dt.State.SUCCEEDED
    async with scripted(CUT, problem(409, "fenced"), answer(200, {**JOB, "state": "dead"})) as script:
        with pytest.raises(dt.JobFinished):
            await client(kind, script).complete(ID, "t")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            answer(301, None, Location="https://elsewhere.example/"),
            "redirects to 'https://elsewhere.example/', which the client does not follow",
        ),
        (
            answer(404, b"<h1>no\nway</h1>", "text/html"),
            "404 without problem\\+json: <h1>no way</h1>; check that the address",
        ),
        (answer(200, b"{", "application/json"), "the reply cannot be read"),
        (answer(200, {"items": 3}), "the reply cannot be read"),
        (answer(500, b"{}", "application/problem+json"), "no reason given"),
    ],
)
async def test_reply_that_is_not_from_a_service_is_explained(kind: str, given: bytes, message: str) -> None:
    async with scripted(given) as script:
        with pytest.raises(dt.ServiceError, match=message):
            await client(kind, script).jobs()
        assert len(script.seen) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.7\r\n\r\n",
        b"HTTP/1.1 xyz\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
    ],
)
async def test_reply_that_is_not_http_is_unreachable(kind: str, garbage: bytes) -> None:
    async with scripted(garbage, close=True) as script:
        with pytest.raises(dt.ServiceUnreachable):
            await client(kind, script, retries=0).jobs()


@pytest.mark.parametrize(
    "framing",
    [
        b'Transfer-Encoding: chunked\r\n\r\n19;x\r\n{"items": [{"name": "in-t\r\n'
        b'9\r\nwo-pieces\r\n4\r\n"}]}\r\n0\r\nTrailer: 1\r\n\r\n',
        b'Connection: close\r\n\r\n{"items": [{"name": "in-two-pieces"}]}',
    ],
)
async def test_chunked_and_unframed_replies_are_read(kind: str, framing: bytes) -> None:
    async with scripted(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + framing, close=b"close" in framing
    ) as script:
        service = client(kind, script)
        for _ in range(2):
            assert [queue.name for queue in await service.queues()] == ["in-two-pieces"]
        assert script.connections == (2 if b"close" in framing else 1)
        await service.close()


async def test_connections_are_reused_and_closed_ones_are_replaced(kind: str) -> None:
    async with scripted(EMPTY) as script:
        service = client(kind, script, retries=0)
        for _ in range(3):
            await service.jobs()
        assert script.connections == 1
        script.close = True
        await service.jobs()
        script.close = False
        # The end of the connection has to arrive: several turns of the event loop, not only a length of time.
        for _ in range(20):
            await asyncio.sleep(0.005)
        await service.jobs()
        assert len(script.seen) == 5
        assert script.connections == 2
        await service.close()
        with pytest.raises(dt.NotOpen):
            await service.jobs()


async def test_key_is_sent_in_the_header_only(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async with scripted(problem(401, "key_invalid", "the key is not known")) as script:
        service = client(kind, script, key="dt_canary")
        with pytest.raises(dt.AccessDenied) as raised:
            await service.jobs()
        assert script.seen[0].headers["authorization"] == "Bearer dt_canary"
        assert "canary" not in f"{raised.value!r} {service.client!r} {caplog.text}"
        assert script.seen[0].headers["host"] == script.url.removeprefix("http://")
    assert (raised.value.code, raised.value.status) == ("key_invalid", 401)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "localhost:8080",
        "http://",
        "http://a:b@host",
        "http://host/?x=1",
        "http://host:99999",
        "http://h/a b",
    ],
)
def test_invalid_address_is_refused(kind: str, url: str) -> None:
    with pytest.raises(dt.ConfigError, match="server: "):
        caller(kind, url)


@pytest.mark.parametrize(
    "options", [{"key": "a b"}, {"key": ""}, {"key": "a\r\nX: y"}, {"retries": -1}, {"timeout": "0s"}]
)
def test_invalid_client_option_is_refused(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(DuetimeError):
        caller(kind, "http://127.0.0.1", **options)


def test_key_over_plain_http_logs_a_warning(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    for url in ("http://127.0.0.1:1", "http://localhost", "https://service.example"):
        caller(kind, url, key="dt_canary")
    assert caplog.text == ""
    caller(kind, "http://service.example", key="dt_canary")
    assert "without encryption" in caplog.text
    assert "canary" not in caplog.text


async def test_path_prefix_of_the_service_is_kept(kind: str) -> None:
    async with scripted(EMPTY) as script:
        for suffix in ("", "/", "/api/v1", "/api/v1/"):
            await caller(kind, f"{script.url}/scheduler{suffix}").queues()
        assert {seen.path for seen in script.seen} == {"/scheduler/api/v1/queues?limit=1000"}


async def test_certificates_are_verified(kind: str, tmp_path: Path) -> None:
    import ssl

    files = [str(tmp_path / name) for name in ("key.pem", "cert.pem")]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        files[0],
        "-out",
        files[1],
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-days",
        "2",
    ]
    subprocess.run(command, check=True, capture_output=True)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(files[1], files[0])
    async with scripted(EMPTY, tls=server) as script:
        with pytest.raises(dt.ServiceError, match=r"certificate of .* is not trusted"):
            await client(kind, script).jobs()
        trusting = client(kind, script, tls=ssl.create_default_context(cafile=files[1]))
        assert await trusting.jobs() == []
        await trusting.close()


@pytest.mark.parametrize("code", sorted(KINDS))
def test_problem_code_raises_the_error_of_the_library(kind: str, code: str) -> None:
    body = json.dumps(
        {"code": code, "detail": "queue: no such thing", "field": "queue", "status": 422}
    ).encode()
    raised = problem_of(422, {"content-type": "application/problem+json"}, body)
    assert type(raised) is KINDS[code]
    assert raised.code == code
    if isinstance(raised, InvalidInput):
        assert (raised.field, raised.reason, raised.message) == (
            "queue",
            "no such thing",
            "queue: no such thing",
        )


def test_every_error_of_the_library_is_known_by_its_code(kind: str) -> None:
    ours = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, DuetimeError)}
    assert {one for one in ours if not issubclass(one, errors.ServiceError | errors.JobFailed)} == set(
        KINDS.values()
    )


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the parent owns the dropped socket
async def test_forked_process_opens_its_own_connections(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted(answer(200, JOB)) as script:
        client = caller("blocking", script.url)  # an AsyncClient belongs to the event loop of one process
        await client.get_job(ID)
        await client.get_job(ID)
        process = os.getpid()
        monkeypatch.setattr("os.getpid", lambda: process + 1)
        await client.get_job(ID)
        assert [seen.connection for seen in script.seen] == [1, 1, 2]
