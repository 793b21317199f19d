"""Routes of keys, protection of local mode from other sites, and secrets that are never shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.config import Settings
from tests.api.conftest import Api, client_of, refused
from tests.api.keyed_api import KeyedApi, keyed_api, open_keyed_api

__all__ = ["keyed_api"]

CANARY = "canary-5f2c"
HTTP = {"type": "http", "url": "https://agent.example/run", "method": "POST"}


async def test_key_is_created_shown_once_listed_and_revoked(keyed_api: KeyedApi) -> None:
    admin = await keyed_api.key()
    body = {"name": "billing", "scopes": ["submit"], "expires_in": "90d", "rate": "100/1s"}
    answer = await keyed_api.post("/keys", body, authorization=admin)
    made = answer.json()
    assert (answer.status_code, made["scopes"], made["tenant"], made["rate"]) == (
        201,
        ["read", "submit"],
        "default",
        "100/1s",
    )
    assert answer.headers["location"] == f"/api/v1/keys/{made['prefix']}"
    listed = (await keyed_api.get("/keys", authorization=admin)).json()["items"]
    assert [one for one in listed if one["prefix"] == made["prefix"]] == [
        {name: made[name] for name in made if name != "key"}
    ]
    assert (await keyed_api.get("/jobs", authorization=f"Bearer {made['key']}")).status_code == 200
    for _ in range(2):
        assert (
            await keyed_api.ask("DELETE", f"/keys/{made['prefix']}", authorization=admin)
        ).status_code == 204
    [after] = [
        one
        for one in (await keyed_api.get("/keys", authorization=admin)).json()["items"]
        if one["prefix"] == made["prefix"]
    ]
    assert after["revoked_at"] is not None
    refused(await keyed_api.ask("DELETE", "/keys/0000000000", authorization=admin), 404, "key_not_found")


async def test_a_request_with_an_idempotency_key_leaves_no_key_behind_in_the_store(tmp_path: Path) -> None:
    """An answer that is kept to be given again would hold it."""
    async with open_keyed_api(f"sqlite:///{tmp_path / 'keys.db'}") as keyed_api:
        made = await keyed_api.post(
            "/keys",
            {"name": "a", "scopes": ["read"]},
            authorization=await keyed_api.key(),
            idempotency_key="once",
        )
        secret = made.json()["key"][14:].encode()
        assert not any(secret in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes"),
        ({"scopes": "admin"}, "scopes"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"expires_in": "0s"}, "expires_in"),
        ({"expires_in": "soon"}, "expires_in"),
        ({"rate": "fast"}, "rate"),
        ({"rate": 5}, "rate"),
        ({"tenant": "@x"}, "tenant"),
        ({"digest": "00"}, "digest"),
        ({"prefix": "abc"}, "prefix"),
    ],
)
async def test_a_wrong_key_request_is_refused_by_field(
    keyed_api: KeyedApi, change: dict[str, Any], field: str
) -> None:
    problem = refused(
        await keyed_api.post(
            "/keys", {"name": "a", "scopes": ["read"], **change}, authorization=await keyed_api.key()
        ),
        422,
        "input_invalid",
    )
    assert problem["field"].startswith(field)


async def test_only_the_operator_tenant_creates_and_sees_keys_of_others(keyed_api: KeyedApi) -> None:
    operator, acme = await keyed_api.key(), await keyed_api.key(tenant="acme")
    body = {"name": "x", "scopes": ["read"], "tenant": "other"}
    refused(await keyed_api.post("/keys", body, authorization=acme), 403, "tenant_not_allowed", "tenant")
    assert (await keyed_api.post("/keys", {**body, "tenant": "acme"}, authorization=acme)).json()[
        "tenant"
    ] == "acme"
    theirs = (await keyed_api.post("/keys", body, authorization=operator)).json()
    assert (await keyed_api.get("/me", authorization=f"Bearer {theirs['key']}")).json()["tenant"] == "other"
    assert {one["tenant"] for one in (await keyed_api.get("/keys", authorization=acme)).json()["items"]} == {
        "acme"
    }
    everybody = (await keyed_api.get("/keys", authorization=operator)).json()["items"]
    assert {one["tenant"] for one in everybody} == {"default", "acme", "other"}
    refused(
        await keyed_api.ask("DELETE", f"/keys/{theirs['prefix']}", authorization=acme), 404, "key_not_found"
    )
    assert (
        await keyed_api.ask("DELETE", f"/keys/{theirs['prefix']}", authorization=operator)
    ).status_code == 204


async def test_keys_are_listed_page_by_page(keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duetime.app.keys.PAGE", 3)
    admin = await keyed_api.key(tenant="acme")
    for _ in range(10):
        await keyed_api.key(tenant="acme")
        await keyed_api.key(tenant="other")
    seen, cursor = list[str](), ""
    while True:
        page = (await keyed_api.get(f"/keys?limit=4{cursor}", authorization=admin)).json()
        seen += [one["prefix"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert len(set(seen)) == len(seen) == 11
    assert seen == sorted(seen)


async def test_tenant_neither_sees_nor_pauses_queues_of_others(keyed_api: KeyedApi) -> None:
    """What all tenants share is the operator's to change; how much waits there is each tenant's own
    affair."""
    operator, acme, other = (
        await keyed_api.key(),
        await keyed_api.key(tenant="acme"),
        await keyed_api.key(tenant="other"),
    )
    for key, queue in ((acme, "shared"), (acme, "shared"), (other, "shared"), (other, "theirs")):
        await keyed_api.post(
            "/jobs", {"target": {"type": "task", "name": "t"}, "queue": queue}, authorization=key
        )
    refused(await keyed_api.post("/queues/shared/pause", authorization=acme), 403, "tenant_not_allowed")
    refused(await keyed_api.post("/queues/shared/resume", authorization=acme), 403, "tenant_not_allowed")
    mine = (await keyed_api.get("/queues", authorization=acme)).json()["items"]
    assert [(one["name"], one["pending"], one["due"], one["running"]) for one in mine] == [
        ("shared", 2, 2, 0)
    ]
    assert [
        (one["name"], one["pending"])
        for one in (await keyed_api.get("/queues", authorization=operator)).json()["items"]
    ] == [
        ("shared", 3),
        ("theirs", 1),
    ]
    assert (await keyed_api.post("/queues/shared/pause", authorization=operator)).json()["paused"]


# -- local mode --------------------------------------------------------------------------------------------
async def test_local_mode_refuses_requests_of_other_sites(api: Api) -> None:
    """A page of another site, one made to point here by its name, and one on another port of this machine."""
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8080",
        "2130706433",
        "",
        "[::2]",
        "128.0.0.1",
    ):
        refused(await api.post("/jobs/batch", b"{}", host=host), 403, "host_not_allowed", "Host")
    for site in ("cross-site", "same-site"):
        refused(
            await api.post("/jobs", b"{}", sec_fetch_site=site), 403, "origin_not_allowed", "Sec-Fetch-Site"
        )
        refused(
            await api.post("/queues/a/pause", sec_fetch_site=site),
            403,
            "origin_not_allowed",
            "Sec-Fetch-Site",
        )
        assert (await api.get("/jobs", sec_fetch_site=site, sec_fetch_mode="navigate")).status_code == 200
    refused(
        await api.post("/queues/a/pause", host="localhost:1", origin="http://localhost:2"),
        403,
        "origin_not_allowed",
        "Origin",
    )
    for site in ("same-origin", "none"):
        assert (await api.post("/queues/a/pause", sec_fetch_site=site)).status_code == 200
    for name in (
        *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "forwarded", "via"),
        *("x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip", "fly-client-ip", "cdn-loop"),
        *("x-original-forwarded-for", "x-cluster-client-ip", "fastly-client-ip", "x-azure-clientip"),
    ):
        refused(await api.get("/me", **{name: "192.0.2.1"}), 403, "proxy_not_allowed")
    for host in ("127.0.0.1:8080", "127.8.8.8", "[::1]", "localhost:8080"):
        assert (await api.get("/me", host=host)).status_code == 200


# -- secrets -----------------------------------------------------------------------------------------------
async def test_edit_keeps_secrets_and_answers_never_show_them(tmp_path: Path) -> None:
    async with open_keyed_api(f"sqlite:///{tmp_path / 'secrets.db'}") as keyed_api:
        key = await keyed_api.key()
        secret = {**HTTP, "secret_headers": {"X-Api-Key": CANARY, "X-Other": f"{CANARY}-2"}}
        texts = []

        async def ask(method: str, path: str, body: Any = None) -> Any:
            answer = await keyed_api.ask(method, path, body, authorization=key)
            assert answer.status_code < 300, answer.text
            texts.append(answer.text)
            return answer.json() if answer.content else None

        made = await ask("POST", "/schedules", {"name": "s", "when": {"every": "1h"}, "target": secret})
        sealed = await _sealed(keyed_api)
        edited = await ask("PATCH", "/schedules/s", {"target": {**HTTP, "timeout": "7s"}, "priority": 3})
        assert edited["target"]["secret_headers"] == {"X-Api-Key": "***", "X-Other": "***"}
        assert await _sealed(keyed_api) == sealed
        await ask("PATCH", "/schedules/s", {"target": {**HTTP, "secret_headers": {"X-Api-Key": "***"}}})
        assert await _sealed(keyed_api) == {"X-Api-Key": sealed["X-Api-Key"]}
        moved = await keyed_api.ask(
            "PATCH", "/schedules/s", {"target": {**HTTP, "url": "https://evil.example/"}}, authorization=key
        )
        refused(moved, 422, "input_invalid", "target.secret_headers.X-Api-Key")
        job = await ask("POST", f"/schedules/{made['id']}/trigger")
        await ask("POST", "/jobs", {"target": secret})
        for path in (
            f"/jobs/{job['id']}",
            "/jobs",
            "/schedules",
            "/schedules/s",
            "/schedules/s/jobs",
            "/schedules/s/versions",
            "/keys",
        ):
            await ask("GET", path)
        await ask("PATCH", "/schedules/s", {"target": {**HTTP, "secret_headers": {}}})
        assert await _sealed(keyed_api) == {}
        await ask("DELETE", "/schedules/s")
        assert not [text for text in texts if CANARY in text or "sealed" in text]
        assert not any(CANARY.encode() in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


async def _sealed(keyed_api: KeyedApi) -> dict[str, str]:
    stored = (await keyed_api.app.schedules.find("s")).draft.target_spec
    found: dict[str, str] = json.loads(stored or b"{}").get("sealed", {})
    return found


async def test_signing_secret_is_kept_until_it_is_removed(keyed_api: KeyedApi) -> None:
    key = await keyed_api.key()
    signing = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
    await keyed_api.post(
        "/schedules",
        {"name": "s", "when": {"every": "1h"}, "target": {**HTTP, "signing_secret": signing}},
        authorization=key,
    )
    kept = await keyed_api.ask("PATCH", "/schedules/s", {"target": HTTP}, authorization=key)
    assert kept.json()["target"]["signing_secret"] == "***"
    gone = await keyed_api.ask(
        "PATCH", "/schedules/s", {"target": {**HTTP, "signing_secret": None}}, authorization=key
    )
    assert "signing_secret" not in gone.json()["target"]


async def test_without_a_secret_key_secrets_are_refused_with_the_remedy() -> None:
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, Settings())) as client:
        answer = await Api(app, client).post(
            "/jobs", {"target": {**HTTP, "secret_headers": {"X-Api-Key": CANARY}}}
        )
        problem = refused(answer, 422, "input_invalid", "target.secret_headers.X-Api-Key")
        assert "DUETIME_SECRET_KEYS" in problem["detail"]
        assert CANARY not in answer.text
    await app.close()
