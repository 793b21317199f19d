"""What `duetime serve` prints when it is up: what runs, where it answers, who has access, and one request
to try."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from duetime.app import App
from duetime.config import UNIX, Settings, hide_password
from duetime.version import VERSION


def banner(app: App, settings: Settings, address: str | None = None, keys: int = 0) -> str:
    """`address` is where the API answers, if it does; `keys` is the number of valid API keys."""
    return "\n".join(
        [
            f"duetime {VERSION} is running",
            f"  store   {_store(app, settings)}",
            *([] if settings.read_store is None else [f"  reads   {hide_password(settings.read_store)}"]),
            *([] if app.broker is None else [f"  broker  {app.broker}"]),
            f"  roles   {', '.join(role for role in settings.roles if role != 'api' or address is not None)}",
            *(_work(app, settings) if "worker" in settings.roles else ()),
            *(_api(settings, address, keys) if address is not None else _missing(settings)),
            "  stop    Ctrl-C or SIGTERM",
        ]
    )


def _store(app: App, settings: Settings) -> str:
    if settings.app is None or settings.given("store"):
        return hide_password(settings.store)
    url = app.store_url
    return f"that of {settings.app}" if url is None else f"{hide_password(url)}, that of {settings.app}"


def _work(app: App, settings: Settings) -> Iterator[str]:
    known = ", ".join(sorted(app.tasks))
    yield f"  tasks   {known or 'none: jobs wait for a node that knows their task (--app module:app)'}"
    threads = settings.threads or app.threads
    bound = "" if threads is None else f", {threads} of them plain tasks"
    queues = ", ".join(settings.queues) or "all"
    yield f"  queues  {queues} (up to {settings.concurrency} jobs at a time{bound})"


def _api(settings: Settings, address: str, keys: int) -> Iterator[str]:
    if "api" not in settings.roles:
        yield f"  health  {address}/healthz"
        yield f"  metrics {address}/metrics"
        return
    from duetime.api.ui import BUILT, PAGE

    on_socket = address.startswith(UNIX)
    if on_socket:
        yield f"  API     {address} (http, /api/v1; for every user who may open the socket)"
    else:
        yield f"  API     {address}/api/v1"
        yield f"  docs    {address}/docs"
        if (BUILT / PAGE).is_file():
            yield f"  UI      {address}/ui/"
    yield f"  access  {_access(settings, keys)}"
    yield f"  calls   {_calls(settings)}"
    if settings.keys and settings.tls_cert is None:
        yield "  note    keys are sent unencrypted: use a proxy with TLS, or --tls-cert and --tls-key"
    if keys or not settings.keys:
        yield f"  try     {_request(settings, address)}"
    if settings.local and not on_socket:
        yield f"  demo    {_program()} demo --port {address.rpartition(':')[2]} adds sample schedules"


def _request(settings: Settings, address: str) -> str:
    """One request to try; in local mode its target is the service itself."""
    if address.startswith(UNIX):
        return f"curl --unix-socket {address.removeprefix(UNIX)} http://localhost/api/v1/me"
    near = address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    key = " -H 'authorization: Bearer dt_...'" if settings.keys else ""
    target = f"{near}/healthz" if settings.local else "https://example.org/"
    body = '{"target": {"type": "http", "url": "' + target + '", "method": "GET"}, "delay": "5s"}'
    return f"curl {near}/api/v1/jobs{key} -H 'content-type: application/json' -d '{body}'"


def _access(settings: Settings, keys: int) -> str:
    if not settings.keys:
        return "this machine only, no key needed (--auth keys requires one)"
    return (
        "by API key" if keys else "by API key, and there is none yet: duetime key create NAME --scopes admin"
    )


def _program() -> str:
    """As it can be typed here: in a fresh clone the program is in .venv and not on the path."""
    if shutil.which("duetime"):
        return "duetime"
    return "python -m duetime" if Path(sys.argv[0]).name == "__main__.py" else sys.argv[0]


def _calls(settings: Settings) -> str:
    """Which addresses HTTP targets may have."""
    ports = f" (also ports {', '.join(map(str, settings.allow_ports))})" if settings.allow_ports else ""
    internet = f"the public Internet{'' if settings.plain_http else ' by https'}{ports}"
    places = [internet, *(["this machine"] if settings.local else []), *settings.allow]
    return f"HTTP targets may be on {', '.join(places)}"


def _missing(settings: Settings) -> list[str]:
    return ["  API     not installed: pip install 'duetime[service]'"] if "api" in settings.roles else []
