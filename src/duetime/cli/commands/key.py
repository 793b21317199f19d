"""`duetime key`: API keys. The first one is created on the store itself, because the API cannot be called
without it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from duetime.cli.backend import Backend, find_app, time_of, with_backend
from duetime.cli.command import command, group
from duetime.cli.files import key_ring
from duetime.cli.format import hint, moment_text, say, show, show_json, show_table
from duetime.cli.inputs import JsonFlag
from duetime.cli.program import settings_of, value_option
from duetime.errors import KeyNotFound
from duetime.model.api_key import read_prefix
from duetime.model.signing import shown_secrets
from duetime.model.url import parse
from duetime.model.views import KeyView

commands = group("Create, list and revoke API keys.")

MAX_KEYS = 1_000_000


@command(
    commands,
    "create",
    "duetime key create ops --scopes admin",
    "duetime key create billing --scopes submit --expires-in 90d --rate 50/1s",
    "duetime key create mailer --scopes work --queues mail,billing",
)
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its purpose; shown as the author of changes.")],
    scopes: Annotated[
        str,
        value_option("--scopes", "NAMES", "read, submit, manage or admin, each with those before it; work."),
    ] = "submit",
    tenant: Annotated[str | None, value_option("--tenant", "NAME", "The tenant it belongs to.")] = None,
    expires_in: Annotated[
        str | None, value_option("--expires-in", "TIME", "Expire after this time, such as 90d.")
    ] = None,
    rate: Annotated[
        str | None, value_option("--rate", "N/TIME", "Allow this many requests per time: 100/1s.")
    ] = None,
    queues: Annotated[
        str | None, value_option("--queues", "NAMES", "Limit the scope work to these queues.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a key and print it, alone, to stdout. It is shown only once: the store keeps a digest."""
    wanted, served = _names(scopes), _names(queues or "")

    made = with_backend(
        context,
        lambda backend: backend.create_key(
            name, wanted, tenant=tenant, expires_in=expires_in, rate=rate, queues=served
        ),
        creates=True,
    )
    if as_json:
        show_json(made)
        return
    ends = "it is revoked" if made.expires_at is None else "it expires or is revoked"
    allowed = f"It may {', '.join(made.scopes)} for tenant {made.tenant} until {ends}"
    say(made.key)
    hint(f"keep it: it is not shown again. {allowed}: duetime key revoke {made.prefix}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@command(commands, "list", "duetime key list --json")
def list_keys(
    context: typer.Context,
    tenant: Annotated[str | None, value_option("--tenant", "NAME", "Only of this tenant.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """The keys of all tenants, or of the own tenant if the API key is not the operator's, including recently
    expired and revoked ones."""

    async def work(backend: Backend) -> tuple[list[KeyView], datetime]:
        return await backend.keys(limit=MAX_KEYS), await time_of(backend)

    known, now = with_backend(context, work)
    found = [one for one in known if tenant is None or one.tenant == tenant]
    if as_json:
        show_json(found)
        return
    columns = ("PREFIX", "NAME", "TENANT", "SCOPES", "STATE", "CREATED", "EXPIRES", "LAST USED", "RATE")
    rows = [_row(one, now) for one in sorted(found, key=lambda one: (one.tenant, one.created_at))]
    show_table(columns, rows, "no keys: create one with `duetime key create NAME --scopes admin`")


def _row(one: KeyView, now: datetime) -> tuple[str, ...]:
    expired = one.expires_at is not None and one.expires_at <= now
    state = "revoked" if one.revoked_at is not None else "expired" if expired else "active"
    instants = [moment_text(moment, now=now) for moment in (one.created_at, one.expires_at, one.last_used_at)]
    return one.prefix, one.name, one.tenant, ",".join(one.scopes), state, *instants, one.rate or "-"


@command(commands, "signing-secret", "duetime key signing-secret https://agent.example")
def signing_secret(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A target, or its host.")],
    tenant: Annotated[str | None, value_option("--tenant", "NAME", "The tenant of the jobs.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print the secrets with which calls to this host are signed; the first is the current one."""
    origin, settings = parse(url, "url").origin, settings_of(context)
    app = find_app(settings)
    ring = key_ring(settings, app.store, creates=False)
    secrets = shown_secrets(ring, tenant or app.tenant, origin)
    show({"origin": origin, "secrets": secrets}, as_json, lambda _: say("\n".join(secrets)))


@command(commands, "revoke", "duetime key revoke k3v9q2m7xw")
def revoke(
    context: typer.Context,
    prefix: Annotated[
        str, typer.Argument(metavar="PREFIX", help="The key's prefix, as `duetime key list` shows it.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Revoke a key. Running services reject it within seconds."""

    async def work(backend: Backend) -> KeyView:
        public = (read_prefix(prefix) or prefix)[:40]  # never send or print a whole key
        await backend.revoke_key(public)
        for key in await backend.keys(limit=MAX_KEYS):
            if key.prefix == public:
                return key
        raise KeyNotFound(f"key {public!r} not found: list the keys to see all of them")

    done = with_backend(context, work)
    show(done, as_json, lambda key: say(f"{key.prefix} ({key.name} of {key.tenant}) is revoked"))
