"""uvicorn in the event loop of the program, with limits for what strangers may hold. The program that starts
it handles signals."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from duetime.api.protocol import ConnectionLimits, GuardedProtocol
from duetime.api.tls import RenewableContext
from duetime.clock import monotonic_micros
from duetime.config import UNIX, Settings, is_loopback
from duetime.errors import ConfigError
from duetime.model.instant import Micros

BACKLOG = 2_048
SHUTDOWN_TIMEOUT = 5  # seconds for requests in progress
IDLE_TIMEOUT = 30
HANDSHAKE_TIMEOUT = 10.0
MAX_CONNECTIONS = 1_000
OTHER_FILES = 256  # that the process may have open: stores, brokers, calls of targets
TICKS_PER_SECOND = 10
_logger = logging.getLogger("duetime")


class ApiServer(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None = None,
        on_beat: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(config)
        self.up = asyncio.Event()
        self.servers: list[asyncio.base_events.Server] = []
        self._tls = tls
        self._limits = limits
        self._on_beat = on_beat

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As in uvicorn, with a timeout for TLS handshakes and our own protocol."""
        loop = asyncio.get_running_loop()
        make = partial(GuardedProtocol, self.config, self.server_state, {}, limits=self._limits)
        timeout = None if self._tls is None else HANDSHAKE_TIMEOUT
        backlog = _fit(self._limits)
        for one in sockets or ():
            _listen(one)
            begin: Any = loop.create_unix_server if one.family == socket.AF_UNIX else loop.create_server
            self.servers.append(
                await begin(make, sock=one, ssl=self._tls, backlog=backlog, ssl_handshake_timeout=timeout)
            )
            one.listen(BACKLOG)  # asyncio has made it as short as what it accepts at a time
        self.started = True
        self.up.set()

    async def on_tick(self, counter: int) -> bool:
        if self._on_beat is not None:
            self._on_beat()
        if counter % TICKS_PER_SECOND == 0:
            self._every_second(monotonic_micros())
        return await super().on_tick(counter)

    def _every_second(self, now: Micros) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, GuardedProtocol):
                connection.end_if_late(now)
        if isinstance(self._tls, RenewableContext):
            self._tls.check(now)


@asynccontextmanager
async def guarded(
    app: Any,
    listener: socket.socket,
    limits: ConnectionLimits | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    on_beat: Callable[[], None] | None = None,
    on_stop: Callable[[], None] | None = None,
) -> AsyncIterator[ApiServer]:
    """Serves an ASGI app until the block ends, and then completes requests in progress. `on_stop` ends the
    requests that would not end by themselves, such as event streams; `on_beat` runs ten times a second."""
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_TIMEOUT,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
    )
    server = ApiServer(config, limits or ConnectionLimits(), tls, on_beat)
    # The program logs start and stop, and malformed requests are not worth a log record.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    life = asyncio.create_task(server.serve([listener]), name="duetime-api")
    started = asyncio.ensure_future(server.up.wait())
    try:
        await asyncio.wait([life, started], return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            life.result()
        yield server
    finally:
        started.cancel()
        if on_stop is not None:
            on_stop()
        server.should_exit = True
        await life


def serving(
    service: Any,
    listener: socket.socket,
    tls: ssl.SSLContext | None = None,
    max_connections: int = MAX_CONNECTIONS,
) -> AbstractAsyncContextManager[ApiServer]:
    """Duetime's own service."""
    state = service.state.service
    limits = ConnectionLimits(max_connections, state.settings.trusted_proxies())
    return guarded(service, listener, limits, tls=tls, on_beat=state.loop_lag.beat, on_stop=service.stop)


def _fit(limits: ConnectionLimits) -> int:
    """The backlog. Makes the limit of connections fit into the number of files that the process may open.
    Otherwise strangers use up all files: then no connection is accepted, and each try is logged."""
    backlog = BACKLOG
    files = _open_files(OTHER_FILES + 2 * limits.max_connections + BACKLOG)
    if files is not None:
        # Up to twice the limit are open until they are refused. A backlog of others is accepted at a time.
        free = max(8, files - OTHER_FILES)
        limits.max_connections, backlog = min(limits.max_connections, free * 3 // 8), min(BACKLOG, free // 4)
        _logger.warning(
            "%d files may be open: the API accepts %d connections; raise the limit (ulimit -n) for more",
            files,
            limits.max_connections,
        )
    return backlog


def _open_files(needed: int) -> int | None:
    """Raise the limit of open files to this number. The limit, if that is impossible."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY or soft >= needed:
            return None
        reached = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (reached, hard))
    except (ImportError, OSError, ValueError):
        return None
    return None if reached == needed else reached


def listen(host: str, port: int) -> socket.socket:
    """The bound socket. Made before anything else starts, so that a used port is reported immediately."""
    if host.startswith(UNIX):
        return _listen_at(Path(host.removeprefix(UNIX)))
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as problem:
        raise ConfigError(
            f"host: {host!r} is not an address of this machine ({problem.strerror}): use 127.0.0.1"
        ) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as problem:
        listener.close()
        raise ConfigError(
            f"port: cannot listen on {host} port {port} ({problem.strerror}): choose another with --port"
        ) from None
    return listener


def _listen(listener: socket.socket) -> None:
    """Two processes may bind the same port; only one of them can listen."""
    try:
        listener.listen(BACKLOG)
    except OSError as problem:
        raise ConfigError(
            f"port: cannot listen at {address_of(listener)} ({problem.strerror}): choose another with --port"
        ) from None


def _listen_at(path: Path) -> socket.socket:
    """A Unix socket for its owner only. Removes the socket of a process that died."""
    with socket.socket(socket.AF_UNIX) as other:
        if path.is_socket() and other.connect_ex(str(path)) != 0:
            path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # before listen(), no client can connect
    except OSError as problem:
        listener.close()
        raise ConfigError(f"host: cannot listen at {path} ({problem.strerror}): use another path") from None
    return listener


def clear(host: str) -> None:
    """Remove the Unix socket."""
    if host.startswith(UNIX):
        Path(host.removeprefix(UNIX)).unlink(missing_ok=True)


def require_safety(settings: Settings) -> None:
    """Check the settings that decide who can connect."""
    if not settings.keys:
        require_loopback(settings.host)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        missing = "tls_key" if settings.tls_key is None else "tls_cert"
        raise ConfigError(f"{missing}: is missing: TLS needs both --tls-cert and --tls-key")


def require_loopback(host: str) -> None:
    """Without keys every caller may do everything, so the service must be reachable from this machine
    only."""
    if not is_loopback(host):
        remedy = (
            "create a key with `duetime key create NAME --scopes admin` and start with --auth keys, "
            "or listen on 127.0.0.1"
        )
        raise ConfigError(
            f"host: {host} is reachable from other machines, and there is no authentication: {remedy}"
        )


def tls_of(settings: Settings) -> ssl.SSLContext | None:
    """The certificate. Read before anything else starts."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return RenewableContext(settings.tls_cert, settings.tls_key)


def address_of(listener: socket.socket, scheme: str = "http") -> str:
    if listener.family == socket.AF_UNIX:
        return f"{UNIX}{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
