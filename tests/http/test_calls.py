"""What is sent, what is kept, and what each answer means for the job."""

from __future__ import annotations

import asyncio
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import pytest
from standardwebhooks.webhooks import Webhook

from duetime.errors import DuetimeError
from duetime.invokers.http.echo import EchoAgent
from duetime.model.codec import encode
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Ending, State
from duetime.model.keyring import KeyRing
from duetime.model.signing import endpoint_secrets, verify_report_token, write_secret
from duetime.model.trace import attempt_trace
from tests.http.scene import NOW, RING, Sink, attempt, calling, job, result, serving

JOB_ID = "00000000-0000-0000-0000-000000000007"


def lines(request: bytes) -> dict[str, str]:
    head = request.partition(b"\r\n\r\n")[0].decode("ascii")
    return {
        name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])
    }


async def test_target_receives_the_payload_and_the_job_headers() -> None:
    async with serving(Sink()) as sink, calling() as handler:
        target = {
            "url": sink.url(path="/a/b?c=%20d"),
            "headers": {"X-Team": "billing", "content-type": "application/vnd.x+json"},
        }
        done = await attempt(
            handler, job(target, b'{"b": 1,"a":"\xc3\xa4"}', schedule="n\u00e4chtlich, 2", attempt=3)
        )
    [request] = sink.requests
    sent = lines(request)
    assert request.startswith(b"POST /a/b?c=%20d HTTP/1.1\r\n")
    assert request.endswith(b'\r\n\r\n{"b": 1,"a":"\xc3\xa4"}')
    assert sent["host"] == f"127.0.0.1:{sink.port}"
    assert sent["idempotency-key"] == sent["duetime-job-id"] == JOB_ID
    assert (sent["duetime-attempt"], sent["duetime-fire-time"]) == ("3", "2027-01-15T08:00:00Z")
    assert sent["duetime-schedule"] == "n%C3%A4chtlich, 2"
    assert sent["traceparent"] == attempt_trace(UUID(JOB_ID), 3, None).id.traceparent
    assert (sent["x-team"], sent["content-type"]) == ("billing", "application/vnd.x+json")
    assert (done.state, result(done)["body"], result(done)["status"]) == (State.SUCCEEDED, "ok", 200)


async def test_signed_over_the_very_bytes_that_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each endpoint by its own secret, the same id on every attempt."""
    monkeypatch.setattr("standardwebhooks.webhooks.datetime", _Frozen)
    ring = KeyRing(
        (*RING.keys, *KeyRing.parse(["old:" + "b2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkbw=="]).keys)
    )
    async with serving(Sink()) as sink, calling(ring=ring) as handler:
        for number in (1, 2):
            await attempt(handler, job({"url": sink.url()}, b'{"b": 1,  "a": 2}', attempt=number))
    secrets = endpoint_secrets(ring, "default", f"http://127.0.0.1:{sink.port}")
    assert len(secrets) == 2
    for request in sink.requests:
        for secret in secrets:
            Webhook(write_secret(secret)).verify(request.partition(b"\r\n\r\n")[2], lines(request))
    assert {lines(request)["webhook-id"] for request in sink.requests} == {f"job_{JOB_ID}"}


async def test_signed_with_the_target_s_own_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("standardwebhooks.webhooks.datetime", _Frozen)
    secret = write_secret(b"o" * 32)
    async with serving(Sink()) as sink, calling() as handler:
        await attempt(handler, job({"url": sink.url(), "signing_secret": secret}))
    Webhook(secret).verify(b"{}", lines(sink.requests[0]))
    assert len(lines(sink.requests[0])["webhook-signature"].split()) == 1


async def test_the_same_target_is_signed_by_each_tenant_s_own_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is prepared for one tenant is never used for another."""
    monkeypatch.setattr("standardwebhooks.webhooks.datetime", _Frozen)
    async with serving(Sink()) as sink, calling() as handler:
        for tenant in ("acme", "other"):
            await attempt(handler, job({"url": sink.url()}, tenant=tenant))
    for tenant, request in zip(("acme", "other"), sink.requests, strict=True):
        [secret] = endpoint_secrets(RING, tenant, f"http://127.0.0.1:{sink.port}")
        Webhook(write_secret(secret)).verify(b"{}", lines(request))


async def test_without_a_key_nothing_is_signed() -> None:
    async with serving(Sink()) as sink, calling(ring=KeyRing()) as handler:
        assert (await attempt(handler, job({"url": sink.url(), "async": True}))).state is State.SUCCEEDED
    assert not {"webhook-id", "webhook-signature", "duetime-report-token"} & lines(sink.requests[0]).keys()


@pytest.mark.parametrize(
    ("target", "payload", "kind", "body"),
    [
        ({}, b"null", None, b""),
        ({"method": "GET"}, b'{"a":1}', None, b""),
        ({"method": "DELETE"}, b'{"a":1}', "application/json", b'{"a":1}'),
        ({"body": "raw"}, b'"a=1\\nb=\xc3\xa4"', "text/plain; charset=utf-8", b"a=1\nb=\xc3\xa4"),
        ({"body": "raw", "headers": {"Content-Type": "text/csv"}}, b'"a,b"', "text/csv", b"a,b"),
        ({"method": "PATCH"}, b"[]", "application/json", b"[]"),
    ],
)
async def test_body_and_method_must_match(
    target: dict[str, Any], payload: bytes, kind: str | None, body: bytes
) -> None:
    async with serving(Sink()) as sink, calling() as handler:
        await attempt(handler, job({"url": sink.url(), **target}, payload))
    assert sink.requests[0].partition(b"\r\n\r\n")[2] == body
    assert lines(sink.requests[0]).get("content-type") == kind


async def test_connections_are_used_again() -> None:
    async with serving(Sink()) as sink, calling() as handler:
        for number in range(20):
            await attempt(handler, job({"url": sink.url(path=f"/{number}")}))
        assert (len(sink.requests), sink.connections) == (20, 1)
        for raw in (b"HTTP/1.1 204 No Content\r\n\r\n", answer(500), answer(302), answer(404)):
            sink.answer = raw
            await attempt(handler, job({"url": sink.url()}))
        sink.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
        await attempt(handler, job({"url": sink.url(), "method": "HEAD"}))
        await attempt(handler, job({"url": sink.url(), "method": "HEAD"}))
        assert (len(sink.requests), sink.connections) == (26, 1)
        sink.answer = answer(200)
        await asyncio.gather(*(attempt(handler, job({"url": sink.url()})) for _ in range(10)))
        assert sink.connections <= 10


# -- outcomes
# ---------------------------------------------------------------------------------------------------------
def answer(status: int, *headers: str, body: str = "why") -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status} Reason", f"Content-Length: {len(body)}", *headers])
    return f"{head}\r\n\r\n{body}".encode()


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_success_codes_decide(status: int) -> None:
    async with serving(Sink(answer(status, body=""))) as sink, calling() as handler:
        done = await attempt(handler, job({"url": sink.url()}))
    assert (done.state, done.ending, result(done)["status"], done.error) == (
        State.SUCCEEDED,
        Ending.SUCCEEDED,
        status,
        None,
    )


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
async def test_temporary_failure_is_retried(status: int) -> None:
    async with serving(Sink(answer(status))) as sink, calling() as handler:
        done = await attempt(handler, job({"url": sink.url(path="/run?token=canary")}))
        last = await attempt(handler, job({"url": sink.url()}, failures=4))
    assert (done.state, done.ending, done.failures) == (State.PENDING, Ending.FAILED, 1)
    assert done.error is not None
    assert done.error.startswith(f"HTTP {status} ")
    assert done.error.endswith(f"from POST {sink.url()}: why")
    assert "\n" not in done.error
    assert (last.state, result(last)["status"], result(last)["body"]) == (State.DEAD, status, "why")


@pytest.mark.parametrize("status", [300, 301, 302, 304, 307, 400, 401, 403, 404, 409, 410, 422, 499])
async def test_dead_at_once_with_the_answer_kept(status: int) -> None:
    async with (
        serving(Sink(answer(status, body="" if status == 304 else "why"))) as sink,
        calling() as handler,
    ):
        done = await attempt(handler, job({"url": sink.url()}))
    assert (done.state, done.ending, done.failures) == (State.DEAD, Ending.FAILED, 1)
    assert result(done)["status"] == status
    assert f"HTTP {status}" in (done.error or "")


async def test_success_is_what_the_target_says() -> None:
    async with serving(Sink(answer(404))) as sink, calling() as handler:
        assert (await attempt(handler, job({"url": sink.url(), "success": [404]}))).state is State.SUCCEEDED
        sink.answer = answer(200)
        assert (await attempt(handler, job({"url": sink.url(), "success": [404]}))).state is State.DEAD


@pytest.mark.parametrize(
    ("header", "policies", "wait"),
    [
        ("7", None, 7),
        ("120", {"retry": {"max_delay": "1m"}}, 60),
        (format_datetime(to_datetime(NOW + 30 * SECOND), usegmt=True), None, 31),
        ("0", None, 5),
        ("-5", None, 5),
        ("soon", None, 5),
        ("Mon, 01 Jan 2001 00:00:00 GMT", None, 5),
        ("9" * 30, None, 3_600),
        ("1e3", None, 5),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after(status: int, header: str, policies: dict[str, Any] | None, wait: int) -> None:
    """Honoured up to the policy's max_delay; nonsense is as if nothing was said."""
    async with serving(Sink(answer(status, f"Retry-After: {header}"))) as sink, calling() as handler:
        done = await attempt(
            handler, job({"url": sink.url()}, policies=None if policies is None else encode(policies))
        )
    assert (done.state, (done.due_at - NOW) / SECOND) == (State.PENDING, wait)


async def test_no_retry_beyond_the_job_s_age() -> None:
    async with serving(Sink(answer(503, "Retry-After: 100"))) as sink, calling() as handler:
        done = await attempt(
            handler, job({"url": sink.url()}, policies=encode({"retry": {"max_age": "30s"}}))
        )
    assert done.state is State.DEAD
    assert result(done)["status"] == 503


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "closed before a response came"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "the response broke off"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", "too large"),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(1_000)) + b"\r\n", "too large"),
    ],
)
async def test_no_answer_is_tried_again(raw: bytes, said: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()

    async with serving(Sink(serve=serve)) as sink, calling() as handler:
        done = await attempt(handler, job({"url": sink.url(path="/run?token=canary")}))
    assert (done.state, done.ending) == (State.PENDING, Ending.FAILED)
    assert said in (done.error or "")
    assert "canary" not in (done.error or "")


async def test_unreachable_target_is_retried() -> None:
    async with serving(Sink()) as sink:
        pass
    async with calling() as handler:
        done = await attempt(handler, job({"url": sink.url()}))
    assert (done.state, done.error) == (
        State.PENDING,
        f"no response from POST {sink.url()}: cannot connect (connection refused)",
    )


@pytest.mark.parametrize(
    "spec",
    [
        None,
        b"{}",
        b"[]",
        b"not json",
        b'{"url":"ftp://x/"}',
        b'{"url":"http://x/","secret_headers":{"A":"***"}}',
    ],
)
async def test_unreadable_target_becomes_a_dead_letter_immediately(spec: bytes | None) -> None:
    async with calling() as handler:
        done = await attempt(handler, job({"url": "http://x/"})._replace(target_spec=spec))
    assert done.state is State.DEAD
    assert "is invalid" in (done.error or "")


async def test_a_payload_that_is_no_text_is_dead_at_once() -> None:
    async with calling() as handler:
        done = await attempt(handler, job({"url": "http://x/", "body": "raw"}, b"{}"))
    assert (done.state, done.error) == (
        State.DEAD,
        'payload: must be text, because the target\'s body is "raw"',
    )


# -- reporting later
# --------------------------------------------------------------------------------------------------
async def test_accepted_call_is_handed_over() -> None:
    async with serving(Sink(answer(202))) as sink, calling(public_url="https://due.example/") as handler:
        done = await attempt(
            handler, job({"url": sink.url(), "async": True}, attempt=4, policies=encode({"timeout": "10m"}))
        )
        plain = await attempt(handler, job({"url": sink.url(), "async": True}))
    assert (done.state, done.ending, done.due_at - NOW, done.failures) == (
        State.RUNNING,
        Ending.HANDED_OVER,
        600 * SECOND,
        0,
    )
    assert (done.result, done.error) == (None, None)
    assert plain.due_at - NOW == 3_600 * SECOND
    sent = lines(sink.requests[0])
    assert sent["duetime-report-url"] == f"https://due.example/api/v1/jobs/{JOB_ID}"
    assert verify_report_token(RING, UUID(JOB_ID), sent["duetime-report-token"]) == ("default", 4)


async def test_202_is_a_success_like_any_other_when_nothing_is_said_of_reports() -> None:
    async with serving(Sink(answer(202))) as sink, calling(public_url="https://due.example/") as handler:
        done = await attempt(handler, job({"url": sink.url()}))
        now = await attempt(handler, job({"url": sink.url(), "async": True}, cancel_requested=True))
        sink.answer = answer(200)
        at_once = await attempt(handler, job({"url": sink.url(), "async": True}))
    assert (done.state, at_once.state, now.state) == (State.SUCCEEDED, State.SUCCEEDED, State.CANCELLED)
    assert "duetime-report-token" not in lines(sink.requests[0])


# -- the echo agent
# ---------------------------------------------------------------------------------------------------
async def test_echo_agent_responds_as_the_path_says() -> None:
    async with EchoAgent() as agent, calling() as handler:
        done = [
            await attempt(
                handler, job({"url": agent.url + path, "async": True, "timeout": "200ms"}, b'{"a":1}')
            )
            for path in ("/x", "/status/500", "/status/404", "/later", "/slow/30")
        ]
        calls = await agent.wait_for_calls(5)
    assert [one.state for one in done] == [
        State.SUCCEEDED,
        State.PENDING,
        State.DEAD,
        State.RUNNING,
        State.PENDING,
    ]
    assert [call.status for call in calls] == [200, 500, 404, 202, 200]
    assert (calls[0].body, calls[0].header("idempotency-key")) == (b'{"a":1}', JOB_ID)
    assert "within 200ms" in (done[4].error or "")


class _Frozen:
    """The reference library reads the wall clock; our attempts run at a fixed instant."""

    @staticmethod
    def now(tz: Any) -> Any:
        return to_datetime(NOW)

    @staticmethod
    def fromtimestamp(seconds: float, tz: Any) -> Any:
        return to_datetime(int(seconds) * SECOND)


def test_errors_stay_in_the_tree() -> None:
    from duetime.errors import SecretUnreadable, TargetNotAllowed

    assert issubclass(TargetNotAllowed, DuetimeError)
    assert issubclass(SecretUnreadable, DuetimeError)
