"""The address of the server, or of several that have the same data (Galera): mysql://user@a,b:3307/jobs."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from duetime.errors import ConfigError

PORT = 3306
OPTIONS = ("ssl", "ssl_ca")


@dataclass(frozen=True, slots=True)
class MySqlAddress:
    hosts: tuple[tuple[str, int], ...]  # in order of preference
    user: str
    password: str  # never show it
    database: str
    ssl: ssl.SSLContext | None

    @property
    def place(self) -> str:
        """May be shown."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts) + f"/{self.database}"

    def __repr__(self) -> str:
        return f"MySqlAddress({self.place!r})"


def parse(url: str) -> MySqlAddress:
    # Messages of the parser may quote the part that holds the password.
    try:
        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
        user, _, password = login.partition(":")
        places = tuple(_place(host) for host in hosts.split(","))
    except ValueError:
        raise ConfigError(
            "the MySQL URL cannot be read: percent-encode special characters in user name and password"
        ) from None
    database = unquote(parts.path.lstrip("/"))
    if not database or "/" in database:
        raise ConfigError("the MySQL URL names no database: write mysql://user@host/database")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in OPTIONS:
            raise ConfigError(f"the MySQL URL has an unknown option {name!r}: use {' or '.join(OPTIONS)}")
    return MySqlAddress(places, unquote(user) or "root", unquote(password), database, _ssl(options))


def _place(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    return parts.hostname or "127.0.0.1", parts.port or PORT


def _ssl(options: dict[str, str]) -> ssl.SSLContext | None:
    authority = options.get("ssl_ca")
    if authority is None and options.get("ssl", "false") == "false":
        return None
    if options.get("ssl", "true") != "true":
        raise ConfigError(f"the MySQL URL has ssl={options['ssl']!r}: use ssl=true or ssl=false")
    try:
        return ssl.create_default_context(cafile=authority)
    except OSError as problem:
        raise ConfigError(
            f"the MySQL URL has ssl_ca={authority!r}, which cannot be read: {problem}"
        ) from None
