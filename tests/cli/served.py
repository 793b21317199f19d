"""The service in its own thread, on a store of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duetime as dt
from duetime.api.server import address_of, listen, serving
from duetime.api.service import build
from duetime.config import Settings
from duetime.model.keyring import KeyRing


@contextmanager
def served(store: str, queue: str | None = None, **settings: Any) -> Iterator[str]:
    """Its address. `queue` is the broker."""
    ready, loops = threading.Event(), []
    listener = listen("127.0.0.1", 0)

    async def serve() -> None:
        app, ended = dt.App(store, queue=queue), asyncio.Event()
        own = Settings(store=store, **settings)
        await app.open()
        async with serving(build(app, own, ring=KeyRing.parse(own.secret_keys)), listener):
            loops.append((asyncio.get_running_loop(), ended))
            ready.set()
            await ended.wait()
        await app.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield address_of(listener)
    finally:
        loop, ended = loops[0]
        loop.call_soon_threadsafe(ended.set)
        thread.join(60)
        listener.close()
