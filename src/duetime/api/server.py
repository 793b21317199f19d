"""uvicorn inside our own event loop, beside the node. Signals stay with whoever started us."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from typing import Any

import uvicorn

from duetime.errors import ConfigError

BACKLOG = 2_048
PATIENCE = 5  # seconds that requests under way may go on after the end was asked for


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@asynccontextmanager
async def serving(service: Any, listener: socket.socket) -> AsyncIterator[Server]:
    """Answers requests until the block ends; those under way then are finished first."""
    config = uvicorn.Config(
        service,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=PATIENCE,
        backlog=BACKLOG,
    )
    server = Server(config)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # what it says of coming and going is said by the node
    life = asyncio.create_task(server.serve([listener]), name="duetime-api")
    started = asyncio.ensure_future(server.up.wait())
    try:
        await asyncio.wait([life, started], return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            life.result()
        yield server
    finally:
        started.cancel()
        server.should_exit = True
        await life


def listen(host: str, port: int) -> socket.socket:
    """The socket, bound before anything else starts: a port that is taken is told at once."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as problem:
        raise ConfigError(f"host: {host!r} is no address of this machine ({problem.strerror}): use 127.0.0.1") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as problem:
        listener.close()
        raise ConfigError(f"port: cannot listen on {host} port {port} ({problem.strerror}): choose another with --port") from None
    return listener


def require_loopback(host: str) -> None:
    """Without keys everybody who reaches the API may do everything: then only this machine may reach it (S2)."""
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host.lower() == "localhost"
    if not local:
        raise ConfigError(f"host: {host} is reached from elsewhere, and there is no authentication: listen on 127.0.0.1")


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
