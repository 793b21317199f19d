"""`duetime serve`: run a node in the foreground, with the API beside it."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from logging import getLogger
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command, invocation
from duetime.cli.flags import option
from duetime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from socket import socket

    from duetime.app import App
    from duetime.config import Settings
    from duetime.engine.node import Node

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
        "duetime serve --roles planner",
    )(serve)


def serve(
    context: typer.Context,
    app: Annotated[Text, option("app")] = None,
    roles: Annotated[Text, option("roles")] = None,
    host: Annotated[Text, option("host")] = None,
    port: Annotated[Text, option("port")] = None,
    public_url: Annotated[Text, option("public_url")] = None,
    allow: Annotated[Text, option("allow")] = None,
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
        "app": app, "roles": roles, "host": host, "port": port, "public_url": public_url, "allow": allow, "queues": queues,
        "concurrency": concurrency, "lease": lease, "lookahead": lookahead, "grace": grace, "retention": retention,
        "max_load": max_load, "log_level": log_level, "log_format": log_format,
    }  # fmt: skip
    invocation(context).flags.update({name: value for name, value in given.items() if value is not None})
    run_node(invocation(context).settings(), migrate)


def run_node(settings: Settings, migrate: bool) -> None:
    import asyncio

    from duetime.cli.logs import configure
    from duetime.cli.session import find_app

    configure(settings.log_level, settings.log_format)
    app = find_app(settings)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_run(app, settings, migrate))
    _leave_threads_behind()


async def _run(app: App, settings: Settings, migrate: bool) -> None:
    from asyncio import Event

    from duetime.cli.output import say
    from duetime.engine.signals import Signals

    async with AsyncExitStack() as stack:
        stack.push_async_callback(app.close)  # a start that failed leaves nothing behind
        api = _listen(settings)
        if api is not None:
            stack.callback(api.close)
        if migrate:
            await app.migrate()
        service = None if api is None else _service(app, settings)  # before the node starts: it takes a moment that the node would miss
        signals = stack.enter_context(Signals())
        node = await stack.enter_async_context(_working(app, settings))
        if node is not None:
            signals.on_second(node.interrupt)
        address = None if api is None else await stack.enter_async_context(_answering(service, api))
        say(banner(app, settings, address))
        await signals.wait(Event() if node is None else node.ended)
        running = 0 if node is None else node.running
        _logger.info("stopping: %d jobs run and have %s to finish; a second signal ends them now", running, settings.grace)


def _listen(settings: Settings) -> socket | None:
    """The API's socket, before anything else is started; None where this node has no API."""
    if "api" not in settings.roles:
        return None
    try:
        from duetime.api.server import listen, require_loopback
    except ModuleNotFoundError as problem:
        if settings.given("roles"):
            raise ConfigError(f"roles: the API needs the package {problem.name!r}: pip install 'duetime[service]'") from None
        return None
    require_loopback(settings.host)
    return listen(settings.host, settings.port)


@asynccontextmanager
async def _working(app: App, settings: Settings) -> AsyncIterator[Node | None]:
    """The node's planner and worker; a process that only answers the API is no node."""
    options = node_options(settings)
    if options["roles"]:
        _add_http(app, settings)
        async with app.running(**options) as node:
            yield node
    else:
        await app.open()
        yield None


def _service(app: App, settings: Settings) -> Any:
    from duetime.api.service import build
    from duetime.model.keyring import KeyRing

    return build(app, settings, ring=KeyRing.parse(settings.secret_keys))


@asynccontextmanager
async def _answering(service: Any, listener: socket) -> AsyncIterator[str]:
    from duetime.api.server import address_of, serving

    address = address_of(listener)
    async with serving(service, listener):
        yield address


def _add_http(app: App, settings: Settings) -> None:
    """HTTP targets, where what calls them is installed. In local mode this machine itself may be called, too."""
    try:
        from duetime.invokers.http.handler import HttpHandler
    except ModuleNotFoundError:
        return
    from duetime.model.addresses import Egress
    from duetime.model.keyring import KeyRing
    from duetime.model.target import HTTP

    egress = Egress.parse(settings.allow, local="api" in settings.roles)
    ring = KeyRing.parse(settings.secret_keys)
    app.use_target(HTTP, lambda now: HttpHandler(now, egress, ring, settings.public_url))


def node_options(settings: Settings) -> dict[str, Any]:
    names = ("queues", "concurrency", "lease", "lookahead", "grace", "retention", "max_load")
    return {"roles": tuple(role for role in settings.roles if role != "api"), **{name: getattr(settings, name) for name in names}}


def banner(app: App, settings: Settings, address: str | None = None) -> str:
    """What is running, in one block; where it answers, and one request to try."""
    from duetime.config import hide_password
    from duetime.version import VERSION

    own = settings.app is not None and not settings.given("store")
    known = ", ".join(sorted(app.tasks)) or "none: jobs wait for a node that knows their task (--app module:app)"
    return "\n".join(
        [
            f"duetime {VERSION} is running",
            f"  store   {f'that of {settings.app}' if own else hide_password(settings.store)}",
            f"  roles   {', '.join(role for role in settings.roles if role != 'api' or address is not None)}",
            f"  tasks   {known}",
            f"  queues  {', '.join(settings.queues) or 'all'} ({settings.concurrency} jobs at a time)",
            *(_api_lines(address) if address is not None else _missing_lines(settings)),
            "  stop    Ctrl-C or SIGTERM",
        ]
    )


def _api_lines(address: str) -> list[str]:
    body = '{"target": {"type": "http", "url": "' + address + '/healthz", "method": "GET"}, "delay": "5s"}'
    return [
        f"  API     {address}/api/v1",
        f"  docs    {address}/docs",
        "  access  this machine only, no key needed; HTTP targets may call this machine, too",
        f"  try     curl {address}/api/v1/jobs -H 'content-type: application/json' -d '{body}'",
    ]


def _missing_lines(settings: Settings) -> list[str]:
    return ["  API     none: pip install 'duetime[service]' brings it"] if "api" in settings.roles else []


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
