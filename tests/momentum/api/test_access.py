"""Who may call: keys, the page's session, requests from other sites; and the headers of every answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from momentum.api.keys import find_key, list_keys, revoke_key
from momentum.api.page import PageFiles
from momentum.api.routes import lists
from momentum.api.server import address_of, listen, serving
from momentum.api.service import build
from momentum.errors import ConfigError
from momentum.settings import Settings
from tests.momentum.api.scene import API, Client, Running


async def test_every_route_needs_a_caller(client: Client, service: Running) -> None:
    document = await client.get("/openapi.json")
    free = {"/api/v1/session", "/api/v1/oauth/callback"}
    async with aiohttp.ClientSession() as http:
        for path, operations in document["paths"].items():
            for method in operations:
                if path not in free:
                    async with http.request(method, f"{service.address}{path}", json={}) as response:
                        assert response.status == 401, (method, path)
                        assert (await response.json())["code"] == "access_denied"
                        assert response.headers["www-authenticate"] == "Bearer"


async def test_revoked_key_ends_its_sessions(client: Client, service: Running) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as page:
        address = f"{service.address}{API}"
        async with page.post(f"{address}/session", json={"key": "mo_wrong"}) as response:
            assert response.status == 401
        async with page.post(f"{address}/session", json={"key": client.key}) as response:
            assert response.status == 200
            cookie = response.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie
            assert client.key not in cookie
        async with page.get(f"{address}/status") as response:
            assert response.status == 200
        body = {"platform": "linkedin"}
        async with page.post(f"{address}/accounts/connect", json=body) as response:
            assert response.status == 403  # the cookie alone changes nothing
        headers = {"X-Momentum": "1", "Origin": "https://evil.example"}
        async with page.post(f"{address}/accounts/connect", json=body, headers=headers) as response:
            assert response.status == 403
        headers["Origin"] = service.address
        async with page.post(f"{address}/accounts/connect", json=body, headers=headers) as response:
            assert response.status == 200
        await revoke_key_of(client)
        async with page.get(f"{address}/status") as response:
            assert response.status == 401
    await client.get("/status", 401)


async def revoke_key_of(client: Client) -> None:
    async with client.service.momentum.database.transaction() as connection:
        (key,) = [one for one in await list_keys(connection) if one.tenant == client.tenant]
        await revoke_key(connection, key.id)


async def test_idle_event_stream_of_a_revoked_key_ends(
    client: Client, service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "HEARTBEAT_INTERVAL", 3_600.0)
    async with asyncio.timeout(60), client.http.get(f"{service.address}{API}/events") as stream:
        assert (await stream.content.readline()).startswith(b"retry:")
        await revoke_key_of(client)
        assert b"post" not in await stream.content.read()


async def test_event_stream_of_a_revoked_key_ends_instead_of_sending_an_event(
    client: Client, service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "KEY_CHECK_INTERVAL", 3_600.0)
    account = await client.stored_account()
    async with (
        asyncio.timeout(60),
        service.client(client.tenant) as colleague,
        client.http.get(f"{service.address}{API}/events") as stream,
    ):
        assert (await stream.content.readline()).startswith(b"retry:")
        post = await colleague.post("/posts", {"account_id": account.id, "text": "seen"}, 201)
        while (line := await stream.content.readline()) and not line.startswith(b"data:"):
            pass
        assert post["id"] in line.decode()
        async with service.momentum.database.transaction() as connection:
            own = await find_key(connection, text=client.key)
            assert own is not None
            await revoke_key(connection, own.id)
        await colleague.post("/posts", {"account_id": account.id, "text": "not seen"}, 201)
        assert b"data:" not in await stream.content.read()


async def test_sign_out_forgets_the_cookie(client: Client, service: Running) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as page:
        address = f"{service.address}{API}"
        async with page.post(f"{address}/session", json={"key": client.key}):
            pass
        async with page.delete(f"{address}/session") as response:
            assert response.status == 204
        async with page.get(f"{address}/status") as response:
            assert response.status == 401


@pytest.fixture
async def local(service: Running, tmp_path: Path) -> AsyncIterator[str]:
    """The same service without keys, with a built page."""
    folder = tmp_path / "ui"
    (folder / "assets").mkdir(parents=True)
    (folder / "momentum.html").write_text(
        '<html><meta name="style-nonce" content=""><base href="./" /></html>'
    )
    (folder / "assets" / "app-1.js").write_text("let one = 1;")
    momentum = replace(service.momentum, settings=replace(service.momentum.settings, auth="none"))
    listener = listen("127.0.0.1", 0)
    async with serving(build(momentum, PageFiles(folder)), listener):
        yield address_of(listener)


async def test_local_mode_refuses_other_names_and_sites(local: str) -> None:
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{local}{API}/status") as response:
            assert response.status == 200
        async with http.get(f"{local}{API}/status", headers={"Host": "evil.example:8081"}) as response:
            assert (response.status, (await response.json())["code"]) == (403, "host_not_allowed")
        for name in ("X-Forwarded-For", "Forwarded", "CF-Connecting-IP", "True-Client-IP", "X-Real-IP"):
            for path in ("/status", "/posts", "/accounts"):
                async with http.get(f"{local}{API}{path}", headers={name: "203.0.113.9"}) as response:
                    assert (response.status, (await response.json())["code"]) == (403, "proxy_not_allowed")
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            async with http.post(f"{local}{API}/posts/import", headers=headers) as response:
                assert response.status == 403


async def test_page_and_its_files_have_their_headers(local: str) -> None:
    async with aiohttp.ClientSession() as http:
        for path in ("/", "/accounts", "/posts/post_1"):
            async with http.get(f"{local}{path}") as response:
                text, policy = await response.text(), response.headers["content-security-policy"]
                nonce = policy.partition("'nonce-")[2].partition("'")[0]
                assert f'content="{nonce}"' in text
                assert '<base href="/" />' in text
                assert "script-src 'self';" in policy
                assert "frame-ancestors 'none'" in policy
        async with http.get(f"{local}/assets/app-1.js") as response:
            assert response.headers["cache-control"].endswith("immutable")
            tag = response.headers["etag"]
        async with http.get(f"{local}/assets/app-1.js", headers={"If-None-Match": tag}) as response:
            assert response.status == 304
        for path in ("/assets/..%2f..%2fservice.py", "/assets/nothing.js", "/api/v1/nothing"):
            async with http.get(f"{local}{path}") as response:
                assert response.status == 404


async def test_page_that_is_not_built_says_so(service: Running, tmp_path: Path) -> None:
    listener = listen("127.0.0.1", 0)
    async with (
        serving(build(service.momentum, PageFiles(tmp_path)), listener),
        aiohttp.ClientSession() as http,
        http.get(address_of(listener)) as response,
    ):
        assert response.status == 503
        assert "make ui" in await response.text()


async def test_answers_have_headers_that_protect_browsers(client: Client, service: Running) -> None:
    for path in (f"{API}/status", f"{API}/posts/nothing", f"{API}/nothing"):
        async with client.http.get(f"{service.address}{path}") as response:
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["x-frame-options"] == "DENY"
            assert response.headers["cache-control"] == "no-store"
            assert "default-src 'none'" in response.headers["content-security-policy"]


def test_service_without_keys_listens_only_on_this_machine() -> None:
    with pytest.raises(ConfigError, match="auth"):
        Settings(host="0.0.0.0")


@pytest.mark.parametrize("url", ["https://momentum.example.org", "http://192.0.2.1:8081", "example.org"])
def test_service_without_keys_has_no_address_for_others(url: str) -> None:
    with pytest.raises(ConfigError, match=r"public_url: .* --auth keys"):
        Settings(public_url=url)
    Settings(public_url=url, auth="keys")
    Settings(public_url="http://localhost:9000")


async def test_malformed_json_and_wrong_method_are_problems(client: Client) -> None:
    headers = {"content-type": "application/json"}
    answer = await client.call("POST", "/posts", 422, data=b'{"text": ', headers=headers)
    assert answer["code"] == "input_invalid"
    answer = await client.call("PUT", "/posts", 405)
    assert answer["code"] == "method_not_allowed"
