"""Requests that cost the service far more than the sender. Each is compared with a plain request of the same
size, on the same machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase
from time import process_time
from typing import Any

import pytest

import duetime as dt
from duetime.api import idempotency, middleware, routing
from duetime.api.bodies import LARGE_BODY, parse
from duetime.api.caller import Caller
from duetime.api.paging import Cursors
from duetime.api.problems import ApiProblem
from duetime.api.rate_limit import KeyRateLimit, SharedBuckets
from duetime.api.service import build
from duetime.config import Settings
from duetime.errors import ConfigError
from duetime.model.api_key import Scope
from duetime.model.limit import Rate
from duetime.model.masking import without_secrets
from tests.api.conftest import TASK, Api, client_of, refused
from tests.api.keyed_api import KeyedApi, Time, keyed_api, open_keyed_api, time

__all__ = ["keyed_api", "time"]

SIZE = 100_000
JOB_ID = "01935c2e-7b3a-7000-8000-000000000000"
SLOW_RULE = "FREQ=SECONDLY;INTERVAL=3571;BYMINUTE=0;BYSECOND=0"


def cost(work: Callable[[], object]) -> float:
    """The CPU time of the fastest of three calls."""
    times = []
    for _ in range(3):
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times)


async def request_cost(ask: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(3):
        began = process_time()
        await ask()
        times.append(process_time() - began)
    return min(times)


async def blocked_share(ask: Callable[[], Awaitable[object]]) -> float:
    """The longest time in which the event loop did nothing else, as a part of the whole request: CPU time,
    because other programs run on this machine."""
    longest, last, began = 0.0, process_time(), process_time()
    asked = asyncio.ensure_future(ask())
    while not asked.done():
        await asyncio.sleep(0)
        longest, last = max(longest, process_time() - last), process_time()
    await asked
    return longest / (process_time() - began)


def distinct_names(size: int) -> bytes:
    """Three-letter names, and the last of them twice."""
    names = [
        "".join(letters) for letters in islice(product(ascii_lowercase + "01234567", repeat=3), size // 8)
    ]
    return b"{" + b",".join(b'"%s":0' % name.encode() for name in [*names, names[-1]]) + b"}"


def text_of(size: int) -> bytes:
    return json.dumps({"result": "x" * size}).encode()


# -- bodies
# ---------
async def test_duplicate_names_cost_as_much_as_plain_text(keyed_api: KeyedApi) -> None:
    path, attack, plain = f"/jobs/{JOB_ID}/complete", distinct_names(SIZE), text_of(SIZE)
    refused(await keyed_api.post(path, attack), 401, "key_missing")
    spent = await request_cost(lambda: keyed_api.post(path, attack))
    assert spent < 10 * await request_cost(lambda: keyed_api.post(path, plain))


def test_duplicate_name_is_found_in_linear_time() -> None:
    def find(size: int) -> None:
        with pytest.raises(ApiProblem, match="duplicate key"):
            parse(distinct_names(size), SIZE)

    find(SIZE)
    assert cost(lambda: find(SIZE)) < 20 * 4 * cost(lambda: find(SIZE // 4))


def test_limit_of_keys_applies_before_duplicates_are_looked_for() -> None:
    with pytest.raises(ApiProblem, match="too many keys"):
        parse(distinct_names(SIZE))


def test_long_key_around_many_values_costs_as_much_as_a_short_one() -> None:
    """Checking each value must not write the path to it."""
    many = [0] * (SIZE // 4)
    attack, plain = {"k" * (SIZE // 2): many, "u": "\u00e9"}, {"k": many, "u": "k" * (SIZE // 2) + "\u00e9"}
    bodies = [json.dumps(body).encode() for body in (attack, plain)]
    assert abs(len(bodies[0]) - len(bodies[1])) < 10
    assert cost(lambda: parse(bodies[0])) < 4 * cost(lambda: parse(bodies[1]))


async def test_report_without_a_valid_token_is_not_parsed(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(routing, "parse", lambda data, *_: parsed.append(data))
    body = {"token": "1.ZGVmYXVsdA.00", "result": "x" * 1_000}
    refused(await keyed_api.post(f"/jobs/{JOB_ID}/complete", body), 401, "token_invalid", "token")
    assert not parsed


class Upload:
    """A body in parts; knows how many were read."""

    def __init__(self, parts: int) -> None:
        self.read, self._parts = 0, parts
        self.started, self.going = asyncio.Event(), asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._parts):
            self.read += 1
            yield b"x" * 10_000
            self.started.set()
        await self.going.wait()


@pytest.mark.parametrize("path", ["/jobs/batch", "/jobs", "/schedules"])
async def test_body_of_a_key_without_the_scope_is_not_read(keyed_api: KeyedApi, path: str) -> None:
    reader, upload = await keyed_api.key(Scope.READ), Upload(100)
    upload.going.set()
    headers = {"authorization": reader, "content-type": "application/json"}
    answer = await keyed_api.client.post(f"/api/v1{path}", content=upload, headers=headers)
    refused(answer, 403, "scope_missing")
    assert upload.read == 0


async def test_large_bodies_at_the_same_time_are_limited(keyed_api: KeyedApi) -> None:
    key, other = await keyed_api.key(), await keyed_api.key()

    def send(key: str, upload: Upload) -> Any:
        headers = {
            "authorization": key, "content-type": "application/json", "content-length": str(LARGE_BODY + 1),
        }  # fmt: skip
        return keyed_api.client.post("/api/v1/jobs/batch", content=upload, headers=headers)

    uploads = [Upload(1) for _ in range(2)]
    held = [asyncio.ensure_future(send(key, upload)) for upload in uploads]
    for upload in uploads:
        await upload.started.wait()
    refused(await send(key, Upload(1)), 429, "bodies_exhausted")
    for upload in uploads:
        upload.going.set()
    await asyncio.gather(*held)
    another = Upload(1)
    another.going.set()
    assert (await send(other, another)).status_code != 429


# -- addresses
# ------------
async def test_long_path_is_refused_before_it_is_routed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(await api.client.get("/a." * 10_000), 414, "path_too_long")
    decoded: list[str] = []

    def decode(path: str, raw: bytes) -> str:
        decoded.append(path)
        return path

    monkeypatch.setattr(routing, "_decoded", decode)
    await api.client.get("/" + "a%2Fb" * 500)
    assert len(decoded) == 1, "one route after the other asks for it"


@pytest.mark.parametrize("part", ["a.", "a-", "b://c:", "bearer ", "basic a", "dt_", "whsec_", "a://a:b"])
def test_masking_costs_as_much_as_for_plain_text(part: str) -> None:
    attack = part * (SIZE // len(part))
    plain = ("plain words " * SIZE)[: len(attack)]
    assert cost(lambda: without_secrets(attack)) < 20 * cost(lambda: without_secrets(plain))


async def test_logged_path_is_short(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "duetime.api")
    await api.client.get("/" + "a" * (middleware.MAX_PATH - 1))
    assert max(len(record.getMessage()) for record in caplog.records) < 400


async def test_trailing_slash_does_not_redirect_to_the_host_of_the_request(api: Api) -> None:
    for path in ("/api/v1/jobs/", "/healthz/", "/docs/"):
        answer = await api.client.get(path, headers={"host": "localhost"})
        assert (answer.status_code, answer.headers.get("location")) == (404, None), path


# -- recurrence rules
# -------------------
@pytest.mark.parametrize(
    "rule", [f"DTSTART:19700101T000000\n{SLOW_RULE};COUNT=1500", SLOW_RULE], ids=["read", "search"]
)
async def test_slow_rule_does_not_block_the_event_loop(api: Api, rule: str) -> None:
    body = {"when": {"rrule": rule}, "count": 100}

    async def ask() -> None:
        answer = await api.post("/preview", body)
        assert answer.status_code in (200, 422), answer.text

    assert await blocked_share(ask) < 0.5


async def test_slow_rule_is_refused_with_the_reason(api: Api) -> None:
    problem = refused(
        await api.post("/preview", {"when": {"rrule": f"DTSTART:19700101T000000\n{SLOW_RULE};COUNT=1500"}}),
        422,
        "when_invalid",
        "when.rrule",
    )
    assert "use a longer FREQ" in problem["detail"]


@pytest.mark.parametrize("path", ["/calendar?", "/calendar/fires?limit=300&"])
async def test_calendar_of_slow_rules_does_not_block_the_event_loop(api: Api, path: str) -> None:
    for number in range(20):
        when = {"rrule": SLOW_RULE.replace("3571", str(3571 + 36 * number))}
        body = {"name": f"slow {number}", "when": when, "target": TASK, "max_runs": 900}
        assert (await api.post("/schedules", body)).status_code == 201

    async def ask() -> None:
        assert (await api.get(f"{path}to=2100-01-01T00:00:00Z&from=2099-12-01T00:00:00Z")).status_code == 200

    assert await blocked_share(ask) < 0.5


# -- access
# ---------
def test_service_without_keys_refuses_a_public_url() -> None:
    app = dt.App("memory://")
    with pytest.raises(ConfigError, match=r"public_url: https://duetime\.example\.org .* --auth keys"):
        build(app, Settings(public_url="https://duetime.example.org"))
    build(app, Settings(public_url="http://localhost:9000"))
    build(app, Settings(public_url="https://duetime.example.org", auth="keys"))


async def test_proxy_of_a_local_service_makes_no_stranger_an_admin() -> None:
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, Settings(public_url="http://localhost:9000"))) as client:
        api = Api(app, client)
        refused(
            await api.get("/me", host="localhost:9000", x_forwarded_for="192.0.2.1"), 403, "proxy_not_allowed"
        )
        refused(await api.get("/me", host="duetime.example.org"), 403, "host_not_allowed")
    await app.close()


async def test_submitter_cancels_what_it_submitted_and_nothing_else(keyed_api: KeyedApi) -> None:
    mine, other, manager = [
        await keyed_api.key(scope, tenant="acme") for scope in ("submit", "submit", "manage")
    ]
    body = {"target": TASK, "delay": "1h", "labels": {"duetime.key": other[10:20], "team": "billing"}}
    job = (await keyed_api.post("/jobs", body, authorization=mine)).json()["id"]
    batch = (await keyed_api.post("/jobs/batch", {"jobs": [body]}, authorization=mine)).json()["ids"][0]
    theirs = (await keyed_api.post("/jobs", {"target": TASK, "delay": "1h"}, authorization=manager)).json()[
        "id"
    ]
    for job_id, key in ((job, other), (theirs, mine)):
        refused(await keyed_api.ask("DELETE", f"/jobs/{job_id}", authorization=key), 403, "scope_missing")
    stranger = await keyed_api.key("submit", tenant="other")
    refused(await keyed_api.ask("DELETE", f"/jobs/{job}", authorization=stranger), 404, "job_not_found")
    for job_id in (job, batch):
        done = await keyed_api.ask("DELETE", f"/jobs/{job_id}", authorization=mine)
        assert (done.status_code, done.json()["state"]) == (200, "cancelled")
    assert (await keyed_api.ask("DELETE", f"/jobs/{theirs}", authorization=manager)).status_code == 200


async def test_rate_of_a_key_holds_over_all_processes(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/d.db"
    async with open_keyed_api(store) as here, open_keyed_api(store) as there:
        key = await here.key(rate="10/1d")
        answers = [await each.get("/me", authorization=key) for _ in range(10) for each in (here, there)]
        assert [answer.status_code for answer in answers].count(200) == 10
        refused(answers[-1], 429, "rate_limited")
        assert 8_000 < int(answers[-1].headers["retry-after"]) <= 8_640


async def test_high_rate_is_shared_with_few_store_calls(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed_api.count(monkeypatch, "put_record")
    limit = KeyRateLimit(Rate(1_000, 3_600_000_000), SharedBuckets(keyed_api.app, "rate"))
    caller = Caller("default", frozenset(Scope), "k3v9q2m7xw")
    for _ in range(1_000):
        await limit.spend(caller)
    with pytest.raises(ApiProblem, match="the limit of this key is"):
        await limit.spend(caller)
    assert keyed_api.calls["put_record"] == 50


async def test_forwarded_addresses_with_ports_share_a_bucket(time: Time) -> None:
    async with open_keyed_api(proxies=("192.0.2.1/32",)) as made:
        answers = [
            await made.get("/me", authorization="Bearer no", x_forwarded_for=f"{address}:{port}")
            for port in range(4_000, 4_040)
            for address in ("203.0.113.9", "[2001:db8::1]", "no-address")
        ]
        assert [answer.status_code for answer in answers].count(401) == 3 * 30


async def test_idempotency_keys_of_a_tenant_are_limited(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_KEYS", Rate(2, 86_400_000_000))
    answers = [
        await api.post("/jobs", {"target": TASK}, idempotency_key=f"key-{number}") for number in range(3)
    ]
    assert [answer.status_code for answer in answers] == [201, 201, 429]


async def test_cursors_without_a_secret_key_cannot_be_forged(tmp_path: Path) -> None:
    """Two processes without a secret key agree on a random one."""
    app = dt.App(f"sqlite:///{tmp_path}/d.db")
    await app.open()
    here, there, guessed = Cursors(None), Cursors(None), Cursors(b"")
    await here.open(app.store)
    await there.open(app.store)
    await app.close()
    cursor = here.write("default", "jobs", {}, [1])
    assert there.read("default", "jobs", {}, cursor) == [1]
    with pytest.raises(ApiProblem, match="not valid"):
        here.read("default", "jobs", {}, guessed.write("default", "jobs", {}, [1]))


@pytest.mark.parametrize("rate", ["9" * 5_000 + "/1s", "1/" + "9" * 5_000 + "s", " " * 5_000 + "/", "1/²s"])
async def test_endless_rate_is_invalid(api: Api, rate: str) -> None:
    assert (await api.post("/keys", {"name": "a", "rate": rate})).status_code == 422
    with pytest.raises(dt.InvalidInput):
        dt.Limit(rate=rate)
