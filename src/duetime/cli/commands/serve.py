"""`duetime serve` and `duetime worker`: run a node in the foreground."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.app import App, search
from duetime.app.event_loop import run_in_new_loop
from duetime.app.tracing import is_configured, open_tracer
from duetime.cli import logs
from duetime.cli.backend import find_app
from duetime.cli.banner import banner
from duetime.cli.command import command, standalone
from duetime.cli.files import key_ring
from duetime.cli.format import say
from duetime.cli.inputs import MigrateFlag, setting_flags
from duetime.cli.processes import run_processes
from duetime.cli.reload import run_reloading
from duetime.config import ROLES as ALL_ROLES
from duetime.config import TABLE, Settings
from duetime.engine.alert.notices import ALERT
from duetime.engine.node.loop import Signals, spare_the_collector, without_collecting
from duetime.engine.node.node import Node
from duetime.errors import ConfigError
from duetime.invoker import Policies
from duetime.invokers.alert.handler import AlertHandler
from duetime.invokers.command import CommandHandler
from duetime.invokers.http.lazy import LazyHttpHandler, is_installed, load
from duetime.invokers.publish.handler import PublishHandler
from duetime.invokers.shadow import ShadowHandler
from duetime.model import duration
from duetime.model.command import COMMAND
from duetime.model.instant import SECOND
from duetime.model.keyring import KeyRing
from duetime.model.limit import Quotas
from duetime.model.publish import PublishTarget
from duetime.model.retry import Retry
from duetime.model.shadow import SHADOW
from duetime.model.target import HTTP, LISTED

if TYPE_CHECKING:
    from duetime.api.service import Service  # the API is an extra: `pip install 'duetime[service]'`
    from duetime.cli.listener import Listener

commands = standalone()

THREAD_TIMEOUT = 0.1  # seconds for each thread to end on its own
NODE_SETTINGS = (
    "queues", "concurrency", "threads", "lease", "lookahead", "grace", "retention", "output_retention",
    "max_load", "queue_depth",
    "archive", "archive_format", "keep_failed", "watchdog_url", "watchdog_interval", "alert_interval",
)  # fmt: skip
ServeFlags = Annotated[
    Settings,
    setting_flags(
        "app", "roles", "read_store", "queue", "leases", "host", "port", "auth", "public_url", "tls_cert",
        "tls_key",
        "proxies", "rate_limit", "max_connections", "max_pending", "max_pending_per_queue", "open_metrics",
        "strict_tasks", "allow", "allow_ports", "plain_http", "per_host", "allow_commands",
        "command_environment", "allow_apprise",
        "retry_attempts", "retry_delay",
        *NODE_SETTINGS, "stop_delay", "keep_queues", "processes", "traces", "trace_sampling", "trace_link",
        "log_level", "log_format",
    ),
]  # fmt: skip
AppArgument = Annotated[
    str | None,
    typer.Argument(metavar="MODULE:APP", help="Your App, or a module that holds one.", show_default=False),
]
WorkerFlags = Annotated[
    Settings,
    setting_flags(
        "app", "port", "host", "auth", "open_metrics", "allow", "allow_ports", "plain_http",
        "allow_commands", "command_environment", "queue", "queues", "concurrency", "threads",
        "processes", "lease", "grace", "max_load", "traces", "trace_sampling", "log_level", "log_format",
        app_argument=AppArgument, roles="worker",
    ),
]  # fmt: skip
ReloadFlag = Annotated[
    bool, typer.Option("--reload", help="Restart when source files change; for development.")
]
_logger = logging.getLogger("duetime")


@command(
    commands,
    "serve",
    "duetime serve --app tasks:app",
    "duetime serve --app tasks:app --store postgresql://worker@db.example.org/duetime --queues billing,mail",
    "duetime serve --app tasks:app --reload",
    "duetime serve --port 9000",
    "duetime serve --host 0.0.0.0 --auth keys --tls-cert server.pem --tls-key server.key",
    "duetime serve --roles planner",
    "duetime serve --app tasks:app --roles worker --queues billing,mail --concurrency 200 --processes 2",
    "duetime serve --app tasks:app --queue amqp://broker.example.org --roles dispatcher,worker",
    "duetime serve --roles planner --leases etcd://one.example.org:2379,two.example.org:2379",
)
def serve(
    context: typer.Context,
    settings: ServeFlags,
    migrate: MigrateFlag = False,
    reload: ReloadFlag = False,
) -> None:
    """Answer the API, plan schedules and run jobs until SIGTERM or Ctrl-C. The first signal lets running
    jobs finish within the grace time, the second one ends them."""
    _start(settings, migrate, reload)


@command(
    commands,
    "worker",
    "duetime worker tasks:app",
    "duetime worker shop.tasks --queues billing,mail --concurrency 20",
    "duetime worker tasks:app --port 9100",
    "duetime worker tasks:app --reload",
)
def worker(
    context: typer.Context,
    settings: WorkerFlags,
    migrate: MigrateFlag = False,
    reload: ReloadFlag = False,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C, like `duetime serve --roles worker`. Schedules need a planner,
    such as `duetime serve`. With --port the worker answers /healthz, /readyz and /metrics."""
    if settings.app is None:
        raise ConfigError("app: a worker needs the tasks of your program: duetime worker module:app")
    _start(settings, migrate, reload)


def _start(settings: Settings, migrate: bool, reload: bool) -> None:
    if reload:
        run_reloading(settings)
    elif settings.processes > 1:
        _require_no_port(settings)
        raise typer.Exit(run_processes(settings))
    else:
        run_node(settings, migrate)


def _require_no_port(settings: Settings) -> None:
    if "api" in settings.roles or _has_own_port(settings):
        raise ConfigError(
            "processes: several processes cannot answer on one port: start the API in a process of its own "
            "(--roles api), these without it (--roles worker), and leave out --port"
        )


def _has_own_port(settings: Settings) -> bool:
    """A port of another source than the flag may be meant for the API next to it."""
    return settings.sources.get("port") == TABLE["port"].flag


def run_node(settings: Settings, migrate: bool) -> None:
    node_id = logs.configure(settings.log_level, settings.log_format)
    for remark in settings.remarks:
        _logger.info("%s", remark)
    app = find_app(settings)
    if settings.read_store is not None:
        app.use_read_store(settings.read_store)
    if settings.queue is not None:
        app.use_queue(settings.queue)
    if app.broker is not None and not settings.given("roles"):
        settings = replace(settings, roles=ALL_ROLES)
    if is_configured(settings.traces, os.environ):
        app.use_traces(open_tracer(settings.traces, settings.trace_sampling))
    app.observe(node_id)
    run_in_new_loop(_run(app, settings, migrate))
    _abandon_threads()


async def _run(app: App, settings: Settings, migrate: bool) -> None:
    async with AsyncExitStack() as stack:
        stack.push_async_callback(app.close)  # also after a failed start
        listener = _listen(settings)
        if listener is not None:
            stack.callback(listener.close)
            stack.enter_context(listener.certificate_renewal())
        if migrate:
            await app.migrate()
        ring = key_ring(settings, app.store)
        app.use_secret_keys(ring)
        service = None if listener is None else listener.service(app, ring)  # slow, so before the node starts
        signals = stack.enter_context(Signals())
        node = await stack.enter_async_context(_node(app, settings, ring, listener))
        if node is not None:
            signals.on_second(node.interrupt)
        address = None
        if listener is not None and service is not None:
            address = await stack.enter_async_context(listener.answering(service))
        say(banner(app, settings, address, await _active_keys(app, settings)))
        stack.callback(asyncio.create_task(_load_the_rest(service)).cancel)
        await signals.wait(asyncio.Event() if node is None else node.ended)
        if service is not None and (delay := duration.parse(settings.stop_delay, "stop_delay")):
            service.leave()
            _logger.info("not ready, for proxies to see: requests are answered for %s", settings.stop_delay)
            await signals.wait_for_second(delay / SECOND)


async def _load_the_rest(service: Service | None) -> None:
    """Load what only the first request or call needs, after everything else answers."""
    if service is not None:
        await asyncio.to_thread(service.prepare)
    if is_installed():
        await asyncio.to_thread(load)
    spare_the_collector()


async def _active_keys(app: App, settings: Settings) -> int:
    """How many of the first keys are valid now."""
    now = await app.now()
    return (
        sum(key.state(now) == "active" for key in await app.keys(limit=100, every_tenant=True))
        if settings.keys
        else 0
    )


def _listen(settings: Settings) -> Listener | None:
    """Before anything else starts. None if this node has no API; with --port such a node answers health
    checks and /metrics."""
    if "api" not in settings.roles and not _has_own_port(settings):
        return None
    try:
        with without_collecting():
            from duetime.cli.listener import Listener
    except ModuleNotFoundError as problem:
        if settings.given("roles"):
            what = "roles: the API" if "api" in settings.roles else "port: /metrics"
            raise ConfigError(
                f"{what} needs the package {problem.name!r}: pip install 'duetime[service]'"
            ) from None
        return None
    return Listener(settings)


@asynccontextmanager
async def _node(
    app: App, settings: Settings, ring: KeyRing, listener: Listener | None
) -> AsyncIterator[Node | None]:
    """The planner and worker. A process that only answers the API is not a node."""
    options = node_options(settings)
    if options["roles"]:
        app.quotas = Quotas(
            app.quotas.queues,
            settings.max_pending or app.quotas.pending,
            settings.max_pending_per_queue or app.quotas.pending_per_queue,
        )
        app.permissions = settings.permissions(key.id for key in ring.keys)
        _add_targets(app, settings, ring, settings.public_url or _own_address(settings, listener))
        async with app.running(**options) as node:
            yield node
    else:
        await app.open()
        yield None


def _own_address(settings: Settings, listener: Listener | None) -> str | None:
    """In local mode, where HTTP targets are on this machine, too."""
    return (
        listener.address
        if listener is not None and settings.local and listener.address.startswith("http")
        else None
    )


def _add_targets(app: App, settings: Settings, ring: KeyRing, report_url: str | None) -> None:
    """Shadows. Commands, if they are allowed. Destinations of messages. HTTP targets, if their packages are
    installed. Jobs that finish later are reported to `report_url`."""
    egress, per_host = settings.egress(), settings.per_host or 0
    policies = Policies(Retry(settings.retry_attempts, settings.retry_delay))
    app.use_target(SHADOW, lambda _: ShadowHandler())
    if settings.allow_commands:
        app.use_target(COMMAND, lambda _: CommandHandler(settings.command_environment))
    app.use_target(
        ALERT,
        lambda now: AlertHandler(app.store, now, ring, egress, report_url, settings.allow_apprise),
    )
    for destination in settings.destinations:
        publisher = PublishHandler(destination, policies, ring, report_url)
        app.use_target(PublishTarget(destination.name).name, partial(_same, publisher))
    if is_installed():
        for name in (HTTP, LISTED) if egress.lists_any else (HTTP,):
            app.use_target(
                name,
                lambda now: LazyHttpHandler(
                    policies, lambda make: make(now, egress, ring, report_url, policies, per_host=per_host)
                ),
            )


def _same(handler: PublishHandler, _: object) -> PublishHandler:
    return handler


def node_options(settings: Settings) -> dict[str, Any]:
    roles = tuple(role for role in settings.roles if role != "api")
    given = {name: getattr(settings, name) for name in NODE_SETTINGS}
    if settings.threads is None:
        del given["threads"]  # the App has a default
    return {"roles": roles, **given, "keep_queues": dict(settings.keep_queues)}


def _abandon_threads() -> None:
    """A function that hangs cannot be stopped. Its job was given back, so the process exits without
    waiting for it."""
    others = [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread()
    ]
    search.end_threads()
    for thread in others:
        thread.join(THREAD_TIMEOUT)
    if hung := [thread.name for thread in others if thread.is_alive()]:
        _logger.warning("the process ends without threads that still run: %s", ", ".join(hung))
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
