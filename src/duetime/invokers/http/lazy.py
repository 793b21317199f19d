"""HTTP targets whose libraries load at the first call. They take as long to load as half of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from duetime.errors import ConfigError
from duetime.invoker import Context, Policies
from duetime.model.keyring import KeyRing
from duetime.model.limit import Limit
from duetime.model.target import Seal

if TYPE_CHECKING:
    from duetime.invokers.http.handler import HttpHandler

    HandlerFactory = Callable[..., HttpHandler]


class LazyHttpHandler:
    """An `HttpHandler` that is made at its first call. `make` gets the class, with this machine's
    certificates given."""

    limit: Limit | None = None

    def __init__(self, policies: Policies, make: Callable[[HandlerFactory], HttpHandler]) -> None:
        self.policies = policies
        self._make = make
        self._handler: HttpHandler | None = None

    async def invoke(self, context: Context, payload: bytes) -> Any:
        if self._handler is None:
            factory = await asyncio.to_thread(load)
            if self._handler is None:
                self._handler = self._make(factory)
        return await self._handler.invoke(context, payload)

    async def close(self) -> None:
        if self._handler is not None:
            await self._handler.close()


def is_installed() -> bool:
    try:
        import multidict  # noqa: F401  # comes with aiohttp, and loads quickly
    except ModuleNotFoundError:
        return False
    return True


def seal_for(ring: KeyRing, tenant: str) -> Seal | None:
    """Encrypts the secrets of a tenant's targets. None: there is no key to encrypt with."""
    if ring.current is None:
        return None
    try:
        from duetime.invokers.http.secrets import SecretBox
    except ModuleNotFoundError as problem:
        raise ConfigError(
            f"a secret of a target needs the package {problem.name!r}: pip install 'duetime[service]'"
        ) from None
    return partial(SecretBox(ring).seal, tenant)


@cache
def load() -> HandlerFactory:
    """Takes a third of a second and reads all certificates of the machine: call it on a thread."""
    from duetime.invokers.http.guard import trusted_roots
    from duetime.invokers.http.handler import HttpHandler

    return partial(HttpHandler, roots=trusted_roots())
