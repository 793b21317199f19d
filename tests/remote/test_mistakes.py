"""Plain mistakes of whoever tries a client for the first time: each error names what is wrong and the remedy."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.errors import ConfigError, DuetimeError, InvalidInput, InvalidPayload
from tests.remote.conftest import KINDS, Caller, Served, caller
from tests.remote.scripted import answer, problem, scripted

EMPTY = answer(200, {"items": [], "next_cursor": None})


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("localhost:8080", "begins with neither http:// nor https://"),
        ("example.org", "begins with neither"),
        ("http:/localhost", "begins with neither"),
        ("", "'nothing' and 'no host'"),
        ("postgresql://user:secret@host/db", "'postgresql' begins the URL of a store, which dt.App takes"),
        ("sqlite:///duetime.db", "'sqlite' begins the URL of a store"),
        ("http://user:secret@host:port", "what was given is no URL"),
        (None, "None is no URL"),
        (b"http://host", "make no URL"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_url(kind: str, url: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        caller(kind, url)
    assert "write it like https://duetime.example.org" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("key", "told"),
    [("", "is empty: .* or None"), ("dt_a_b\n", "without a line end"), ("Bearer dt_a_b", "without 'Bearer'"), (7, "printable")],
)
def test_a_key_that_cannot_be_one(key: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=f"key: .*{told}"):
        dt.Client("http://127.0.0.1", key)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (problem(401, "key_missing"), 'the service asks for a key: give it as key="dt_...", on the command line by DUETIME_KEY'),
        (problem(401, "key_invalid", "Authorization: is no key"), "key: is no key; copy it whole"),
        (problem(401, "key_revoked", "Authorization: was revoked"), "key: was revoked"),
        (problem(403, "scope_missing", "the key lacks the scope 'submit'"), "lacks the scope 'submit'; me() tells what this one may do"),
        (problem(404, "not_found"), "is its URL given without a path such as /ui"),
        (answer(200, b"<html>", "text/html; charset=utf-8"), "a web page was answered: give the address of the service alone, without /ui"),
    ],
)
async def test_what_the_service_refuses_is_told_in_the_words_of_clients(kind: str, given: bytes, told: str) -> None:
    async with scripted(given) as script:
        with pytest.raises(DuetimeError) as raised:
            await caller(kind, script.url).jobs()
        assert told in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_nobody_listens_there(kind: str) -> None:
    async with scripted(EMPTY) as script:
        port = script.url.rpartition(":")[2]
    told = r"cannot be reached \(Connection refused\): is it running \(`duetime serve`\), and are host and port right\?"
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(dt.ServiceUnreachable, match=told):
            await caller(kind, f"http://{host}:{port}", retries=0).jobs()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_host_nobody_knows(kind: str) -> None:
    with pytest.raises(dt.ServiceUnreachable, match="is the name of the host right"):
        await caller(kind, "http://nobody.invalid", retries=0).jobs()


@pytest.mark.parametrize("kind", KINDS)
async def test_https_where_http_is_spoken(kind: str, served: Served) -> None:
    with pytest.raises(dt.ServiceUnreachable, match="it does not speak TLS: write http:// if that is meant"):
        await caller(kind, served.url.replace("http:", "https:"), retries=0).jobs()


@pytest.mark.parametrize("kind", KINDS)
async def test_http_where_https_is_spoken(kind: str, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    async with scripted(EMPTY, tls=tls) as script:
        with pytest.raises(dt.ServiceUnreachable, match="does it want https:// there"):
            await caller(kind, script.url.replace("https:", "http:"), retries=0, timeout="5s").jobs()


async def test_values_that_cannot_be_meant(service: Caller) -> None:
    job = await service.submit("send", delay="1h")
    for call, told in (
        (lambda: service.get_job(job), "job_id: is a Submitted, and not the id of a job: give its .id"),
        (lambda: service.wait_for(job), "job_id: is a Submitted"),
        (lambda: service.submit("send", delay=5), "delay: 5 is not a duration"),
        (lambda: service.submit("send", timeout=5), "timeout: 5 is not a duration"),
        (lambda: service.jobs(label="team:billing"), r'label: .* write label=\("team", "billing"\)'),
        (lambda: service.schedules(label="team:billing"), "label: "),
        (lambda: service.submit_many([("send", {})]), r"jobs\[0\]: .* is no NewJob"),
        (lambda: service.first_events(1, types="job"), r"types: 'job' is text: give a list, such as \['job'\]"),
    ):
        with pytest.raises(InvalidInput, match=told):
            await call()
    with pytest.raises(InvalidPayload, match="payload: cannot be written as JSON"):
        await service.submit("send", {"n": object()})
    with pytest.raises(InvalidPayload, match="result: cannot be written as JSON"):
        await service.complete(job.id, "token", object())
