"""`duetime demo`: sample schedules for the service on this machine, or for the store if no service runs."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from duetime.app.demo import EXAMPLES, LABEL
from duetime.cli.backend import Backend, open_app, uses_server
from duetime.cli.command import command, standalone
from duetime.cli.format import say, show_table
from duetime.cli.inputs import setting_flags
from duetime.cli.store_backend import StoreBackend
from duetime.config import Settings, hide_password
from duetime.errors import ConfigError, DuetimeError, ServiceUnreachable
from duetime.model.describe.when import describe
from duetime.remote import AsyncClient

commands = standalone()

TIMEOUT = "2s"  # for the question whether a service runs


@command(commands, "demo", "duetime demo", "duetime demo --remove")
def demo(
    context: typer.Context,
    settings: Annotated[Settings, setting_flags("port")],
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove all sample schedules and their jobs.")
    ] = False,
) -> None:
    """Add sample schedules that call the echo agent of the local service. Running it again changes
    nothing."""
    address = _address(settings)
    running = asyncio.run(_demo(settings, address, remove))
    if remove:
        say("The sample schedules and their unfinished jobs are removed. Finished jobs stay in the history.")
    else:
        _show_examples(address, running, settings)


def _address(settings: Settings) -> str:
    """Of the service that was named, or of the one on this machine, which may not have been started yet."""
    if uses_server(settings) and settings.server is not None:
        return settings.server
    if settings.port == 0:
        raise ConfigError(
            "port: the samples call the service at its port: give a fixed one, such as --port 8080"
        )
    return f"http://127.0.0.1:{settings.port}"


async def _demo(settings: Settings, address: str, remove: bool) -> bool:
    """Add or remove the samples; returns whether the service runs."""
    async with AsyncClient(address, timeout=TIMEOUT, retries=0) as client:
        running = await _is_running(client, address, named=address == settings.server)
        if running and not _names_store(settings):
            await (_remove_from(client) if remove else _add_to(client, address))
            return running
    async with open_app(settings, creates=not remove) as app:
        backend = StoreBackend(app, settings)
        await (_remove_from(backend) if remove else _add_to(backend, address))
    return running


async def _is_running(client: AsyncClient, address: str, named: bool) -> bool:
    try:
        if (await client.me()).local:
            return True
    except ServiceUnreachable:
        if named:
            raise
        return False
    except DuetimeError:
        pass
    raise ConfigError(f"port: {address} is not a Duetime service in local mode: choose another --port")


async def _add_to(backend: Backend, address: str) -> None:
    known = {one.name for one in await backend.schedules(label=LABEL)}
    for example in EXAMPLES:
        await backend.schedule(
            example.name, example.target(address), example.when, replace=True, **example.all_options
        )
        if example.at_once and example.name not in known:
            await backend.trigger(example.name)


async def _remove_from(backend: Backend) -> None:
    await backend.bulk_schedules("remove", label=LABEL)
    await backend.bulk_jobs("cancel", label=LABEL)
    await backend.bulk_jobs("discard", label=LABEL)


def _show_examples(address: str, running: bool, settings: Settings) -> None:
    show_table(
        ["schedule", "fires", "what it shows"],
        [[one.name, describe(one.when), one.text] for one in EXAMPLES],
        "",
    )
    say()
    if running and not _names_store(settings):
        before, flag = f" --server {address}", ""  # from any folder
    else:
        before = f" --store {hide_password(settings.store)}" if _names_store(settings) else ""
        flag = f" --port {settings.port}" if settings.given("port") else ""
    if not running:
        start = f"duetime{before} serve{flag}"
        say(f"  start   {start}        the samples call {address}, and no service runs there yet")
    say(f"  look    {address}/ui/  or  duetime{before} job list --limit 20")
    say(f"  remove  duetime{before} demo --remove{flag}")


def _names_store(settings: Settings) -> bool:
    return settings.sources.get("store") == "--store"
