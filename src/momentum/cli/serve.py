"""`momentum serve` and `momentum worker`: the processes that run."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from momentum.application import Momentum
from momentum.cli.demo import DATA_FOLDER, demo_settings, running_sandbox
from momentum.cli.options import (
    DEFAULT,
    ConcurrencyOption,
    DatabaseOption,
    KeyFileOption,
    MediaOption,
    PlatformsOption,
    QueueOption,
    make_settings,
)
from momentum.settings import ROLES, Settings

SERVE_EXAMPLES = """\b
Examples:
  momentum serve --demo
  momentum serve --database sqlite:///momentum.db --media file://media
  momentum serve --auth keys --host 0.0.0.0 --public-url https://momentum.example.org
"""
WORKER_EXAMPLES = """\b
Examples:
  momentum worker --database postgresql://momentum@db.example.org/momentum
  momentum worker --queue sqs://eu-central-1/momentum --platform linkedin
"""


def serve(
    database: DatabaseOption = DEFAULT.database,
    media: MediaOption = DEFAULT.media,
    queue: QueueOption = None,
    host: Annotated[str, typer.Option(envvar="MOMENTUM_HOST", help="Listen on this address.")] = DEFAULT.host,
    port: Annotated[int, typer.Option(envvar="MOMENTUM_PORT", help="0: any free port.")] = DEFAULT.port,
    auth: Annotated[
        str, typer.Option(envvar="MOMENTUM_AUTH", metavar="none|keys", help="Who may call the API.")
    ] = DEFAULT.auth,
    public_url: Annotated[
        str | None,
        typer.Option(envvar="MOMENTUM_PUBLIC_URL", metavar="URL", help="Where browsers reach the service."),
    ] = None,
    proxies: Annotated[
        str,
        typer.Option(
            envvar="MOMENTUM_PROXIES", metavar="NETWORKS", help="Proxies whose X-Forwarded-For is trusted."
        ),
    ] = "",
    key_file: KeyFileOption = None,
    concurrency: ConcurrencyOption = DEFAULT.concurrency,
    roles: Annotated[
        list[str] | None,
        typer.Option("--role", help="api, planner or worker; may be repeated. Default: all of them."),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="With a local LinkedIn and its own data: nothing leaves here.")
    ] = False,
    data: Annotated[
        Path, typer.Option(envvar="MOMENTUM_DATA", metavar="FOLDER", help="Of --demo: its data.")
    ] = DATA_FOLDER,
) -> None:
    """Run the API, the page, the planner and a worker."""
    if demo:
        settings = demo_settings(data, key_file, host=host, port=port, concurrency=concurrency)
    else:
        settings = make_settings(
            key_file=key_file,
            database=database,
            media=media,
            queue=queue,
            host=host,
            port=port,
            auth=auth,
            public_url=public_url,
            proxies=tuple(proxies.replace(",", " ").split()),
            concurrency=concurrency,
        )
    _log()
    asyncio.run(_serve(settings, tuple(roles or ROLES), data if demo else None))


def worker(
    database: DatabaseOption = DEFAULT.database,
    media: MediaOption = DEFAULT.media,
    queue: QueueOption = None,
    key_file: KeyFileOption = None,
    concurrency: ConcurrencyOption = DEFAULT.concurrency,
    platforms: PlatformsOption = None,
) -> None:
    """Publish only: no API, no page."""
    settings = make_settings(
        key_file=key_file,
        database=database,
        media=media,
        queue=queue,
        concurrency=concurrency,
        platforms=tuple(platforms or ()),
    )
    _log()
    asyncio.run(_work(settings))


async def _serve(settings: Settings, roles: Sequence[str], sandbox_data: Path | None) -> None:
    from anyio.lowlevel import checkpoint

    from momentum.api.server import address_of, listen, serving
    from momentum.api.service import build

    await checkpoint()  # loads what the first request would load while the node must not wait
    async with AsyncExitStack() as stack:
        listener = listen(settings.host, settings.port) if "api" in roles else None
        if sandbox_data is not None:
            await stack.enter_async_context(running_sandbox(sandbox_data, settings.linkedin.web_url))
        stopping = await stack.enter_async_context(_stop_signal())
        momentum = await stack.enter_async_context(Momentum.opened(settings, roles=roles))
        if listener is not None:
            await stack.enter_async_context(serving(build(momentum), listener))
            _announce(settings, address_of(listener))
        await stopping.wait()
        typer.echo("stopping: requests and posts in progress are completed first", err=True)


async def _work(settings: Settings) -> None:
    async with AsyncExitStack() as stack:
        stopping = await stack.enter_async_context(_stop_signal())
        await stack.enter_async_context(Momentum.opened(settings, roles=("worker",)))
        names = ", ".join(settings.platforms) or "all platforms"
        typer.echo(f"Momentum publishes to {names}; Ctrl-C stops it")
        await stopping.wait()


@asynccontextmanager
async def _stop_signal() -> AsyncIterator[asyncio.Event]:
    """Set by the first Ctrl-C or SIGTERM. The second one ends the program immediately."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop() -> None:
        stopping.set()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)
    yield stopping


def _announce(settings: Settings, address: str) -> None:
    typer.echo(f"Momentum   {settings.public_url or address}")
    typer.echo(f"API        {address}/api/v1")
    typer.echo(f"database   {_without_password(settings.database)}")
    typer.echo(f"files      {settings.media}")
    if settings.demo:
        typer.echo(f"LinkedIn   {settings.linkedin.web_url}  (local: nothing leaves this machine)")
        typer.echo(f"\nFirst: open {address}, choose Accounts, Connect, and pick a member.")
        typer.echo("Then write a post, choose a time, and watch it being published.")
    elif not settings.linkedin.client_id:
        typer.echo("\nFirst: set MOMENTUM_LINKEDIN_CLIENT_ID and MOMENTUM_LINKEDIN_CLIENT_SECRET")
        typer.echo("(docs/momentum.md, Going live), or try `momentum serve --demo`.")
    elif settings.auth == "keys":
        typer.echo("\nFirst: `momentum key create NAME` makes a key to sign in with.")
    typer.echo("Ctrl-C stops it")


def _without_password(url: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username}@{host}", query="").geturl()


def _log() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for quiet in ("httpx", "botocore", "aiobotocore", "uvicorn"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
