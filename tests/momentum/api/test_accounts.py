"""Accounts over HTTP: the way through the platform's consent page, renewal, revocation, and tokens that never
show."""

from __future__ import annotations

import json
from asyncio import create_task, gather, sleep, timeout
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from momentum.accounts import Accounts
from momentum.database import Database, tables, usage
from momentum.database.accounts import sealed_tokens
from momentum.platform import ReconnectNeeded
from momentum.secret_box import SecretBox, SecretUnreadable, new_key
from tests.momentum.api.scene import Client, Running, soon
from tests.momentum.platforms.fixtures import Sandbox
from tests.momentum.samples import utc_now

DAY = 86_400


async def tokens_of(client: Client) -> dict[str, str]:
    """What the service would send to the platform, by account."""
    found = (await client.get("/accounts"))["items"]
    accounts = client.service.momentum.accounts
    return {one["id"]: (await accounts.access(one["id"])).token for one in found if one["state"] == "active"}


async def change_account(client: Client, account_id: str, **changes: Any) -> None:
    rule = update(tables.accounts).where(tables.accounts.c.id == account_id).values(changes)
    async with client.service.momentum.database.transaction() as connection:
        await connection.execute(rule)


async def test_state_works_once_and_only_in_the_same_browser(
    client: Client, other_client: Client, sandbox: Sandbox
) -> None:
    begun = await client.post("/accounts/connect", {"platform": "linkedin"})
    back = await client.allow(begun["url"], "mYa_7-kQ2x")
    assert (await other_client.return_to(back))["problem"] == "state_invalid"  # a person who was lured there
    outcome = await client.return_to(back)
    assert "connected" in outcome
    assert (await client.return_to(back))["problem"] == "state_invalid"
    assert (await other_client.get("/accounts"))["items"] == []


async def test_state_ends_after_half_an_hour(client: Client, sandbox: Sandbox) -> None:
    begun = await client.post("/accounts/connect", {"platform": "linkedin"})
    back = await client.allow(begun["url"], "mYa_7-kQ2x")
    table = tables.authorizations
    async with client.service.momentum.database.transaction() as connection:
        past = update(table).where(table.c.tenant == client.tenant).values(expires_at=utc_now())
        await connection.execute(past)
    assert (await client.return_to(back))["problem"] == "state_invalid"


async def test_refusal_and_missing_scope_are_shown(client: Client, sandbox: Sandbox) -> None:
    begun = await client.post("/accounts/connect", {"platform": "linkedin"})
    back = await client.allow(begun["url"], "mYa_7-kQ2x", decision="cancel")
    assert await client.return_to(back) == {"problem": "not_granted"}
    begun = await client.post("/accounts/connect", {"platform": "linkedin"})
    back = await client.allow(begun["url"], "mYa_7-kQ2x", scopes="openid profile")
    outcome = await client.return_to(back)
    assert outcome["problem"] == "platform_failed"
    assert "w_member_social" in outcome["detail"]
    assert (await client.get("/accounts"))["items"] == []
    answer = await client.post("/accounts/connect", {"platform": "myspace"}, 422)
    assert [one["field"] for one in answer["problems"]] == ["platform"]


async def test_account_connected_again_keeps_its_id_and_posts(client: Client, sandbox: Sandbox) -> None:
    member, _ = await client.connect()
    body = {"account_id": member["id"], "text": "later", "scheduled_at": soon(DAY)}
    post = await client.post("/posts", body, 201)
    gone = await client.call("DELETE", f"/accounts/{member['id']}")
    assert (gone["state"], gone["scheduled_after_expiry"]) == ("disconnected", 1)
    assert (await client.get(f"/posts/{post['id']}"))["needs_reconnection"] is True
    assert [item["kind"] for item in (await client.get("/inbox"))["items"]] == ["account"]
    refused = await client.post("/posts", body, 422)
    assert [one["code"] for one in refused["problems"]] == ["account_disconnected"]
    again, _ = await client.connect()
    assert again["id"] == member["id"]
    assert (await client.get(f"/posts/{post['id']}"))["needs_reconnection"] is False
    kinds = [item["kind"] for item in (await client.get(f"/posts/{post['id']}/timeline"))["items"]]
    assert kinds == ["created", "account_disconnected", "account_connected"]


async def test_token_is_revoked_when_its_last_author_is_disconnected(
    client: Client, sandbox: Sandbox
) -> None:
    member, company = await client.connect()
    token = (await tokens_of(client))[member["id"]]
    await client.call("DELETE", f"/accounts/{member['id']}")
    assert await is_accepted(sandbox, token)  # the company still needs it
    await client.call("DELETE", f"/accounts/{company['id']}")
    assert not await is_accepted(sandbox, token)
    assert await tokens_of(client) == {}


async def is_accepted(sandbox: Sandbox, token: str) -> bool:
    headers = {"Authorization": f"Bearer {token}"}
    async with sandbox.http.get(f"{sandbox.url}/v2/userinfo", headers=headers) as response:
        return response.status == 200


async def test_renewal_reaches_all_authors_of_the_grant(client: Client, sandbox: Sandbox) -> None:
    await sandbox.change(refresh_tokens=True)
    member, company = await client.connect()
    assert member["can_refresh"] is True
    before = await tokens_of(client)
    await client.post(f"/accounts/{company['id']}/refresh")
    after = await tokens_of(client)
    assert after[member["id"]] == after[company["id"]] != before[member["id"]]
    assert await is_accepted(sandbox, after[member["id"]])


@asynccontextmanager
async def other_processes(client: Client, count: int) -> AsyncIterator[list[Accounts]]:
    """Further services on the same database, each with connections of its own."""
    momentum = client.service.momentum
    databases = [Database.of(momentum.settings.database) for _ in range(count)]
    yield [Accounts(one, momentum.secrets, momentum.platforms) for one in databases]
    for database in databases:
        await database.close()


@pytest.mark.parametrize("single_use", [False, True])
async def test_several_processes_renew_a_token_once(
    client: Client, sandbox: Sandbox, single_use: bool
) -> None:
    await sandbox.change(refresh_tokens=True, single_use_refresh=single_use)
    member, company = await client.connect()
    await sandbox.faults("slow", "oauth.token", times=100, seconds=1.0)
    ids = [member["id"], company["id"], member["id"], company["id"]]
    async with other_processes(client, len(ids)) as processes:
        found = await gather(*(process.refresh(one) for process, one in zip(processes, ids, strict=True)))
    (fault,) = await sandbox.scripted()
    assert fault["seen"] == 1
    assert len({access.token for access in found}) == 1
    assert set((await tokens_of(client)).values()) == {found[0].token}
    assert await is_accepted(sandbox, found[0].token)
    await sandbox.no_faults()
    await client.post(f"/accounts/{member['id']}/refresh")  # the new refresh token was kept, too


def look_before_renewal(slow: Accounts, quick: Accounts, account_id: str) -> tuple[Any, list[str]]:
    """A look of one process at the tokens, after the first of which another one renews them; and its token."""
    renewed: list[str] = []
    look = slow._tokens

    async def look_first(*arguments: Any) -> Any:
        tokens = await look(*arguments)
        if not renewed:
            renewed.append((await quick.refresh(account_id)).token)
        return tokens

    return look_first, renewed


async def test_token_that_ends_soon_is_not_renewed_again(
    client: Client, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sandbox.change(refresh_tokens=True, single_use_refresh=True)
    member, _ = await client.connect()
    await change_account(client, member["id"], expires_at=utc_now() + timedelta(minutes=5))
    async with other_processes(client, 2) as (slow, quick):
        look, renewed = look_before_renewal(slow, quick, member["id"])
        monkeypatch.setattr(slow, "_tokens", look)
        assert [(await slow.access(member["id"])).token] == renewed
    assert await is_accepted(sandbox, renewed[0])


@pytest.mark.parametrize(
    "service_database", [pytest.param("postgres", marks=pytest.mark.server)], indirect=True
)
async def test_old_token_is_not_used_after_a_renewal_in_between(
    client: Client, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two statements of a transaction; SQLite has one writer at a time."""
    await sandbox.change(refresh_tokens=True, single_use_refresh=True)
    member, _ = await client.connect()
    async with other_processes(client, 2) as (slow, quick):
        look, renewed = look_before_renewal(slow, quick, member["id"])
        monkeypatch.setattr(slow, "_tokens", look)
        assert [(await slow.refresh(member["id"])).token] == renewed
    assert await is_accepted(sandbox, renewed[0])


async def test_rejection_of_an_old_token_neither_renews_nor_ends_the_new_one(
    client: Client, sandbox: Sandbox
) -> None:
    await sandbox.change(refresh_tokens=True)
    member, _ = await client.connect()
    accounts = client.service.momentum.accounts
    old = await accounts.access(member["id"])
    new = await accounts.refresh(member["id"])
    assert await accounts.refresh(member["id"], old) == new != old
    assert not await accounts.expire(member["id"], "revoked", old)
    assert (await accounts.access(member["id"])) == new
    assert await accounts.expire(member["id"], "revoked", new)
    with pytest.raises(ReconnectNeeded):
        await accounts.access(member["id"])


async def test_renewal_of_a_dead_process_is_taken_over(client: Client, sandbox: Sandbox) -> None:
    await sandbox.change(refresh_tokens=True)
    member, _ = await client.connect()
    before = (await tokens_of(client))[member["id"]]
    async with other_processes(client, 1) as (other,):
        seen = await sealed_token(client, member["id"])
        assert await other._begin_renewal(member["id"], seen) is not None  # and then it dies
        assert await other._begin_renewal(member["id"], seen) is None
    async with client.service.momentum.database.transaction() as connection:
        await connection.execute(update(tables.renewals).values(until=utc_now()))
    await client.post(f"/accounts/{member['id']}/refresh")
    assert (await tokens_of(client))[member["id"]] != before


async def test_renewal_does_not_bring_back_a_disconnected_account(client: Client, sandbox: Sandbox) -> None:
    await sandbox.change(refresh_tokens=True)
    member, company = await client.connect()
    await sandbox.faults("slow", "oauth.token", times=1, seconds=1.0)
    async with other_processes(client, 1) as (other,):
        renewal = create_task(other.refresh(member["id"]))
        async with timeout(20):
            while not (await sandbox.scripted())[0]["seen"]:
                await sleep(0.02)
        await client.call("DELETE", f"/accounts/{member['id']}")
        with pytest.raises(ReconnectNeeded, match="disconnected"):
            await renewal
    assert await sealed_token(client, member["id"]) is None
    assert await is_accepted(sandbox, (await tokens_of(client))[company["id"]])


async def sealed_token(client: Client, account_id: str) -> bytes | None:
    async with client.service.momentum.database.reading() as connection:
        return (await sealed_tokens(connection, account_id)).token


async def test_token_that_ends_soon_is_renewed_before_it_is_used(client: Client, sandbox: Sandbox) -> None:
    await sandbox.change(refresh_tokens=True)
    member, _ = await client.connect()
    before = (await tokens_of(client))[member["id"]]
    await change_account(client, member["id"], expires_at=utc_now() + timedelta(minutes=1))
    assert (await tokens_of(client))[member["id"]] != before


async def test_account_without_renewal_warns_and_expires(client: Client, sandbox: Sandbox) -> None:
    member, _ = await client.connect()
    assert member["expires_soon"] is False
    answer = await client.post(f"/accounts/{member['id']}/refresh", None, 409)
    assert answer["code"] == "needs_reconnection"
    await change_account(client, member["id"], expires_at=utc_now() + timedelta(days=10))
    body = {"account_id": member["id"], "text": "x", "scheduled_at": soon(12 * DAY)}
    post = await client.post("/posts", body, 201)
    assert post["needs_reconnection"] is True
    (shown,) = [one for one in (await client.get("/accounts"))["items"] if one["id"] == member["id"]]
    assert (shown["expires_soon"], shown["scheduled_after_expiry"]) == (True, 1)
    await change_account(client, member["id"], expires_at=utc_now() - timedelta(seconds=1))
    with pytest.raises(ReconnectNeeded, match="connect the account again"):
        await client.service.momentum.accounts.access(member["id"])


async def test_probe_is_off_until_a_person_turns_it_on(client: Client) -> None:
    account = await client.stored_account()
    assert (await client.get("/accounts"))["items"][0]["probe"] is False
    changed = await client.call("PATCH", f"/accounts/{account.id}", json={"probe": True})
    assert changed["probe"] is True


async def test_stolen_database_reveals_no_token(
    client: Client, sandbox: Sandbox, service: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """Every byte of the file, and every value of every table; also nothing in answers and logs."""
    await sandbox.change(refresh_tokens=True)
    caplog.set_level("DEBUG")
    member, _ = await client.connect()
    sealed = await _sealed(client, member["id"])
    secrets = service.momentum.secrets
    plain = [secrets.open(sealed[0]), secrets.open(sealed[1]), client.key]
    rows = await _all_values(service)
    assert all(secret not in text for secret in plain for text in rows)
    if service.database_kind == "sqlite":
        stolen = b"".join(file.read_bytes() for file in _database_files(service.folder))
        assert sealed[0] in stolen  # this is the database
        assert all(secret.encode() not in stolen for secret in plain)
        keys = [key.encode() for key in service.momentum.settings.secret_keys]
        assert all(key not in stolen for key in keys)
    with pytest.raises(SecretUnreadable):
        SecretBox([new_key()]).open(sealed[0])
    shown = json.dumps([await client.get("/accounts"), await client.get("/status")]) + caplog.text
    assert all(secret not in shown for secret in plain)


async def _sealed(client: Client, account_id: str) -> tuple[bytes, bytes]:
    table = tables.accounts
    query = select(table.c.token, table.c.refresh_token).where(table.c.id == account_id)
    async with client.service.momentum.database.reading() as connection:
        row = (await connection.execute(query)).one()
    return bytes(row[0]), bytes(row[1])


async def _all_values(service: Running) -> list[str]:
    found = []
    async with service.momentum.database.reading() as connection:
        for table in tables.metadata.sorted_tables:
            for row in await connection.execute(select(table)):
                found.append(" ".join(map(str, row)))
    return found


def _database_files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.name.startswith("momentum.db") and file.is_file()]


def test_keys_can_be_changed_one_after_another() -> None:
    old, new = new_key(), new_key()
    sealed = SecretBox([old]).seal("secret")
    assert SecretBox([new, old]).open(sealed) == "secret"
    rotated = SecretBox([new, old]).rotate(sealed)
    assert SecretBox([new]).open(rotated) == "secret"
    with pytest.raises(SecretUnreadable):
        SecretBox([new]).open(sealed)


async def _linkedin_hold(client: Client) -> Any:
    (platform,) = (await client.get("/status"))["platforms"]
    return platform["hold"]


async def test_tenant_resumes_its_own_account_only(client: Client, other_client: Client) -> None:
    account = await client.stored_account()
    held = usage.Hold("linkedin", account.id, None, "throttled", "too many requests", utc_now())
    async with client.service.momentum.database.transaction() as connection:
        await usage.hold(connection, held)
    await other_client.post("/platforms/linkedin/resume")
    assert [item["account_id"] for item in (await client.get("/inbox"))["items"]] == [account.id]
    await client.post("/platforms/linkedin/resume")
    assert (await client.get("/inbox"))["items"] == []


async def test_only_an_operator_resumes_a_whole_platform(client: Client, sandbox: Sandbox) -> None:
    held = usage.Hold("linkedin", "", None, "version_dead", "the API version is not active", utc_now())
    async with client.service.momentum.database.transaction() as connection:
        await usage.hold(connection, held)
    (platform,) = (await client.get("/status"))["platforms"]
    assert platform["hold"] == {
        "until": None,
        "code": "version_dead",
        "reason": "the API version is not active",
    }
    assert [item["kind"] for item in (await client.get("/inbox"))["items"]] == ["hold"]
    refused = await client.post("/platforms/linkedin/resume", None, 403)
    assert (refused["code"], "operator" in refused["detail"]) == ("operator_only", True)
    assert await _linkedin_hold(client) is not None
    async with client.service.client("default") as operator:
        assert (await operator.post("/platforms/linkedin/resume"))["hold"] is None
    assert await _linkedin_hold(client) is None
    await client.post("/platforms/myspace/resume", None, 404)
