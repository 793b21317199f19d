"""The address of the server: a URL, without the options that are not for the driver."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    dsn: str  # has the password: never show it
    place: str  # may be shown
    pooled: bool  # a pooler assigns another server session to each transaction

    def __repr__(self) -> str:
        return f"PostgresAddress({self.place!r}, pooled={self.pooled})"


def parse(url: str) -> PostgresAddress:
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        # The parser's own message may quote the part that holds the password.
        raise ConfigError(
            "the PostgreSQL URL cannot be read: percent-encode special characters in user name and password"
        ) from None
    options = parse_qsl(parts.query, keep_blank_values=True)
    known = DRIVER_OPTIONS | {"pooler"}
    for name, _ in options:
        if name not in known:
            raise ConfigError(
                f"the PostgreSQL URL has an unknown option {name!r}: use pooler=transaction or one of "
                f"{', '.join(sorted(known))}"
            )
    pooled = _pooled(dict(options).get("pooler"))
    dsn = urlunsplit(parts._replace(query=urlencode([option for option in options if option[0] != "pooler"])))
    return PostgresAddress(dsn, f"{parts.hostname or 'localhost'}:{port}{parts.path}", pooled)


def _pooled(value: str | None) -> bool:
    if value not in {None, "transaction"}:
        raise ConfigError(
            f"the PostgreSQL URL has pooler={value!r}: the only pooler mode is pooler=transaction"
        )
    return value is not None
