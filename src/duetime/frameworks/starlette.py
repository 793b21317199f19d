"""Starlette: the App opens and closes with the web application, and optionally runs jobs in its process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.requests import HTTPConnection

from duetime.app import App
from duetime.errors import NotOpen

State = dict[str, Any]
Lifespan = Callable[[Any], AbstractAsyncContextManager[State]]
InnerLifespan = Callable[[Any], AbstractAsyncContextManager[Mapping[str, Any] | None]]
STATE = "duetime"


def lifespan(
    app: App,
    *,
    worker: bool = True,
    migrate: bool = False,
    inner: InnerLifespan | None = None,
    **options: Any,
) -> Lifespan:
    """For `Starlette(lifespan=...)` and `FastAPI(lifespan=...)`. With `worker` the process also plans and
    runs jobs, with the options of `app.running()`; without it, the process only submits. `inner` is your own
    lifespan; it starts when the App is open."""

    @asynccontextmanager
    async def life(web: Any) -> AsyncIterator[State]:
        async with AsyncExitStack() as stack:
            if migrate:
                await app.migrate()
            await stack.enter_async_context(app.running(**options) if worker else _opened(app))
            yield {**(await _enter(stack, inner, web)), STATE: app}

    return life


def get_app(connection: HTTPConnection) -> App:
    """The App of the web application that serves this request or WebSocket."""
    found = getattr(connection.state, STATE, None)
    if not isinstance(found, App):
        raise NotOpen(
            "the web application has no App: pass lifespan=duetime.frameworks.fastapi.lifespan(app)"
        )
    return found


@asynccontextmanager
async def _opened(app: App) -> AsyncIterator[None]:
    await app.open()
    try:
        yield
    finally:
        await app.close()


async def _enter(stack: AsyncExitStack, inner: InnerLifespan | None, web: Any) -> Mapping[str, Any]:
    if inner is None:
        return {}
    state = await stack.enter_async_context(inner(web))
    return state or {}
