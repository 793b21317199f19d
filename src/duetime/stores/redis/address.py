"""The address of the server: a URL, with the options of the store."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from duetime.errors import ConfigError, InvalidInput
from duetime.model import duration
from duetime.model.instant import Micros

DEFAULT_PORT = 6379
DEFAULT_PREFIX = "duetime"
OPTIONS = ("ca", "durability", "max_silence", "prefix")
_URL = re.compile(
    r"(?P<scheme>rediss?)://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?(?P<hosts>[^/?@]*)"
    r"(?:/(?P<database>\d*))?(?:\?(?P<query>.*))?",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"[A-Za-z0-9-]{1,40}")


class Host(NamedTuple):
    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class RedisAddress:
    hosts: tuple[Host, ...]  # nodes of a cluster, or a server and its replicas
    user: str
    password: str = field(repr=False)
    database: int
    prefix: str  # of every key
    tls: bool
    ca: str | None  # a file with certificates
    checked: bool  # refuse a server whose settings can lose accepted jobs
    max_silence: Micros | None = None  # without a living node for longer, the store may be a copy

    @property
    def place(self) -> str:
        """May be shown."""
        return ",".join(map(str, self.hosts))

    @property
    def keys(self) -> str:
        """What every key begins with: a hash tag, so that all are in one slot of a cluster."""
        return f"{{{self.prefix}}}:"

    def tls_context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.ca) if self.tls else None


def parse(url: str) -> RedisAddress:
    """`redis://user:password@host:6379/0?prefix=duetime`. Several hosts are separated by commas."""
    match = _URL.fullmatch(url)
    if match is None:
        # The URL is not quoted: it may hold a password.
        raise ConfigError(
            "the Redis URL cannot be read: write redis://user:password@host:6379/0, and percent-encode "
            "special characters in user name and password"
        )
    options = _options(match["query"] or "")
    tls = match["scheme"].lower() == "rediss"
    ca = options.get("ca")
    if ca is not None and not tls:
        raise ConfigError(f"the Redis URL has ca={ca}, which needs TLS: write rediss:// instead of redis://")
    return RedisAddress(
        tuple(_host(text) for text in (match["hosts"] or "localhost").split(",")),
        unquote(match["user"] or ""),
        unquote(match["password"] or ""),
        int(match["database"] or 0),
        _prefix(options.get("prefix", DEFAULT_PREFIX)),
        tls,
        ca,
        _checked(options.get("durability")),
        _max_silence(options.get("max_silence")),
    )


def _options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in OPTIONS:
            raise ConfigError(
                f"the Redis URL has an unknown option {name!r}: use one of {', '.join(OPTIONS)}"
            )
    return options


def _max_silence(text: str | None) -> Micros | None:
    if text is None:
        return None
    try:
        return duration.positive(text, "max_silence")
    except InvalidInput as problem:
        raise ConfigError(f"the Redis URL: {problem}") from None


def _host(text: str) -> Host:
    name, _, port = text.rpartition(":") if re.fullmatch(r"(\[.*\]|[^:]*):\d+", text) else (text, "", "")
    number = int(port or DEFAULT_PORT)
    if not name or not 0 < number < 65_536:
        raise ConfigError(
            f"the Redis URL names the host {text!r}: write host:port, several separated by commas"
        )
    return Host(name.strip("[]"), number)


def _prefix(prefix: str) -> str:
    if not _PREFIX.fullmatch(prefix):
        raise ConfigError(f"the Redis URL has prefix={prefix}: use 1 to 40 letters, digits and hyphens")
    return prefix


def _checked(durability: str | None) -> bool:
    if durability not in {None, "none"}:
        raise ConfigError(
            f"the Redis URL has durability={durability!r}: the only value is durability=none, which accepts "
            "a server that can lose jobs"
        )
    return durability is None
