"""Keys at the door: who is let in, for how long, and what wrong keys cost (S1-S6, S14, S53)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.api.gates import FRESH, MOST_KEYS, MOST_STRANGERS, client_of
from duetime.api.rates import FAILURES, STRANGERS
from duetime.config import Settings
from duetime.errors import StoreUnavailable
from duetime.model.apikey import ApiKey, make_text, prefix_of, with_lesser
from tests.api.conftest import TASK, refused
from tests.api.door import Door, Time, door, from_address, open_door, time
from tests.api.test_jobs import claimed

__all__ = ["door", "time"]

JOB = {"target": TASK}
WRONG = "Bearer dt_0123456789_" + "x" * 43


def wrong(number: int) -> str:
    return f"Bearer dt_{number:010d}_{'x' * 43}"


async def test_a_key_is_256_random_bits_and_only_its_digest_is_stored(tmp_path: Path) -> None:
    """S3: the whole database holds nothing by which a key could be shown."""
    async with open_door(f"sqlite:///{tmp_path / 'keys.db'}") as door:
        texts = [(await door.key()).removeprefix("Bearer ") for _ in range(5)]
        assert all(re.fullmatch(r"dt_[0-9a-z]{10}_[0-9A-Za-z]{43}", text) for text in texts)
        assert (await door.get("/me", authorization=f"Bearer {texts[0]}")).status_code == 200
        written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        for text in texts:
            prefix, secret = text[3:13], text[14:]
            assert prefix.encode() in written
            assert secret.encode() not in written
    ends = {make_text(lambda count: bytes([255]) * count)[0], make_text(bytes)[0]}
    assert len(ends) == 2, "every bit counts"
    assert all(prefix_of(text) for text in ends)


async def test_without_a_key_nobody_is_known(door: Door) -> None:
    """S1, S6."""
    good = await door.key()
    answer = await door.get("/me")
    refused(answer, 401, "key_missing", "Authorization")
    assert answer.headers["www-authenticate"] == 'Bearer realm="duetime"'
    refused(await door.get(f"/me?api_key={good[7:]}&key={good[7:]}"), 401, "key_missing")
    for odd in (good[7:], "Basic " + good[7:], "Bearer", "Bearer ", f"{good}x", good[:-1]):
        refused(await door.get("/me", authorization=odd), 401, "key_invalid")
    assert (await door.get("/me", authorization=f"bearer  {good[7:]} ")).status_code == 200


async def test_unknown_and_wrong_keys_look_the_same(door: Door) -> None:
    """S4, S14: nobody learns which prefixes there are."""
    good = await door.key()
    unknown, almost = await door.get("/me", authorization=WRONG), await door.get("/me", authorization=_bent(good))
    first, second = refused(unknown, 401, "key_invalid"), refused(almost, 401, "key_invalid")
    assert first["detail"] == second["detail"]


def _bent(key: str) -> str:
    return key[:-1] + ("a" if key[-1] != "a" else "b")


async def test_each_scope_includes_those_below_it(door: Door) -> None:
    assert [len(with_lesser([scope])) for scope in ("read", "submit", "manage", "admin")] == [1, 2, 3, 4]
    reader, submitter = await door.key("read"), await door.key("submit")
    refused(await door.post("/jobs", JOB, authorization=reader), 403, "scope_missing")
    job = (await door.post("/jobs", JOB, authorization=submitter)).json()["id"]
    assert (await door.get(f"/jobs/{job}", authorization=submitter)).status_code == 200
    refused(await door.ask("DELETE", f"/jobs/{job}", authorization=submitter), 403, "scope_missing")
    assert (await door.ask("DELETE", f"/jobs/{job}", authorization=await door.key("manage"))).status_code == 200
    refused(await door.get("/keys", authorization=await door.key("manage")), 403, "scope_missing")


async def test_a_revoked_key_opens_nothing_within_5_seconds(time: Time, door: Door) -> None:
    """S5: whichever process revoked it; what was read while it was being revoked counts from before the reading."""
    key = await door.key()
    assert (await door.get("/me", authorization=key)).status_code == 200
    await door.app.revoke_key(key[7:])
    assert FRESH <= 2_000_000
    time.move(FRESH / 1_000_000 + 0.001)
    refused(await door.get("/me", authorization=key), 401, "key_revoked", "Authorization")
    refused(await door.post("/jobs", JOB, authorization=key), 401, "key_revoked", "Authorization")


async def test_an_expired_key_opens_nothing(time: Time, door: Door) -> None:
    key = await door.key(expires_in="1ms")
    await asyncio.sleep(0.002)
    refused(await door.get("/me", authorization=key), 401, "key_expired", "Authorization")
    lasting = await door.key(expires_in="90d")
    assert (await door.get("/me", authorization=lasting)).json()["expires_at"] is not None


async def test_one_read_serves_all_who_wait_and_two_seconds(time: Time, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    key = await door.key()
    door.count(monkeypatch, "get_record", "put_record")
    answers = await asyncio.gather(*(door.get("/me", authorization=key) for _ in range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert door.calls == {"get_record": 1, "put_record": 1}
    time.move(2.1)
    await door.get("/me", authorization=key)
    assert door.calls == {"get_record": 2, "put_record": 1}, "its use was noted less than a minute ago"


async def test_use_is_noted_once_a_minute_and_only_of_the_key_itself(time: Time, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    key = await door.key()
    await door.get("/me", authorization=_bent(key))
    [unused] = await door.app.keys()
    assert unused.last_used_at is None
    await door.get("/me", authorization=key)
    [used] = await door.app.keys()
    assert used.last_used_at is not None
    later = used.last_used_at + 61_000_000
    monkeypatch.setattr(door.app._commands, "now", _fixed(later))
    time.move(2.1)
    await door.get("/me", authorization=key)
    assert [one.last_used_at for one in await door.app.keys()] == [later]


def _fixed(value: int) -> Any:
    async def now() -> int:
        return value

    return now


async def test_a_note_of_use_does_not_undo_a_revocation(door: Door) -> None:
    key = await door.key()
    found = await door.app.find_key(key[10:20])
    assert found is not None
    await door.app.revoke_key(key[10:20])
    assert not await door.app.note_key_use(*found, found[0].created_at)
    assert (await door.app.keys())[0].revoked_at is not None


async def test_wrong_keys_are_slowed_down_cost_few_reads_and_fill_nothing(time: Time, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """S14: a thousand wrong keys in a second; whoever has a good one does not notice, from the same address either."""
    good = await door.key()
    assert (await door.get("/me", authorization=good)).status_code == 200
    door.count(monkeypatch, "get_record")
    statuses = [(await door.get("/me", authorization=wrong(number))).status_code for number in range(1_000)]
    assert (statuses.count(401), statuses.count(429)) == (FAILURES.count, 1_000 - FAILURES.count)
    assert door.calls["get_record"] == FAILURES.count
    blocked = await door.get("/me", authorization=wrong(1_001))
    refused(blocked, 429, "rate_limited")
    assert 1 <= int(blocked.headers["retry-after"]) <= 60
    for _ in range(3):
        assert (await door.get("/me", authorization=good)).status_code == 200
        time.move(0.8)
    assert len(door.gate._known) == 1


async def test_wrong_keys_from_everywhere_cost_a_bounded_number_of_reads(time: Time, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.count(monkeypatch, "get_record")
    for number in range(1_500):
        async with from_address(door.service, f"198.51.{number // 256}.{number % 256}") as client:
            await client.get("/api/v1/me", headers={"authorization": wrong(number)})
    assert door.calls["get_record"] == STRANGERS.count
    assert len(door.gate._strangers) <= MOST_STRANGERS < MOST_KEYS


async def test_a_wrong_key_that_is_repeated_is_not_looked_up_again(time: Time, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.count(monkeypatch, "get_record")
    for _ in range(20):
        refused(await door.get("/me", authorization=WRONG), 401, "key_invalid")
    assert door.calls["get_record"] == 1


async def test_a_store_that_is_away_is_no_refusal(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails closed, and says that it is not the key's fault."""
    key = await door.key()

    async def away(*_: Any) -> Any:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(door.app.store, "get_record", away)
    for _ in range(FAILURES.count + 5):
        refused(await door.get("/me", authorization=key), 503, "store_unavailable")


async def test_addresses_behind_proxies_are_believed_of_the_operators_own_only(time: Time) -> None:
    """S53."""
    proxies = Settings(proxies=("10.0.0.0/8", "::1/128")).trusted_proxies()
    assert client_of("192.0.2.1", "203.0.113.9", proxies) == "192.0.2.1", "a stranger may write what it likes"
    assert client_of("10.0.0.1", "203.0.113.9", ()) == "10.0.0.1"
    assert client_of("10.0.0.1", "203.0.113.9", proxies) == "203.0.113.9"
    assert client_of("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", proxies) == "203.0.113.9", "what is left of it was written by it"
    assert client_of("10.0.0.1", None, proxies) == "10.0.0.1"
    assert client_of("10.0.0.1", "nonsense", proxies) == "nonsense"
    async with open_door(proxies=("192.0.2.1",)) as door:
        for number in range(FAILURES.count * 2):
            answer = await door.get("/me", authorization=wrong(number), x_forwarded_for=f"203.0.113.{number}")
            refused(answer, 401, "key_invalid")


async def test_me_and_author(door: Door) -> None:
    key = await door.key("submit", tenant="acme", name="billing")
    me = (await door.get("/me", authorization=key)).json()
    assert {name: me[name] for name in ("tenant", "scopes", "key", "local", "expires_at")} == {
        "tenant": "acme",
        "scopes": ["read", "submit"],
        "key": key[10:20],
        "local": False,
        "expires_at": None,
    }
    caller = door.gate._known[key[10:20]].caller
    assert caller.author == f"billing ({key[10:20]})"
    assert ApiKey.from_value(key[10:20], (await _record(door, key)).value).tenant == "acme"


async def _record(door: Door, key: str) -> Any:
    return await door.app.store.get_record("key", "", key[10:20])


@pytest.fixture
async def limited() -> AsyncIterator[Door]:
    async with open_door(rate_limit="3/1m") as made:
        yield made


async def test_each_key_has_a_rate_of_its_own(time: Time, limited: Door) -> None:
    """429 with Retry-After, on the quick route as on the others; another key does not notice."""
    key, other, patient = await limited.key(), await limited.key(), await limited.key(rate="1/1h")
    assert [(await limited.post("/jobs", JOB, authorization=key)).status_code for _ in range(3)] == [201, 201, 201]
    for answer in (await limited.post("/jobs", JOB, authorization=key), await limited.get("/jobs", authorization=key)):
        refused(answer, 429, "rate_limited")
        assert answer.headers["retry-after"] == "20"
    assert (await limited.get("/me", authorization=other)).status_code == 200
    assert (await limited.get("/me", authorization=patient)).status_code == 200
    assert (await limited.get("/me", authorization=patient)).headers["retry-after"] == "3600"
    time.move(21)
    assert (await limited.get("/jobs", authorization=key)).status_code == 200
    assert len((await limited.get("/jobs", authorization=await limited.key())).json()["items"]) == 3


@pytest.mark.postgres
async def test_another_process_knows_of_a_revocation_on_postgresql(time: Time, postgres_url: str) -> None:
    """S5: two services on one database."""
    await dt.App(postgres_url).migrate()
    async with open_door(postgres_url) as here, open_door(postgres_url) as there:
        key = await here.key("submit", tenant="acme", expires_in="1d", rate="50/1s")
        admin = await here.key()
        assert (await there.get("/me", authorization=key)).json()["tenant"] == "acme"
        assert (await here.ask("DELETE", f"/keys/{key[10:20]}", authorization=admin)).status_code == 204
        time.move(FRESH / 1_000_000 + 0.001)
        for door in (here, there):
            refused(await door.get("/me", authorization=key), 401, "key_revoked")
        [listed] = [one for one in (await there.get("/keys?limit=1000", authorization=admin)).json()["items"] if one["tenant"] == "acme"]
        assert (listed["rate"], listed["revoked_at"] is not None, listed["last_used_at"] is not None) == ("50/1s", True, True)


async def test_a_report_needs_no_key_only_the_token_of_its_attempt(door: Door) -> None:
    """Whoever was called is not given a key: the token opens this attempt, and nothing else."""
    owner, stranger = await door.key(tenant="a"), await door.key(tenant="b")
    job_id = (await door.post("/jobs", {"target": {"type": "task", "name": "invoice.send"}}, authorization=owner)).json()["id"]
    token = await claimed(door, job_id)
    refused(await door.post(f"/jobs/{job_id}/heartbeat", {"token": token[:-1]}), 401, "token_invalid", "token")
    refused(await door.post(f"/jobs/{job_id}/heartbeat", {"token": token}, authorization=stranger), 404, "job_not_found")
    refused(await door.post(f"/jobs/{job_id}/heartbeat", {"token": token}, authorization="Bearer nothing"), 401, "key_invalid")
    assert (await door.post(f"/jobs/{job_id}/complete", {"token": token, "result": 7})).json()["result"] == 7
    refused(await door.get(f"/jobs/{job_id}", authorization=f"Bearer {token}"), 401, "key_invalid")
