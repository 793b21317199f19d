"""Where the server is: a URL, with our own options taken out before the driver sees it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from duetime.errors import ConfigError

# What the driver understands; anything else it would send to the server as a setting of that name.
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
class Address:
    dsn: str  # holds the password: never to be shown
    place: str  # what may be shown
    pooled: bool  # a pooler lends us another server session for each transaction

    def __repr__(self) -> str:
        return f"Address({self.place!r}, pooled={self.pooled})"


def parse(url: str) -> Address:
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        # The parser's own message may quote the part that holds the password.
        raise ConfigError("the PostgreSQL URL cannot be read: percent-encode special characters in user name and password") from None
    options = parse_qsl(parts.query, keep_blank_values=True)
    known = DRIVER_OPTIONS | {"pooler"}
    for name, _ in options:
        if name not in known:
            raise ConfigError(
                f"the PostgreSQL URL has an unknown option {name!r}: use pooler=transaction or one of {', '.join(sorted(known))}"
            )
    pooled = _pooled(dict(options).get("pooler"))
    dsn = urlunsplit(parts._replace(query=urlencode([option for option in options if option[0] != "pooler"])))
    return Address(dsn, f"{parts.hostname or 'localhost'}:{port}{parts.path}", pooled)


def _pooled(value: str | None) -> bool:
    if value not in {None, "transaction"}:
        raise ConfigError(f"the PostgreSQL URL has pooler={value!r}: the only pooler mode to ask for is pooler=transaction")
    return value is not None
