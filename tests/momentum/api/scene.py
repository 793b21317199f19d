"""The service over real HTTP, in this process, on each database, with the local LinkedIn. Every test has a
tenant of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from momentum.api.keys import create_key
from momentum.api.server import address_of, listen, serving
from momentum.api.service import build
from momentum.application import Momentum
from momentum.database import accounts
from momentum.database.accounts import SealedTokens
from momentum.model import Account
from momentum.platforms.linkedin import LinkedInSettings
from momentum.publishing.options import PublishingOptions
from momentum.secret_box import new_key
from momentum.settings import Settings
from tests.momentum.samples import sample_account

API = "/api/v1"
QUICK = PublishingOptions(
    lead=timedelta(seconds=30),
    poll_delays=(timedelta(seconds=0.1),),
    first_delay=timedelta(seconds=0.1),
    recheck=timedelta(seconds=1),
)


def settings_for(database: str, folder: Path, linkedin_url: str, **changes: Any) -> Settings:
    linkedin = LinkedInSettings(
        "momentum", "sandbox-secret", web_url=linkedin_url, api_url=linkedin_url, organizations=True, grace=0
    )
    made = Settings(
        database=database,
        media=f"file://{folder / 'media'}",
        secret_keys=(new_key(),),
        auth="keys",
        port=0,
        linkedin=linkedin,
        publishing=QUICK,
    )
    return replace(made, **changes)


@dataclass
class Running:
    """A running service."""

    momentum: Momentum
    address: str
    database_kind: str = ""
    folder: Path = field(default_factory=Path)

    @asynccontextmanager
    async def client(self, tenant: str) -> AsyncIterator[Client]:
        async with self.momentum.database.transaction() as connection:
            _, key = await create_key(connection, "tests", tenant)
        headers = {"Authorization": f"Bearer {key}"}
        jar = aiohttp.CookieJar(unsafe=True)  # the service has an address, not a name
        async with aiohttp.ClientSession(headers=headers, cookie_jar=jar) as http:
            yield Client(self, tenant, key, http)


@asynccontextmanager
async def running(settings: Settings, *roles: str) -> AsyncIterator[Running]:
    listener = listen(settings.host, settings.port)
    async with (
        Momentum.opened(settings, roles=roles or ("api", "planner", "worker")) as momentum,
        serving(build(momentum), listener),
    ):
        yield Running(momentum, address_of(listener))


@dataclass
class Client:
    """A caller of the service with a key of one tenant."""

    service: Running
    tenant: str
    key: str
    http: aiohttp.ClientSession

    async def call(self, method: str, path: str, expect: int = 200, **options: Any) -> Any:
        """The JSON of the response, which must have this status."""
        async with self.http.request(method, f"{self.service.address}{API}{path}", **options) as response:
            text = await response.text()
            assert response.status == expect, f"{method} {path}: {response.status} {text}"
            is_json = "json" in response.headers.get("content-type", "")
            return await response.json(content_type=None) if is_json else text

    async def get(self, path: str, expect: int = 200, **query: Any) -> Any:
        return await self.call("GET", path, expect, params=query)

    async def post(self, path: str, body: Any = None, expect: int = 200, **options: Any) -> Any:
        return await self.call("POST", path, expect, json=body, **options)

    async def upload(self, content: bytes, name: str = "file.bin", expect: int = 201) -> Any:
        return await self.call("POST", "/media", expect, data=content, params={"name": name})

    async def stored_account(self, **changes: Any) -> Account:
        """An account without its platform: for tests that publish nothing."""
        account = sample_account(**{"tenant": self.tenant, **changes})
        sealed = SealedTokens(self.service.momentum.secrets.seal("token"), None, None)
        async with self.service.momentum.database.transaction() as connection:
            await accounts.insert(connection, account, sealed)
        return account

    async def connect(self, member: str = "mYa_7-kQ2x", **changes: Any) -> list[dict[str, Any]]:
        """As a person does in a browser: begin, allow at the platform, return. The connected accounts."""
        begun = await self.post("/accounts/connect", {"platform": "linkedin"})
        back = await self.allow(begun["url"], member, **changes)
        outcome = await self.return_to(back)
        assert "connected" in outcome, outcome
        ids = outcome["connected"].split(",")
        return [one for one in (await self.get("/accounts"))["items"] if one["id"] in ids]

    async def allow(self, url: str, member: str, decision: str = "allow", scopes: str | None = None) -> str:
        """The consent page's form. Returns where the platform sends the browser."""
        fields = dict(parse_qsl(urlsplit(url).query))
        granted = (fields["scope"] if scopes is None else scopes).split()
        form = [*fields.items(), ("member", member), ("decision", decision)]
        form += [("granted", scope) for scope in granted]
        address = url.partition("?")[0]
        async with self.http.post(address, data=form, allow_redirects=False) as response:
            assert response.status in (302, 303), await response.text()
            return response.headers["location"]

    async def return_to(self, url: str) -> dict[str, str]:
        """What the page learns from the address that the browser ends at."""
        async with self.http.get(url, allow_redirects=False) as response:
            assert response.status == 303, await response.text()
            target = urlsplit(response.headers["location"])
            assert target.path == "/accounts"
            return dict(parse_qsl(target.query))

    async def until(self, post_id: str, *states: str) -> Any:
        async with asyncio.timeout(60):
            while True:
                post = await self.get(f"/posts/{post_id}")
                if post["state"] in states:
                    return post
                await asyncio.sleep(0.05)


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
