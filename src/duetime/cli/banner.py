"""What `duetime serve` says when it is up: what runs, where it answers, who may ask, and one request to try."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from duetime.config import UNIX, hide_password
from duetime.version import VERSION

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.config import Settings


def banner(app: App, settings: Settings, address: str | None = None, keys: int = 0) -> str:
    """`address` is where the API answers, if it does; `keys` how many keys there are."""
    own = settings.app is not None and not settings.given("store")
    known = ", ".join(sorted(app.tasks)) or "none: jobs wait for a node that knows their task (--app module:app)"
    return "\n".join(
        [
            f"duetime {VERSION} is running",
            f"  store   {f'that of {settings.app}' if own else hide_password(settings.store)}",
            f"  roles   {', '.join(role for role in settings.roles if role != 'api' or address is not None)}",
            f"  tasks   {known}",
            f"  queues  {', '.join(settings.queues) or 'all'} ({settings.concurrency} jobs at a time)",
            *(_api(settings, address, keys) if address is not None else _missing(settings)),
            "  stop    Ctrl-C or SIGTERM",
        ]
    )


def _api(settings: Settings, address: str, keys: int) -> Iterator[str]:
    from duetime.api.ui import BUILT, PAGE

    if address.startswith(UNIX):
        yield f"  API     {address} (http, /api/v1; whoever may open the socket)"
    else:
        yield f"  API     {address}/api/v1"
        yield f"  docs    {address}/docs"
        if (BUILT / PAGE).is_file():
            yield f"  UI      {address}/ui/"
    yield f"  access  {_access(settings, keys)}"
    yield f"  calls   {_calls(settings)}"
    if settings.keys and settings.tls_cert is None:
        yield "  note    keys travel in the clear: let a proxy with TLS stand in front, or give --tls-cert and --tls-key"
    if keys or not settings.keys:
        yield f"  try     {_try(settings, address)}"
    if settings.local and not address.startswith(UNIX):
        yield f"  demo    {_command()} demo --port {address.rpartition(':')[2]} adds lively examples"


def _try(settings: Settings, address: str) -> str:
    """One request; in local mode one whose target is there already."""
    if address.startswith(UNIX):
        return f"curl --unix-socket {address.removeprefix(UNIX)} http://localhost/api/v1/me"
    near = address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    key = " -H 'authorization: Bearer dt_...'" if settings.keys else ""
    target = f"{near}/healthz" if settings.local else "https://example.org/"
    body = '{"target": {"type": "http", "url": "' + target + '", "method": "GET"}, "delay": "5s"}'
    return f"curl {near}/api/v1/jobs{key} -H 'content-type: application/json' -d '{body}'"


def _access(settings: Settings, keys: int) -> str:
    if not settings.keys:
        return "this machine only, no key needed (--auth keys asks for one)"
    return "by API key" if keys else "by API key, and there is none yet: duetime key create NAME --scopes admin"


def _command() -> str:
    """As it can be typed here: in a fresh clone the program is in .venv and not on the path."""
    import shutil
    import sys

    return "duetime" if shutil.which("duetime") else sys.argv[0]


def _calls(settings: Settings) -> str:
    """What HTTP targets may be."""
    parts = ["the public Internet" if settings.plain_http else "the public Internet by https"]
    if settings.allow_ports:
        parts[0] += f" (also ports {', '.join(map(str, settings.allow_ports))})"
    if settings.local:
        parts.append("this machine")
    return f"HTTP targets may be on {', '.join([*parts, *settings.allow])}"


def _missing(settings: Settings) -> list[str]:
    return ["  API     none: pip install 'duetime[service]' brings it"] if "api" in settings.roles else []
