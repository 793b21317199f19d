"""HTTP targets before their libraries are there: these take as long to load as half of the service, which shall answer meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from duetime.invoker import Context, Policies
from duetime.model.job import Delivery
from duetime.model.limit import Limit
from duetime.model.retry import Retry

if TYPE_CHECKING:
    from duetime.invokers.http.handler import HttpHandler

POLICIES = Policies(Retry(), None, Delivery.AT_LEAST_ONCE)


class Maker(Protocol):
    """What `HttpHandler` is made by, the certificates of this machine given."""

    def __call__(self, *arguments: Any, **options: Any) -> HttpHandler: ...


class LateHandler:
    """As `HttpHandler`, which it makes when it is first called."""

    limit: Limit | None = None

    def __init__(self, policies: Policies, make: Callable[[Maker], HttpHandler]) -> None:
        self.policies = policies
        self._make = make
        self._handler: HttpHandler | None = None

    async def invoke(self, context: Context, payload: bytes) -> Any:
        if self._handler is None:
            maker = await asyncio.to_thread(load)
            if self._handler is None:
                self._handler = self._make(maker)
        return await self._handler.invoke(context, payload)

    async def close(self) -> None:
        if self._handler is not None:
            await self._handler.close()


def is_installed() -> bool:
    try:
        import multidict  # noqa: F401  # comes with aiohttp alone, and is loaded in no time
    except ModuleNotFoundError:
        return False
    return True


@cache
def load() -> Maker:
    """For a thread beside the event loop: takes a third of a second, and reads all certificates of the machine."""
    from duetime.invokers.http.connection import trusted_roots
    from duetime.invokers.http.handler import HttpHandler

    return partial(HttpHandler, roots=trusted_roots())
