"""uvicorn in the event loop of the program, which handles signals itself."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import FastAPI

from momentum.errors import ConfigError

BACKLOG = 2_048
SHUTDOWN_TIMEOUT = 5  # seconds for requests in progress
IDLE_TIMEOUT = 30


class ApiServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """The bound socket. Made before anything else starts, so that a used port is reported immediately."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as problem:
        raise ConfigError(f"host: {host!r} is not an address of this machine ({problem.strerror})") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as problem:
        listener.close()
        raise ConfigError(
            f"port: cannot listen on {host} port {port} ({problem.strerror}): choose another with --port"
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@asynccontextmanager
async def serving(service: FastAPI, listener: socket.socket) -> AsyncIterator[None]:
    """Serves until the block ends, and then completes requests in progress."""
    config = uvicorn.Config(
        service,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_TIMEOUT,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
    )
    server = ApiServer(config)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    life = asyncio.create_task(server.serve([listener]), name="momentum-api")
    up = asyncio.create_task(server.up.wait())
    try:
        await asyncio.wait([life, up], return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            life.result()
        yield
    finally:
        up.cancel()
        service.state.service.changes.close()
        server.should_exit = True
        await life
