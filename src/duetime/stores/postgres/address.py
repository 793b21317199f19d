"""The address of the store: a URL that names one server, or a primary and its standbys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from duetime.errors import ConfigError

# The driver sends every other option to the server as a setting of that name.
DRIVER_OPTIONS = frozenset(
    {
        "application_name",
        "database",
        "dbname",
        "gsslib",
        "host",
        "krbsrvname",
        "passfile",
        "password",
        "port",
        "service",
        "servicefile",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "sslcert",
        "sslcrl",
        "sslkey",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "sslrootcert",
        "target_session_attrs",
        "user",
    }
)


# Of several servers the store needs the one that accepts writes. What the store asks for, in this order.
SESSIONS = {
    "any": ("any",),
    "primary": ("primary",),
    "standby": ("standby",),
    "prefer-standby": ("standby", "any"),
    "read-write": ("read-write",),
    "read-only": ("read-only",),
}


@dataclass(slots=True)
class PostgresAddress:
    dsns: tuple[str, ...]  # of each server; they have the password: never show them
    sessions: tuple[str | None, ...]  # what the server must be, the best first
    place: str  # may be shown
    pooled: bool  # a pooler assigns another server session to each transaction

    def __repr__(self) -> str:
        return f"PostgresAddress({self.place!r}, pooled={self.pooled})"

    def prefer(self, dsn: str) -> None:
        """This server accepted a session: from now on it is tried first."""
        self.dsns = (dsn, *(other for other in self.dsns if other != dsn))


def parse(url: str) -> PostgresAddress:
    try:
        parts = urlsplit(url)
        login, at, hosts = parts.netloc.rpartition("@")
        netlocs = [f"{login}{at}{host}" for host in hosts.split(",")]
        servers = [urlsplit(f"//{netloc}") for netloc in netlocs]
        places = [f"{server.hostname or 'localhost'}:{server.port or 5432}" for server in servers]
    except ValueError:
        # The parser's own message may quote the part that holds the password.
        raise ConfigError(
            "the PostgreSQL URL cannot be read: percent-encode special characters in user name and password"
        ) from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    _refuse_unknown(options)
    pooled = _pooled(options.pop("pooler", None))
    several = "," in hosts or "," in options.get("host", "")
    sessions = _sessions(options.pop("target_session_attrs", "read-write" if several else None))
    query = urlencode(options)
    dsns = tuple(urlunsplit(parts._replace(netloc=netloc, query=query)) for netloc in netlocs)
    return PostgresAddress(dsns, sessions, f"{','.join(places)}{parts.path}", pooled)


def _refuse_unknown(options: Iterable[str]) -> None:
    known = DRIVER_OPTIONS | {"pooler"}
    for name in options:
        if name not in known:
            raise ConfigError(
                f"the PostgreSQL URL has an unknown option {name!r}: use pooler=transaction or one of "
                f"{', '.join(sorted(known))}"
            )


def _sessions(value: str | None) -> tuple[str | None, ...]:
    if value is None:
        return (None,)  # as the driver does: any, or PGTARGETSESSIONATTRS
    if value not in SESSIONS:
        raise ConfigError(
            f"the PostgreSQL URL has target_session_attrs={value!r}: use one of {', '.join(SESSIONS)}"
        )
    return SESSIONS[value]


def _pooled(value: str | None) -> bool:
    if value not in {None, "transaction"}:
        raise ConfigError(
            f"the PostgreSQL URL has pooler={value!r}: the only pooler mode is pooler=transaction"
        )
    return value is not None
