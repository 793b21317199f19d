"""API keys: which requests are accepted, for how long, and what wrong keys cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.api.auth import CACHE_TIME, MAX_KNOWN, MAX_UNKNOWN
from duetime.api.caller import AuthRequest
from duetime.api.rate_limit import FAILURE_RATE, LOOKUP_RATE, Unlimited, client_of
from duetime.config import Settings
from duetime.errors import StoreUnavailable
from duetime.model.api_key import ApiKey, make_text, prefix_of, with_lesser
from tests.api.conftest import TASK, refused
from tests.api.keyed_api import KeyedApi, Time, from_address, keyed_api, open_keyed_api, time
from tests.api.test_jobs import claimed

__all__ = ["keyed_api", "time"]

JOB = {"target": TASK}
WRONG = "Bearer dt_0123456789_" + "x" * 43


def wrong(number: int) -> str:
    return f"Bearer dt_{number:010d}_{'x' * 43}"


async def test_a_key_is_256_random_bits_and_only_its_digest_is_stored(tmp_path: Path) -> None:
    """The whole database holds nothing by which a key could be shown."""
    async with open_keyed_api(f"sqlite:///{tmp_path / 'keys.db'}") as keyed_api:
        texts = [(await keyed_api.key()).removeprefix("Bearer ") for _ in range(5)]
        assert all(re.fullmatch(r"dt_[0-9a-z]{10}_[0-9A-Za-z]{43}", text) for text in texts)
        assert (await keyed_api.get("/me", authorization=f"Bearer {texts[0]}")).status_code == 200
        written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        for text in texts:
            prefix, secret = text[3:13], text[14:]
            assert prefix.encode() in written
            assert secret.encode() not in written
    ends = {make_text(lambda count: bytes([255]) * count)[0], make_text(bytes)[0]}
    assert len(ends) == 2, "every bit counts"
    assert all(prefix_of(text) for text in ends)


async def test_request_without_a_key_is_unauthorized(keyed_api: KeyedApi) -> None:
    good = await keyed_api.key()
    answer = await keyed_api.get("/me")
    refused(answer, 401, "key_missing", "Authorization")
    assert answer.headers["www-authenticate"] == 'Bearer realm="duetime"'
    refused(await keyed_api.get(f"/me?api_key={good[7:]}&key={good[7:]}"), 401, "key_missing")
    for odd in (good[7:], "Basic " + good[7:], "Bearer", "Bearer ", f"{good}x", good[:-1]):
        refused(await keyed_api.get("/me", authorization=odd), 401, "key_invalid")
    assert (await keyed_api.get("/me", authorization=f"bearer  {good[7:]} ")).status_code == 200


async def test_unknown_and_wrong_keys_get_the_same_answer(keyed_api: KeyedApi) -> None:
    """The answers do not reveal which prefixes exist."""
    good = await keyed_api.key()
    unknown, almost = (
        await keyed_api.get("/me", authorization=WRONG),
        await keyed_api.get("/me", authorization=_bent(good)),
    )
    first, second = refused(unknown, 401, "key_invalid"), refused(almost, 401, "key_invalid")
    assert first["detail"] == second["detail"]


def _bent(key: str) -> str:
    return key[:-1] + ("a" if key[-1] != "a" else "b")


async def test_each_scope_includes_those_below_it(keyed_api: KeyedApi) -> None:
    assert [len(with_lesser([scope])) for scope in ("read", "submit", "manage", "admin")] == [1, 2, 3, 4]
    reader, submitter = await keyed_api.key("read"), await keyed_api.key("submit")
    refused(await keyed_api.post("/jobs", JOB, authorization=reader), 403, "scope_missing")
    job = (await keyed_api.post("/jobs", JOB, authorization=submitter)).json()["id"]
    assert (await keyed_api.get(f"/jobs/{job}", authorization=submitter)).status_code == 200
    refused(
        await keyed_api.ask("PATCH", f"/jobs/{job}", {"priority": 1}, authorization=submitter),
        403,
        "scope_missing",
    )
    assert (
        await keyed_api.ask("DELETE", f"/jobs/{job}", authorization=await keyed_api.key("manage"))
    ).status_code == 200
    refused(await keyed_api.get("/keys", authorization=await keyed_api.key("manage")), 403, "scope_missing")


async def test_revoked_key_is_rejected_within_5_seconds(time: Time, keyed_api: KeyedApi) -> None:
    """Whichever process revoked it; what was read while it was being revoked counts from before the
    reading."""
    key = await keyed_api.key()
    assert (await keyed_api.get("/me", authorization=key)).status_code == 200
    await keyed_api.app.keys.revoke(key[7:])
    assert CACHE_TIME <= 2_000_000
    time.move(CACHE_TIME / 1_000_000 + 0.001)
    refused(await keyed_api.get("/me", authorization=key), 401, "key_revoked", "Authorization")
    refused(await keyed_api.post("/jobs", JOB, authorization=key), 401, "key_revoked", "Authorization")


async def test_expired_key_is_rejected(time: Time, keyed_api: KeyedApi) -> None:
    key = await keyed_api.key(expires_in="1ms")
    await asyncio.sleep(0.002)
    refused(await keyed_api.get("/me", authorization=key), 401, "key_expired", "Authorization")
    lasting = await keyed_api.key(expires_in="90d")
    assert (await keyed_api.get("/me", authorization=lasting)).json()["expires_at"] is not None


async def test_key_is_read_once_for_concurrent_requests_and_cached_for_two_seconds(
    time: Time, keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await keyed_api.key()
    keyed_api.service.state.service.rate_limit = Unlimited()  # it has records of its own
    keyed_api.count(monkeypatch, "get_record", "put_record")
    answers = await asyncio.gather(*(keyed_api.get("/me", authorization=key) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert keyed_api.calls == {"get_record": 1, "put_record": 1}
    time.move(2.1)
    await keyed_api.get("/me", authorization=key)
    assert keyed_api.calls == {"get_record": 2, "put_record": 1}, "its use was noted less than a minute ago"


async def test_last_use_of_a_key_is_written_once_a_minute(
    time: Time, keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await keyed_api.key()
    await keyed_api.get("/me", authorization=_bent(key))
    [unused] = await keyed_api.app.keys()
    assert unused.last_used_at is None
    await keyed_api.get("/me", authorization=key)
    [used] = await keyed_api.app.keys()
    assert used.last_used_at is not None
    later = used.last_used_at + 61_000_000
    monkeypatch.setattr(keyed_api.app.context.commands, "now", _fixed(later))
    time.move(2.1)
    await keyed_api.get("/me", authorization=key)
    assert [one.last_used_at for one in await keyed_api.app.keys()] == [later]


def _fixed(value: int) -> Any:
    async def now() -> int:
        return value

    return now


async def test_last_use_does_not_undo_a_revocation(keyed_api: KeyedApi) -> None:
    key = await keyed_api.key()
    found = await keyed_api.app.keys.find(key[10:20])
    assert found is not None
    await keyed_api.app.keys.revoke(key[10:20])
    assert not await keyed_api.app.keys.record_use(*found, found[0].created_at)
    assert (await keyed_api.app.keys())[0].revoked_at is not None


async def test_wrong_keys_are_rate_limited_with_few_reads_and_bounded_memory(
    time: Time, keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand wrong keys in a second do not affect a valid key, also from the same address."""
    good = await keyed_api.key()
    assert (await keyed_api.get("/me", authorization=good)).status_code == 200
    keyed_api.count(monkeypatch, "get_record")
    statuses = [
        (await keyed_api.get("/me", authorization=wrong(number))).status_code for number in range(1_000)
    ]
    assert (statuses.count(401), statuses.count(429)) == (FAILURE_RATE.count, 1_000 - FAILURE_RATE.count)
    assert keyed_api.calls["get_record"] == FAILURE_RATE.count
    blocked = await keyed_api.get("/me", authorization=wrong(1_001))
    refused(blocked, 429, "rate_limited")
    assert 1 <= int(blocked.headers["retry-after"]) <= 60
    for _ in range(3):
        assert (await keyed_api.get("/me", authorization=good)).status_code == 200
        time.move(0.8)
    assert len(keyed_api.authenticator._known) == 1


async def test_wrong_keys_from_many_addresses_cost_a_bounded_number_of_reads(
    time: Time, keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed_api.count(monkeypatch, "get_record")
    for number in range(1_500):
        async with from_address(keyed_api.service, f"198.51.{number // 256}.{number % 256}") as client:
            await client.get("/api/v1/me", headers={"authorization": wrong(number)})
    assert keyed_api.calls["get_record"] == LOOKUP_RATE.count
    assert len(keyed_api.authenticator._unknown) <= MAX_UNKNOWN < MAX_KNOWN


async def test_repeated_wrong_key_is_read_once(
    time: Time, keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed_api.count(monkeypatch, "get_record")
    for _ in range(20):
        refused(await keyed_api.get("/me", authorization=WRONG), 401, "key_invalid")
    assert keyed_api.calls["get_record"] == 1


async def test_key_is_not_rejected_while_the_store_is_away(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails closed, and says that it is not the key's fault."""
    key = await keyed_api.key()

    async def away(*_: Any) -> Any:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(keyed_api.app.store, "get_record", away)
    for _ in range(FAILURE_RATE.count + 5):
        refused(await keyed_api.get("/me", authorization=key), 503, "store_unavailable")


async def test_forwarded_address_is_trusted_from_own_proxies_only(time: Time) -> None:
    proxies = Settings(proxies=("10.0.0.0/8", "::1/128")).trusted_proxies()
    assert client_of("192.0.2.1", "203.0.113.9", proxies) == "192.0.2.1", "a stranger may write what it likes"
    assert client_of("10.0.0.1", "203.0.113.9", ()) == "10.0.0.1"
    assert client_of("10.0.0.1", "203.0.113.9", proxies) == "203.0.113.9"
    assert client_of("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", proxies) == "203.0.113.9", (
        "what is left of it was written by it"
    )
    assert client_of("10.0.0.1", None, proxies) == "10.0.0.1"
    assert client_of("10.0.0.1", "nonsense", proxies) == "nonsense"
    async with open_keyed_api(proxies=("192.0.2.1",)) as keyed_api:
        for number in range(FAILURE_RATE.count * 2):
            answer = await keyed_api.get(
                "/me", authorization=wrong(number), x_forwarded_for=f"203.0.113.{number}"
            )
            refused(answer, 401, "key_invalid")


async def test_me_describes_the_key_and_its_author(keyed_api: KeyedApi) -> None:
    key = await keyed_api.key("submit", tenant="acme", name="billing")
    me = (await keyed_api.get("/me", authorization=key)).json()
    assert {name: me[name] for name in ("tenant", "scopes", "key", "local", "expires_at")} == {
        "tenant": "acme",
        "scopes": ["read", "submit"],
        "key": key[10:20],
        "local": False,
        "expires_at": None,
    }
    caller = await keyed_api.authenticator.authenticate(AuthRequest("GET", {"authorization": key}, None))
    assert caller.author == f"billing ({key[10:20]})"
    assert ApiKey.from_value(key[10:20], (await _record(keyed_api, key)).value).tenant == "acme"


async def _record(keyed_api: KeyedApi, key: str) -> Any:
    return await keyed_api.app.store.get_record("key", "", key[10:20])


@pytest.fixture
async def limited() -> AsyncIterator[KeyedApi]:
    async with open_keyed_api(rate_limit="3/1m") as made:
        yield made


async def test_each_key_has_its_own_rate(limited: KeyedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """429 with Retry-After, on the quick route as on the others; another key does not notice."""
    time = Time(await limited.app.now())

    async def now() -> int:
        return time()

    monkeypatch.setattr(limited.app, "now", now)
    key, other, patient = await limited.key(), await limited.key(), await limited.key(rate="1/1h")
    assert [(await limited.post("/jobs", JOB, authorization=key)).status_code for _ in range(3)] == [
        201,
        201,
        201,
    ]
    for answer in (
        await limited.post("/jobs", JOB, authorization=key),
        await limited.get("/jobs", authorization=key),
    ):
        refused(answer, 429, "rate_limited")
        assert answer.headers["retry-after"] == "20"
    assert (await limited.get("/me", authorization=other)).status_code == 200
    assert (await limited.get("/me", authorization=patient)).status_code == 200
    assert (await limited.get("/me", authorization=patient)).headers["retry-after"] == "3600"
    time.move(21)
    assert (await limited.get("/jobs", authorization=key)).status_code == 200
    assert len((await limited.get("/jobs", authorization=await limited.key())).json()["items"]) == 3


@pytest.mark.server
async def test_other_process_rejects_a_revoked_key_on_postgresql(time: Time, postgres_url: str) -> None:
    """Two services on one database."""
    await dt.App(postgres_url).migrate()
    async with open_keyed_api(postgres_url) as here, open_keyed_api(postgres_url) as there:
        key = await here.key("submit", tenant="acme", expires_in="1d", rate="50/1s")
        admin = await here.key()
        assert (await there.get("/me", authorization=key)).json()["tenant"] == "acme"
        assert (await here.ask("DELETE", f"/keys/{key[10:20]}", authorization=admin)).status_code == 204
        time.move(CACHE_TIME / 1_000_000 + 0.001)
        for keyed_api in (here, there):
            refused(await keyed_api.get("/me", authorization=key), 401, "key_revoked")
        [listed] = [
            one
            for one in (await there.get("/keys?limit=1000", authorization=admin)).json()["items"]
            if one["tenant"] == "acme"
        ]
        assert (listed["rate"], listed["revoked_at"] is not None, listed["last_used_at"] is not None) == (
            "50/1s",
            True,
            True,
        )


async def test_report_needs_the_token_of_its_attempt_and_no_key(keyed_api: KeyedApi) -> None:
    """The called service gets no key: the token opens this attempt, and nothing else."""
    owner, stranger = await keyed_api.key(tenant="a"), await keyed_api.key(tenant="b")
    job_id = (
        await keyed_api.post(
            "/jobs", {"target": {"type": "task", "name": "invoice.send"}}, authorization=owner
        )
    ).json()["id"]
    token = await claimed(keyed_api, job_id, "a")
    refused(
        await keyed_api.post(f"/jobs/{job_id}/heartbeat", {"token": token[:-1]}),
        401,
        "token_invalid",
        "token",
    )
    refused(
        await keyed_api.post(f"/jobs/{job_id}/heartbeat", {"token": token}, authorization=stranger),
        404,
        "job_not_found",
    )
    refused(
        await keyed_api.post(f"/jobs/{job_id}/heartbeat", {"token": token}, authorization="Bearer nothing"),
        401,
        "key_invalid",
    )
    assert (await keyed_api.post(f"/jobs/{job_id}/complete", {"token": token, "result": 7})).json()[
        "result"
    ] == 7
    refused(await keyed_api.get(f"/jobs/{job_id}", authorization=f"Bearer {token}"), 401, "key_invalid")
