"""`duetime demo`: examples to look at, added to the service that runs here, or to the store where none does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duetime.cli.command import command, invocation
from duetime.cli.flags import option
from duetime.errors import ConfigError

if TYPE_CHECKING:
    from duetime.config import Settings
    from duetime.remote.client import Client

LOOK = "2s"  # how long a service may take to say that it is there


def add_demo(program: typer.Typer) -> None:
    command(program, "demo", "duetime demo", "duetime demo --remove")(demo)


def demo(
    context: typer.Context,
    port: Annotated[str | None, option("port")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take all of it away again.")] = False,
) -> None:
    """Add lively example schedules that call the echo agent of the local service. Doing it twice changes nothing."""
    if port is not None:
        invocation(context).flags["port"] = port
    settings = invocation(context).settings()
    address = _address(settings)
    with _client(address) as client:
        running = _is_running(client, address, named=address == settings.server)
        if running and settings.sources.get("store") != "--store":
            _over_http(client, address, remove)
        else:
            _in_the_store(context, address, remove)
    _tell(address, running, remove, settings)


def _address(settings: Settings) -> str:
    """Of the service that was named, else of the one that is or will be here."""
    from duetime.cli.session import reaches_server

    if reaches_server(settings) and settings.server is not None:
        return settings.server
    if settings.port == 0:
        raise ConfigError("port: the examples call the service at its port: give the one it has, such as --port 8080")
    return f"http://127.0.0.1:{settings.port}"


def _client(address: str) -> Client:
    from duetime.remote.client import Client

    return Client(address, timeout=LOOK, retries=0)


def _is_running(client: Client, address: str, named: bool) -> bool:
    from duetime.errors import DuetimeError, ServiceUnreachable

    try:
        if client.me().local:
            return True
    except ServiceUnreachable:
        if named:
            raise
        return False
    except DuetimeError:
        pass
    raise ConfigError(
        f"port: what answers at {address} is no Duetime service in local mode, where the echo agent is: choose another --port"
    )


def _over_http(client: Client, address: str, remove: bool) -> None:
    from duetime.app.demo import EXAMPLES, LABEL

    if remove:
        client.bulk_schedules("remove", label=LABEL)
        client.bulk_jobs("cancel", label=LABEL)
        client.bulk_jobs("discard", label=LABEL)
        return
    known = {one.name for one in client.schedules(label=LABEL)}
    for example in EXAMPLES:
        client.schedule(example.name, example.target(address), example.when, replace=True, **example.all_options)
        if example.at_once and example.name not in known:
            client.trigger(example.name)


def _in_the_store(context: typer.Context, address: str, remove: bool) -> None:
    from duetime.app.demo import add_examples, remove_examples
    from duetime.cli.session import with_app

    if remove:
        with_app(context, remove_examples)
    else:
        with_app(context, lambda app: add_examples(app, address), creates=True)


def _tell(address: str, running: bool, remove: bool, settings: Settings) -> None:
    from duetime.app.demo import EXAMPLES
    from duetime.cli.output import say, show_table
    from duetime.model.when import describe

    if remove:
        say("The examples are gone, with what waited or ran of them; what they did stays in the history until its time is up.")
        return
    show_table(["schedule", "fires", "what it shows"], [[one.name, describe(one.when), one.text] for one in EXAMPLES], "")
    say()
    if not running:
        flag = f" --port {settings.port}" if settings.given("port") else ""
        say(f"  start   duetime serve{flag}        nothing answers at {address} yet: the examples call it there")
    say(f"  look    {address}/ui/  or  duetime job list --limit 20")
    say("  remove  duetime demo --remove")
