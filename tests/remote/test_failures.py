"""What goes wrong between a client and the service: nothing is lost, nothing is done twice, and the error says what happened."""

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
from duetime.remote import talk
from duetime.remote.problems import KINDS, problem_of
from tests.remote.conftest import KINDS as CLIENTS
from tests.remote.conftest import Caller, caller
from tests.remote.scripted import CUT, HANG, Script, answer, problem, scripted

ID = "01935c2e-7b3a-7000-8000-000000000000"
AT = "2030-01-01T09:00:00Z"
SUBMITTED = {"id": ID, "state": "pending", "created": True, "queue": "q", "priority": 5, "fire_time": AT, "due_at": AT, "novelty": 1}
JOB = {
    "id": ID, "state": "cancelled", "target": {"type": "task", "name": "t"}, "fire_time": AT, "due_at": AT, "queue": "q", "priority": 5,
    "created_at": AT,
}  # fmt: skip
OK = answer(201, SUBMITTED)
EMPTY = answer(200, {"items": [], "next_cursor": None})

pytestmark = pytest.mark.parametrize("kind", CLIENTS)


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "FIRST_PAUSE", 0.001)


def client(kind: str, script: Script, **options: Any) -> Caller:
    return caller(kind, script.url, **{"timeout": "5s", **options})


@pytest.mark.parametrize("trouble", [CUT, problem(503, "store_unavailable", Retry_After="0"), problem(429, "rate_limited"),
                                     answer(502, b"<html>bad gateway", "text/html"), problem(409, "idempotency_in_progress")])  # fmt: skip
async def test_a_submission_is_repeated_with_the_same_idempotency_key(kind: str, trouble: bytes) -> None:
    async with scripted(trouble, trouble, OK) as script:
        service = client(kind, script)
        done = await service.submit("send", {"n": 1})
        assert str(done.id) == ID
        keys = {seen.headers["idempotency-key"] for seen in script.seen}
        assert (len(script.seen), len(keys)) == (3, 1)
        assert {seen.body for seen in script.seen} == {b'{"target":{"type":"task","name":"send"},"payload":{"n":1}}'}
        await service.submit("send")
        assert script.seen[-1].headers["idempotency-key"] not in keys
        await service.submit("send", idempotency_key="mine")
        assert script.seen[-1].headers["idempotency-key"] == "mine"
        await service.close()


async def test_retries_end(kind: str) -> None:
    async with scripted(problem(503, "store_unavailable")) as script:
        with pytest.raises(dt.StoreUnavailable) as raised:
            await client(kind, script, retries=2).jobs()
        assert len(script.seen) == 3
        assert raised.value.__notes__ == ["request id r1"]


async def test_retry_after_is_waited_for_unless_it_is_too_long(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted(problem(429, "too_fast", Retry_After="1"), EMPTY) as script:
        began = asyncio.get_running_loop().time()
        await client(kind, script).jobs()
        assert asyncio.get_running_loop().time() - began >= 1
    async with scripted(problem(429, "too_fast", Retry_After="3600"), EMPTY) as script:
        with pytest.raises(dt.RateLimited) as raised:
            await client(kind, script).jobs()
        assert (raised.value.code, raised.value.status) == ("too_fast", 429)


async def test_nobody_there(kind: str) -> None:
    async with scripted(EMPTY) as script:
        pass
    with pytest.raises(dt.ServiceUnreachable, match="cannot be reached") as raised:
        await client(kind, script, retries=1).jobs()
    assert raised.value.sent is False


async def test_an_answer_that_does_not_come(kind: str) -> None:
    async with scripted(HANG) as script:
        with pytest.raises(dt.ServiceUnreachable, match=r"no answer within 2 s") as raised:
            await client(kind, script, timeout="2s", retries=0).jobs()
        assert raised.value.sent is True


async def test_what_must_not_happen_twice_is_not_repeated_blindly(kind: str) -> None:
    """An edit that names its version: its answer was lost, and nobody knows."""
    async with scripted(CUT) as script:
        with pytest.raises(dt.ServiceUnreachable):
            await client(kind, script).edit_schedule("s", {"priority": 1}, version=3)
        assert len(script.seen) == 1
        assert script.seen[0].headers["if-match"] == '"3"'


async def test_a_cancel_whose_answer_was_lost_is_known_to_be_done(kind: str) -> None:
    async with scripted(CUT, problem(409, "job_finished"), answer(200, JOB)) as script:
        job = await client(kind, script).cancel_job(ID, "why not")
        assert job.state is dt.State.CANCELLED
        assert [seen.method for seen in script.seen] == ["DELETE", "DELETE", "GET"]
        assert script.seen[0].path.endswith("?reason=why+not")
    async with scripted(CUT, problem(409, "job_finished"), answer(200, {**JOB, "state": "succeeded"})) as script:
        with pytest.raises(dt.JobFinished):
            await client(kind, script).cancel_job(ID)
    async with scripted(problem(409, "job_finished"), answer(200, JOB)) as script:
        with pytest.raises(dt.JobFinished):  # no answer was lost: somebody else did it
            await client(kind, script).cancel_job(ID)


async def test_a_removal_whose_answer_was_lost_is_known_to_be_done(kind: str) -> None:
    async with scripted(CUT, problem(404, "schedule_not_found")) as script:
        await client(kind, script).remove("s")
    async with scripted(problem(404, "schedule_not_found")) as script:
        with pytest.raises(dt.ScheduleNotFound):
            await client(kind, script).remove("s")


async def test_a_report_whose_answer_was_lost(kind: str) -> None:
    async with scripted(CUT, problem(409, "job_finished"), answer(200, {**JOB, "state": "succeeded"})) as script:
        assert (await client(kind, script).complete(ID, "t")).state is dt.State.SUCCEEDED
    async with scripted(CUT, problem(409, "fenced"), answer(200, {**JOB, "state": "dead"})) as script:
        with pytest.raises(dt.JobFinished):
            await client(kind, script).complete(ID, "t")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (answer(301, None, Location="https://elsewhere.example/"), "redirects to 'https://elsewhere.example/', which is not followed"),
        (answer(404, b"<h1>no\nway</h1>", "text/html"), "404 and no problem\\+json: <h1>no way</h1>; is the address"),
        (answer(200, b"{", "application/json"), "the answer cannot be read"),
        (answer(200, {"items": 3}), "the answer cannot be read"),
        (answer(500, b"{}", "application/problem+json"), "no reason given"),
    ],
)
async def test_what_is_no_answer_of_ours(kind: str, given: bytes, told: str) -> None:
    async with scripted(given) as script:
        with pytest.raises(dt.ServiceError, match=told):
            await client(kind, script).jobs()
        assert len(script.seen) == 1


@pytest.mark.parametrize(
    "garbage", [b"SSH-2.0-OpenSSH_9.7\r\n\r\n", b"HTTP/1.1 xyz\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"]
)
async def test_what_is_not_http(kind: str, garbage: bytes) -> None:
    async with scripted(garbage, close=True) as script:
        with pytest.raises(dt.ServiceUnreachable):
            await client(kind, script, retries=0).jobs()


@pytest.mark.parametrize("framing", [
    b"Transfer-Encoding: chunked\r\n\r\n19;x\r\n{\"items\": [{\"name\": \"in-t\r\n9\r\nwo-pieces\r\n4\r\n\"}]}\r\n0\r\nTrailer: 1\r\n\r\n",
    b"Connection: close\r\n\r\n{\"items\": [{\"name\": \"in-two-pieces\"}]}",
])  # fmt: skip
async def test_other_framings_of_an_answer(kind: str, framing: bytes) -> None:
    async with scripted(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + framing, close=b"close" in framing) as script:
        service = client(kind, script)
        for _ in range(2):
            assert [queue.name for queue in await service.queues()] == ["in-two-pieces"]
        assert script.connections == (2 if b"close" in framing else 1)
        await service.close()


async def test_connections_are_used_again_and_a_closed_one_is_noticed(kind: str) -> None:
    async with scripted(EMPTY) as script:
        service = client(kind, script, retries=0)
        for _ in range(3):
            await service.jobs()
        assert script.connections == 1
        script.close = True
        await service.jobs()
        script.close = False
        for _ in range(20):  # the end of the connection has to arrive: several turns of the event loop, not only a length of time
            await asyncio.sleep(0.005)
        await service.jobs()
        assert len(script.seen) == 5
        assert script.connections == 2
        await service.close()
        with pytest.raises(dt.NotOpen):
            await service.jobs()


async def test_the_key_goes_into_the_header_and_nowhere_else(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async with scripted(problem(401, "key_invalid", "the key is not known")) as script:
        service = client(kind, script, key="dt_canary")
        with pytest.raises(dt.AccessDenied) as raised:
            await service.jobs()
        assert script.seen[0].headers["authorization"] == "Bearer dt_canary"
        assert "canary" not in f"{raised.value!r} {service.client!r} {caplog.text}"
        assert script.seen[0].headers["host"] == script.url.removeprefix("http://")
    assert (raised.value.code, raised.value.status) == ("key_invalid", 401)


@pytest.mark.parametrize(
    "url", ["ftp://x", "localhost:8080", "http://", "http://a:b@host", "http://host/?x=1", "http://host:99999", "http://h/a b"]
)
def test_addresses_that_cannot_be_meant(kind: str, url: str) -> None:
    with pytest.raises(dt.ConfigError, match="server: "):
        caller(kind, url)


@pytest.mark.parametrize("options", [{"key": "a b"}, {"key": ""}, {"key": "a\r\nX: y"}, {"retries": -1}, {"timeout": "0s"}])
def test_options_that_cannot_be_meant(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(DuetimeError):
        caller(kind, "http://127.0.0.1", **options)


def test_a_key_in_clear_is_warned_of(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    for url in ("http://127.0.0.1:1", "http://localhost", "https://service.example"):
        caller(kind, url, key="dt_canary")
    assert caplog.text == ""
    caller(kind, "http://service.example", key="dt_canary")
    assert "without encryption" in caplog.text
    assert "canary" not in caplog.text


async def test_a_path_before_the_api(kind: str) -> None:
    async with scripted(EMPTY) as script:
        for suffix in ("", "/", "/api/v1", "/api/v1/"):
            await caller(kind, f"{script.url}/scheduler{suffix}").queues()
        assert {seen.path for seen in script.seen} == {"/scheduler/api/v1/queues"}


async def test_certificates_are_checked(kind: str, tmp_path: Path) -> None:
    import ssl

    files = [str(tmp_path / name) for name in ("key.pem", "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", files[0], "-out", files[1], "-subj", "/CN=localhost",
               "-addext", "subjectAltName=DNS:localhost", "-days", "2"]  # fmt: skip
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
def test_a_refusal_is_the_same_error_as_in_the_library(kind: str, code: str) -> None:
    body = json.dumps({"code": code, "detail": "queue: no such thing", "field": "queue", "status": 422}).encode()
    raised = problem_of(422, {"content-type": "application/problem+json"}, body)
    assert type(raised) is KINDS[code]
    assert raised.code == code
    if isinstance(raised, InvalidInput):
        assert (raised.field, raised.reason, raised.message) == ("queue", "no such thing", "queue: no such thing")


def test_every_error_of_the_library_is_known_by_its_code(kind: str) -> None:
    ours = {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, DuetimeError)}
    assert {one for one in ours if not issubclass(one, errors.ServiceError | errors.JobFailed)} == set(KINDS.values())


def test_a_forked_process_makes_connections_of_its_own(kind: str) -> None:
    from duetime.remote.blocking import Wire
    from duetime.remote.message import Line

    wire = Wire(Line.of("http://127.0.0.1:1", None, "1s", None))
    wire._process = os.getpid() + 1
    wire._kept.append(None)  # type: ignore[arg-type]  # what was the parent's is not even looked at
    with pytest.raises(dt.ServiceUnreachable):
        wire.send(talk.ask("GET", "/jobs"))
