"""Common mistakes in the use of a client: each error names what is wrong and the remedy."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.errors import ConfigError, DuetimeError, InvalidInput, InvalidPayload
from tests.remote.conftest import KINDS, Caller, Served, caller
from tests.remote.scripted import answer, problem, scripted

EMPTY = answer(200, {"items": [], "next_cursor": None})


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:8080", "begins with neither http:// nor https://"),
        ("example.org", "begins with neither"),
        ("http:/localhost", "begins with neither"),
        ("", "the URL is empty"),
        ("postgresql://user:secret@host/db", "'postgresql' is the scheme of a store URL, which dt.App takes"),
        ("sqlite:///duetime.db", "'sqlite' is the scheme of a store URL"),
        ("http://user:secret@host:port", "the value is not a URL"),
        (None, "None is not a URL"),
        (b"http://host", "are not the URL"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_url_is_explained(kind: str, url: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        caller(kind, url)
    assert "use a URL like https://duetime.example.org" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("", "is empty: .* or None"),
        ("dt_a_b\n", "without a newline"),
        ("Bearer dt_a_b", "without 'Bearer'"),
        (7, "printable"),
    ],
)
def test_malformed_key_is_explained(key: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=f"key: .*{message}"):
        dt.Client("http://127.0.0.1", key)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            problem(401, "key_missing"),
            'the service needs a key: pass it as key="dt_...", on the command line with DUETIME_KEY',
        ),
        (problem(401, "key_invalid", "Authorization: is not a key"), "key: is not a key; copy the whole key"),
        (problem(401, "key_revoked", "Authorization: was revoked"), "key: was revoked"),
        (
            problem(403, "scope_missing", "the key lacks the scope 'submit'"),
            "lacks the scope 'submit'; me() lists the scopes of this key",
        ),
        (problem(404, "not_found"), "use its base URL without /ui"),
        (
            answer(200, b"<html>", "text/html; charset=utf-8"),
            "got HTML instead of JSON: use the base URL of the service, without /ui",
        ),
    ],
)
async def test_problem_is_explained_for_users_of_a_client(kind: str, given: bytes, message: str) -> None:
    async with scripted(given) as script:
        with pytest.raises(DuetimeError) as raised:
            await caller(kind, script.url).jobs()
        assert message in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_refused_connection_is_explained(kind: str) -> None:
    async with scripted(EMPTY) as script:
        port = script.url.rpartition(":")[2]
    message = (
        r"cannot be reached \(Connection refused\): check that it is running \(`duetime serve`\), "
        r"and its host and port"
    )
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(dt.ServiceUnreachable, match=message):
            await caller(kind, f"http://{host}:{port}", retries=0).jobs()


@pytest.mark.parametrize("kind", KINDS)
async def test_unknown_host_is_explained(kind: str) -> None:
    with pytest.raises(dt.ServiceUnreachable, match="check the host name"):
        await caller(kind, "http://unknown.invalid", retries=0).jobs()


@pytest.mark.parametrize("kind", KINDS)
async def test_https_to_a_plain_http_service_is_explained(kind: str, served: Served) -> None:
    with pytest.raises(
        dt.ServiceUnreachable, match="the server does not use TLS: use http:// if that is intended"
    ):
        await caller(kind, served.url.replace("http:", "https:"), retries=0).jobs()


@pytest.mark.parametrize("kind", KINDS)
async def test_http_to_an_https_service_is_explained(kind: str, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject],
        check=True,
        capture_output=True,
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    async with scripted(EMPTY, tls=tls) as script:
        with pytest.raises(dt.ServiceUnreachable, match="it may need https://"):
            await caller(kind, script.url.replace("https:", "http:"), retries=0, timeout="5s").jobs()


async def test_wrong_arguments_are_explained(service: Caller) -> None:
    job = await service.submit("send", delay="1h")
    for call, message in (
        (lambda: service.get_job(job), "job_id: is a Submitted, not the id of a job: use its .id"),
        (lambda: service.wait_for(job), "job_id: is a Submitted"),
        (lambda: service.submit("send", delay=5), "delay: 5 is not a duration"),
        (lambda: service.submit("send", timeout=5), "timeout: 5 is not a duration"),
        (lambda: service.jobs(label="team:billing"), r'label: .* write label=\("team", "billing"\)'),
        (lambda: service.schedules(label="team:billing"), "label: "),
        (lambda: service.submit_many([("send", {})]), r"jobs\[0\]: .* is not a NewJob"),
        (
            lambda: service.first_events(1, types="job"),
            r"types: 'job' is text: use a list, such as \['job'\]",
        ),
    ):
        with pytest.raises(InvalidInput, match=message):
            await call()
    with pytest.raises(InvalidPayload, match="payload: cannot be written as JSON"):
        await service.submit("send", {"n": object()})
    with pytest.raises(InvalidPayload, match="result: cannot be written as JSON"):
        await service.complete(job.id, "token", object())


async def test_value_that_would_arrive_changed_is_not_sent(service: Caller) -> None:
    moment, every = datetime(2030, 1, 1, tzinfo=UTC), dt.Every("1h")
    given: dict[str, Any] = {"at": {"begin": moment}}
    job = await service.submit("nowhere", {"at": moment.isoformat()})
    await service.schedule("hourly", "nowhere", every)
    calls: list[Callable[[], Any]] = [
        lambda: service.submit("nowhere", given),
        lambda: service.submit_many([dt.NewJob("nowhere", given)]),
        lambda: service.schedule("daily", "nowhere", every, payload=given),
        lambda: service.edit_schedule("hourly", {"payload": given}),
        lambda: service.retry_job(job.id, given),
    ]
    for call in calls:
        with pytest.raises(
            InvalidPayload, match=r"payload\.at\.begin: is a datetime.* give value\.isoformat"
        ):
            await call()


async def test_number_that_is_not_json_is_not_sent_as_null(service: Caller) -> None:
    for payload in ({"price": float("nan")}, {"prices": [None, float("inf")]}):
        with pytest.raises(InvalidInput, match=r"payload\.prices?: (nan|inf) is not a JSON number"):
            await service.submit("nowhere", payload)
        with pytest.raises(InvalidInput, match="is not a JSON number"):
            await service.submit_many([dt.NewJob("nowhere", payload)])
    assert (await service.get_job((await service.submit("nowhere", {"price": None})).id)).payload == {
        "price": None
    }


async def test_policies_are_taken_as_the_app_takes_them(service: Caller) -> None:
    made = await service.schedule(
        "hourly", "nowhere", dt.Every("1h"), missed="skip", retry=dt.Retry(delays=["1s"])
    )
    assert (made.missed["policy"], made.retry["delays"]) == ("skip", ["1s"])
    with pytest.raises(InvalidInput, match=r"missed\.policy: 'never' is not one of"):
        await service.schedule("daily", "nowhere", dt.Every("1d"), missed="never")
    with pytest.raises(InvalidInput, match=r"retry: 3 is not a Retry: write dt\.Retry\(max_attempts=5\)"):
        await service.submit("nowhere", {}, retry=3)


@pytest.mark.parametrize("labels", [[1], 5, {"team": 1}])
def test_labels_that_are_not_a_mapping_of_text_are_refused(labels: Any) -> None:
    client = dt.Client("http://127.0.0.1:9")
    with pytest.raises(InvalidInput, match="labels: must be a mapping of text to text"):
        client.submit("work", labels=labels)
    with pytest.raises(InvalidInput, match="labels: must be a mapping of text to text"):
        client.schedule("nightly", "work", when=dt.Every("1d"), labels=labels)


def test_naive_instant_of_an_edit_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"end_at: .* is not an aware datetime"):
        dt.Client("http://127.0.0.1:9").edit_schedule(
            "00000000-0000-7000-8000-000000000000", {"end_at": datetime(2030, 1, 1)}
        )
