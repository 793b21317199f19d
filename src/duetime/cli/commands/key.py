"""`duetime key`: API keys, on the store itself: the first key must exist before the API can be called with
one."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.app import App
from duetime.app.keys import NewKey
from duetime.cli.backend import with_app
from duetime.cli.command import command, group
from duetime.cli.format import hint, moment_text, say, show, show_json, show_table
from duetime.cli.inputs import JsonFlag
from duetime.cli.program import value_option
from duetime.model.instant import Micros
from duetime.model.keyring import ApiKey, listed
from duetime.model.limit import show_rate
from duetime.model.views import CreatedKey, KeyView

commands = group("Create, list and revoke API keys.")

PAGE = 1_000


@command(
    commands,
    "create",
    "duetime key create ops --scopes admin",
    "duetime key create billing --scopes submit --expires-in 90d --rate 50/1s",
)
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its purpose; shown as the author of changes.")],
    scopes: Annotated[
        str,
        value_option("--scopes", "NAMES", "read, submit, manage or admin; each includes those before it."),
    ] = "submit",
    tenant: Annotated[str | None, value_option("--tenant", "NAME", "The tenant it belongs to.")] = None,
    expires_in: Annotated[
        str | None, value_option("--expires-in", "TIME", "Expire after this time, such as 90d.")
    ] = None,
    rate: Annotated[
        str | None, value_option("--rate", "N/TIME", "Allow this many requests per time: 100/1s.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a key and print it, alone, to stdout. It is shown only once: the store keeps a digest."""
    wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]

    async def work(app: App) -> NewKey:
        return await app.for_tenant(tenant or app.tenant).keys.create(
            name, wanted, expires_in=expires_in, rate=rate
        )

    made = with_app(context, work, creates=True)
    if as_json:
        show_json(CreatedKey.with_text(made.key, made.text))
        return
    ends = "it is revoked" if made.key.expires_at is None else "it expires or is revoked"
    allowed = f"It may {', '.join(listed(made.key.scopes))} for tenant {made.key.tenant} until {ends}"
    say(made.text)
    hint(f"keep it: it is not shown again. {allowed}: duetime key revoke {made.key.prefix}")


@command(commands, "list", "duetime key list --json")
def list_keys(
    context: typer.Context,
    tenant: Annotated[str | None, value_option("--tenant", "NAME", "Only of this tenant.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """The keys of all tenants, including recently expired and revoked ones."""

    async def work(app: App) -> tuple[list[ApiKey], Micros]:
        found: list[ApiKey] = []
        while page := await app.keys(
            limit=PAGE, after=found[-1].prefix if found else None, every_tenant=True
        ):
            found += page
        return [one for one in found if tenant is None or one.tenant == tenant], await app.now()

    found, now = with_app(context, work)
    if as_json:
        show_json([KeyView.of(one) for one in found])
        return
    columns = ("PREFIX", "NAME", "TENANT", "SCOPES", "STATE", "CREATED", "EXPIRES", "LAST USED", "RATE")
    rows = [_row(one, now) for one in sorted(found, key=lambda one: (one.tenant, one.created_at))]
    show_table(columns, rows, "no keys: create one with `duetime key create NAME --scopes admin`")


def _row(one: ApiKey, now: Micros) -> tuple[str, ...]:
    rate = "-" if one.rate is None else show_rate(one.rate)
    instants = [moment_text(moment, now=now) for moment in (one.created_at, one.expires_at, one.last_used_at)]
    return one.prefix, one.name, one.tenant, ",".join(listed(one.scopes)), one.state(now), *instants, rate


@command(commands, "revoke", "duetime key revoke k3v9q2m7xw")
def revoke(
    context: typer.Context,
    prefix: Annotated[
        str, typer.Argument(metavar="PREFIX", help="The key's prefix, as `duetime key list` shows it.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Revoke a key. Running services reject it within seconds."""
    done = with_app(context, lambda app: app.keys.revoke(prefix, every_tenant=True))
    show(KeyView.of(done), as_json, lambda key: say(f"{key.prefix} ({key.name} of {key.tenant}) is revoked"))
