"""`duetime key`: API keys, straight on the store, so that the first one can be made before anybody can ask the API for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command, group
from duetime.cli.flags import JsonFlag, words

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.app.keys import NewKey
    from duetime.model.apikey import ApiKey

key = group("Make, list and revoke the keys of the API.")

TenantFlag = Annotated[str | None, words("--tenant", "NAME", "Of this tenant.")]


@command(key, "create", "duetime key create ops --scopes admin", "duetime key create billing --scopes submit --expires-in 90d --rate 50/1s")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for; shown as the author of changes.")],
    scopes: Annotated[str, words("--scopes", "NAMES", "read, submit, manage or admin; each includes those before it.")] = "submit",
    tenant: TenantFlag = None,
    expires_in: Annotated[str | None, words("--expires-in", "TIME", "It opens nothing after this time, such as 90d.")] = None,
    rate: Annotated[str | None, words("--rate", "N/TIME", "So many requests in any such time: 100/1s.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a key and show it, this once: the store keeps only what it is recognised by. The key alone goes to stdout."""
    from duetime.cli.output import say, show_json
    from duetime.cli.session import with_app

    wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]

    async def work(app: App) -> NewKey:
        return await app.for_tenant(tenant or app.tenant).create_key(name, wanted, expires_in=expires_in, rate=rate)

    made = with_app(context, work, creates=True)
    if as_json:
        show_json({"key": made.text, **record(made.key)})
        return
    say(made.text)
    typer.echo(f"keep it: it is not shown again. {_sentence(made.key)}", err=True)


@command(key, "list", "duetime key list --json")
def list_keys(context: typer.Context, tenant: TenantFlag = None, as_json: JsonFlag = False) -> None:
    """The keys of all tenants, those lately expired or revoked included."""
    from duetime.cli.output import show_json, show_table
    from duetime.cli.session import with_app

    async def work(app: App) -> tuple[list[ApiKey], int]:
        found: list[ApiKey] = []
        while page := await app.keys(limit=1_000, after=found[-1].prefix if found else None, every_tenant=True):
            found += page
        return [one for one in found if tenant is None or one.tenant == tenant], await app.now()

    found, now = with_app(context, work)
    if as_json:
        show_json([record(one) for one in found])
        return
    columns = ("PREFIX", "NAME", "TENANT", "SCOPES", "STATE", "CREATED", "EXPIRES", "LAST USED", "RATE")
    rows = [_row(one, now) for one in sorted(found, key=lambda one: (one.tenant, one.created_at))]
    show_table(columns, rows, "no keys: make one with `duetime key create NAME --scopes admin`")


@command(key, "revoke", "duetime key revoke k3v9q2m7xw")
def revoke(
    context: typer.Context,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="The key's prefix, as `duetime key list` shows it.")],
    as_json: JsonFlag = False,
) -> None:
    """From now on it opens nothing; processes that answer the API know within seconds."""
    from duetime.cli.output import say, show_json
    from duetime.cli.session import with_app

    done = with_app(context, lambda app: app.revoke_key(prefix, every_tenant=True))
    if as_json:
        show_json(record(done))
    else:
        say(f"{done.prefix} ({done.name} of {done.tenant}) is revoked")


def record(one: ApiKey) -> dict[str, Any]:
    """The stable fields of `--json`."""
    from duetime.cli.records import iso
    from duetime.model.apikey import listed
    from duetime.model.limit import show_rate

    return {
        "prefix": one.prefix,
        "name": one.name,
        "scopes": listed(one.scopes),
        "tenant": one.tenant,
        "created_at": iso(one.created_at),
        "expires_at": iso(one.expires_at),
        "last_used_at": iso(one.last_used_at),
        "revoked_at": iso(one.revoked_at),
        "rate": None if one.rate is None else show_rate(one.rate),
    }


def _row(one: ApiKey, now: int) -> tuple[str, ...]:
    from duetime.cli.moments import full
    from duetime.cli.records import moment_of
    from duetime.model.apikey import listed
    from duetime.model.instant import to_datetime
    from duetime.model.limit import show_rate

    rate = "-" if one.rate is None else show_rate(one.rate)
    instants = [full(moment_of(moment), to_datetime(now)) for moment in (one.created_at, one.expires_at, one.last_used_at)]
    return one.prefix, one.name, one.tenant, ",".join(listed(one.scopes)), one.state(now), *instants, rate


def _sentence(one: ApiKey) -> str:
    from duetime.model.apikey import listed

    ends = "until it is revoked" if one.expires_at is None else "until it expires or is revoked"
    return f"It may {', '.join(listed(one.scopes))} for tenant {one.tenant} {ends}: duetime key revoke {one.prefix}"
