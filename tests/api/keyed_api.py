"""A service that needs keys: in memory, called in-process, with real keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2 as httpx
import pytest

import duetime as dt
from duetime.api import auth, rate_limit
from duetime.api.auth import KeyAuthenticator
from duetime.api.service import build
from duetime.config import Settings
from tests.api.conftest import RING, Api

KEYS = Settings(auth="keys")


@dataclass(slots=True)
class Time:
    """The monotonic clock of this machine, moved by hand."""

    now: int = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += int(seconds * 1_000_000)


@dataclass(slots=True)
class KeyedApi(Api):
    service: Any = None
    calls: Counter[str] = field(default_factory=Counter)  # calls of the store

    async def key(self, *scopes: str, tenant: str = "default", name: str = "test", **options: Any) -> str:
        """A new key, as the value of `Authorization`."""
        made = await self.app.for_tenant(tenant).keys.create(name, scopes or ("admin",), **options)
        return f"Bearer {made.text}"

    @property
    def authenticator(self) -> KeyAuthenticator:
        authenticator: KeyAuthenticator = self.service.state.service.authenticator
        return authenticator

    def count(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        for name in names:
            monkeypatch.setattr(self.app.store, name, self._counted(name, getattr(self.app.store, name)))

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(*arguments: Any, **options: Any) -> Any:
            self.calls[name] += 1
            return await call(*arguments, **options)

        return counted


@asynccontextmanager
async def open_keyed_api(store: str = "memory://", **settings: Any) -> AsyncIterator[KeyedApi]:
    app = dt.App(store)
    await app.open()
    service = build(app, replace(KEYS, store=store, **settings), ring=RING)
    async with from_address(service, "192.0.2.1") as client:
        yield KeyedApi(app, client, service)
    await app.close()


def from_address(service: Any, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=service, raise_app_exceptions=False, client=(address, 40_000))
    return httpx.AsyncClient(transport=transport, base_url="http://duetime.example")


@pytest.fixture
async def keyed_api() -> AsyncIterator[KeyedApi]:
    async with open_keyed_api() as made:
        yield made


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(auth, "monotonic_micros", made)
    monkeypatch.setattr(rate_limit, "monotonic_micros", made)
    return made
