"""`duetime serve`: run a node in the foreground."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command, invocation
from duetime.cli.flags import option

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.config import Settings

Text = str | None
LAST_WAIT = 0.1  # seconds for each thread that is about to end by itself
_logger = getLogger("duetime")


def add_serve(program: typer.Typer) -> None:
    command(
        program,
        "serve",
        "duetime serve --app tasks:app",
        "duetime serve --app tasks:app --store postgresql://worker@db.example.org/duetime --queues billing,mail --concurrency 20",
        "duetime serve --roles planner",
    )(serve)


def serve(
    context: typer.Context,
    app: Annotated[Text, option("app")] = None,
    roles: Annotated[Text, option("roles")] = None,
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
    """Plan schedules and run jobs until SIGTERM or Ctrl-C. The first lets running jobs finish within the grace, the second does not."""
    given = {
        "app": app, "roles": roles, "queues": queues, "concurrency": concurrency, "lease": lease, "lookahead": lookahead,
        "grace": grace, "retention": retention, "max_load": max_load, "log_level": log_level, "log_format": log_format,
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
    from duetime.cli.output import say
    from duetime.engine.signals import Signals

    try:
        if migrate:
            await app.migrate()
        with Signals() as signals:
            async with app.running(**node_options(settings)) as node:
                signals.again = node.interrupt
                say(banner(app, settings))
                await signals.wait(node.ended)
                _logger.info("stopping: %d jobs run and have %s to finish; a second signal ends them now", node.running, settings.grace)
    finally:
        await app.close()  # a start that failed leaves nothing behind


def node_options(settings: Settings) -> dict[str, Any]:
    names = ("roles", "queues", "concurrency", "lease", "lookahead", "grace", "retention", "max_load")
    return {name: getattr(settings, name) for name in names}


def banner(app: App, settings: Settings) -> str:
    """What is running, in one block."""
    from duetime.config import hide_password
    from duetime.version import VERSION

    own = settings.app is not None and not settings.given("store")
    known = ", ".join(sorted(app.tasks)) or "none: jobs wait for a node that knows their task (--app module:app)"
    return "\n".join(
        [
            f"duetime {VERSION} is running",
            f"  store   {f'that of {settings.app}' if own else hide_password(settings.store)}",
            f"  roles   {', '.join(settings.roles)}",
            f"  tasks   {known}",
            f"  queues  {', '.join(settings.queues) or 'all'} ({settings.concurrency} jobs at a time)",
            "  stop    Ctrl-C or SIGTERM",
        ]
    )


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
