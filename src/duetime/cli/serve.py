"""`duetime serve`: run a node in the foreground, with the API beside it."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from duetime.cli.command import command, invocation
from duetime.cli.flags import option
from duetime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from socket import socket
    from ssl import SSLContext

    from duetime.api.service import Service
    from duetime.app import App
    from duetime.config import Settings
    from duetime.engine.node import Node
    from duetime.model.keyring import KeyRing

Text = str | None
LAST_WAIT = 0.1  # seconds for each thread that is about to end by itself
_logger = getLogger("duetime")


def add_serve(program: typer.Typer) -> None:
    command(
        program,
        "serve",
        "duetime serve --app tasks:app",
        "duetime serve --app tasks:app --store postgresql://worker@db.example.org/duetime --queues billing,mail --concurrency 20",
        "duetime serve --port 9000",
        "duetime serve --host 0.0.0.0 --auth keys --tls-cert server.pem --tls-key server.key",
        "duetime serve --roles planner",
    )(serve)


def serve(
    context: typer.Context,
    app: Annotated[Text, option("app")] = None,
    roles: Annotated[Text, option("roles")] = None,
    host: Annotated[Text, option("host")] = None,
    port: Annotated[Text, option("port")] = None,
    auth: Annotated[Text, option("auth")] = None,
    public_url: Annotated[Text, option("public_url")] = None,
    tls_cert: Annotated[Text, option("tls_cert")] = None,
    tls_key: Annotated[Text, option("tls_key")] = None,
    proxies: Annotated[Text, option("proxies")] = None,
    rate_limit: Annotated[Text, option("rate_limit")] = None,
    max_connections: Annotated[Text, option("max_connections")] = None,
    open_metrics: Annotated[Text, option("open_metrics")] = None,
    allow: Annotated[Text, option("allow")] = None,
    allow_ports: Annotated[Text, option("allow_ports")] = None,
    plain_http: Annotated[Text, option("plain_http")] = None,
    per_host: Annotated[Text, option("per_host")] = None,
    retry_attempts: Annotated[Text, option("retry_attempts")] = None,
    retry_delay: Annotated[Text, option("retry_delay")] = None,
    queues: Annotated[Text, option("queues")] = None,
    concurrency: Annotated[Text, option("concurrency")] = None,
    lease: Annotated[Text, option("lease")] = None,
    lookahead: Annotated[Text, option("lookahead")] = None,
    grace: Annotated[Text, option("grace")] = None,
    retention: Annotated[Text, option("retention")] = None,
    max_load: Annotated[Text, option("max_load")] = None,
    log_level: Annotated[Text, option("log_level")] = None,
    log_format: Annotated[Text, option("log_format")] = None,
    migrate: Annotated[bool, typer.Option("--migrate", help="Create or upgrade the schema first.")] = False,
) -> None:
    """Answer the API, plan schedules and run jobs until SIGTERM or Ctrl-C. The first lets running jobs finish within the grace, the second
    does not."""
    given = {
        "app": app, "roles": roles, "host": host, "port": port, "auth": auth, "public_url": public_url, "tls_cert": tls_cert,
        "tls_key": tls_key, "proxies": proxies, "rate_limit": rate_limit, "max_connections": max_connections,
        "open_metrics": open_metrics, "allow": allow, "allow_ports": allow_ports, "plain_http": plain_http, "per_host": per_host,
        "retry_attempts": retry_attempts, "retry_delay": retry_delay,
        "queues": queues, "concurrency": concurrency, "lease": lease, "lookahead": lookahead, "grace": grace,
        "retention": retention, "max_load": max_load, "log_level": log_level, "log_format": log_format,
    }  # fmt: skip
    invocation(context).flags.update({name: value for name, value in given.items() if value is not None})
    run_node(invocation(context).settings(), migrate)


def run_node(settings: Settings, migrate: bool) -> None:
    import asyncio

    from duetime.cli.logs import configure
    from duetime.cli.session import find_app

    origin = configure(settings.log_level, settings.log_format)
    for remark in settings.remarks:
        _logger.info("%s", remark)
    app = find_app(settings)
    app.observe(origin)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_run(app, settings, migrate))
    _leave_threads_behind()


async def _run(app: App, settings: Settings, migrate: bool) -> None:
    from asyncio import Event, create_task

    from duetime.cli.banner import banner
    from duetime.cli.output import say
    from duetime.cli.secret_keys import ring_of
    from duetime.engine.signals import Signals

    async with AsyncExitStack() as stack:
        stack.push_async_callback(app.close)  # a start that failed leaves nothing behind
        door = _open_door(settings)
        if door is not None:
            stack.callback(door.close)
            stack.enter_context(_renewing(door.tls))
        if migrate:
            await app.migrate()
        ring = ring_of(settings, app.store)
        service = None if door is None else _service(app, settings, ring)  # before the node starts: it takes a moment that it would miss
        signals = stack.enter_context(Signals())
        node = await stack.enter_async_context(_working(app, settings, ring, door))
        if node is not None:
            signals.on_second(node.interrupt)
        address = None if door is None else await stack.enter_async_context(_answering(service, door, settings))
        say(banner(app, settings, address, await _keys(app, settings)))
        stack.callback(create_task(_prepare_the_rest(service)).cancel)
        await signals.wait(Event() if node is None else node.ended)
        running = 0 if node is None else node.running
        _logger.info("stopping: %d jobs run and have %s to finish; a second signal ends them now", running, settings.grace)


async def _prepare_the_rest(service: Service | None) -> None:
    """What takes long and is needed by the first request or call alone, now that everything else answers."""
    from asyncio import to_thread

    from duetime.engine.calm import spare_the_collector
    from duetime.invokers.http.late import is_installed, load

    if service is not None:
        await to_thread(service.prepare)
    if is_installed():
        await to_thread(load)
    spare_the_collector()


async def _keys(app: App, settings: Settings) -> int:
    """How many keys open the door, as far as the first look goes."""
    now = await app.now()
    return sum(key.state(now) == "active" for key in await app.keys(limit=100, every_tenant=True)) if settings.keys else 0


class Door(NamedTuple):
    """Where the API will answer."""

    host: str
    listener: socket
    tls: SSLContext | None

    @property
    def address(self) -> str:
        from duetime.api.server import address_of

        return address_of(self.listener, "http" if self.tls is None else "https")

    def close(self) -> None:
        from duetime.api.server import clear

        self.listener.close()
        clear(self.host)


def _open_door(settings: Settings) -> Door | None:
    """Before anything else is started; None where this node has no API."""
    if "api" not in settings.roles:
        return None
    try:
        from duetime.api.server import listen, require_safety, tls_of
    except ModuleNotFoundError as problem:
        if settings.given("roles"):
            raise ConfigError(f"roles: the API needs the package {problem.name!r}: pip install 'duetime[service]'") from None
        return None
    require_safety(settings)
    tls = tls_of(settings)
    return Door(settings.host, listen(settings.host, settings.port), tls)


@contextmanager
def _renewing(tls: SSLContext | None) -> Iterator[None]:
    """SIGHUP has the certificate read again, as it does in other servers. Without one it ends the process, as a closed terminal should."""
    if tls is None:
        yield
        return
    from asyncio import get_running_loop
    from signal import SIGHUP

    from duetime.api.tls import RenewableContext

    assert isinstance(tls, RenewableContext)
    get_running_loop().add_signal_handler(SIGHUP, tls.renew)
    try:
        yield
    finally:
        get_running_loop().remove_signal_handler(SIGHUP)


@asynccontextmanager
async def _working(app: App, settings: Settings, ring: KeyRing, door: Door | None) -> AsyncIterator[Node | None]:
    """The node's planner and worker; a process that only answers the API is no node."""
    options = node_options(settings)
    if options["roles"]:
        _add_http(app, settings, ring, settings.public_url or _own_address(settings, door))
        async with app.running(**options) as node:
            yield node
    else:
        await app.open()
        yield None


def _own_address(settings: Settings, door: Door | None) -> str | None:
    """In local mode, where whom we call is on this machine, too."""
    return door.address if door is not None and not settings.keys and door.address.startswith("http") else None


def _service(app: App, settings: Settings, ring: KeyRing) -> Service:
    from duetime.api.service import build

    return build(app, settings, ring=ring)


@asynccontextmanager
async def _answering(service: Any, door: Door, settings: Settings) -> AsyncIterator[str]:
    from duetime.api.server import serving

    async with serving(service, door.listener, door.tls, settings.max_connections):
        yield door.address


def _add_http(app: App, settings: Settings, ring: KeyRing, reached_at: str | None) -> None:
    """HTTP targets, where what calls them is installed; `reached_at` is where they report what they finish later."""
    from duetime.invokers.http.late import POLICIES, LateHandler, is_installed
    from duetime.model.retry import Retry
    from duetime.model.target import HTTP

    egress, per_host = settings.egress(), settings.per_host or 0
    policies = replace(POLICIES, retry=Retry(settings.retry_attempts, settings.retry_delay))
    if is_installed():
        app.use_target(
            HTTP, lambda now: LateHandler(policies, lambda make: make(now, egress, ring, reached_at, policies, per_host=per_host))
        )


def node_options(settings: Settings) -> dict[str, Any]:
    names = ("queues", "concurrency", "lease", "lookahead", "grace", "retention", "max_load")
    return {"roles": tuple(role for role in settings.roles if role != "api"), **{name: getattr(settings, name) for name in names}}


def _leave_threads_behind() -> None:
    """A plain function that hangs cannot be stopped from outside. Its job has been given back by now, so the process goes without it."""
    import logging
    import os
    import sys
    import threading

    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(LAST_WAIT)
    if any(thread.is_alive() for thread in others):
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _loop_factory() -> Any:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop
