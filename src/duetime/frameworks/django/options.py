"""`settings.DUETIME`: its options, and the store that follows from them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings

from duetime.errors import ConfigError
from duetime.stores.sqlite.location import path_of

KNOWN = ("STORE", "APP", "DATABASE", "TASKS", "THREADS")
# Those of Django's OPTIONS that say how to connect.
CONNECTION_OPTIONS = (
    "passfile",
    "service",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
)
REMEDY = 'set a separate store: DUETIME = {"STORE": "sqlite:///jobs.db", "DATABASE": None}'


@dataclass(frozen=True, slots=True)
class Options:
    store: str | None = None  # None: the project's own database
    app: str | None = None  # "module:app"; None: a new App is made
    database: str | None = "default"  # `submit` joins its transactions; None: jobs are kept elsewhere
    # How many plain tasks a worker runs at the same time: each thread has a database connection of its own
    threads: int = 10
    tasks: str | None = "tasks"  # the module to look for in every installed app; None: no module

    @property
    def follows_database(self) -> bool:
        """Whether the store is the project's current database: in tests, the test database."""
        return self.store is None and self.app is None and self.database is not None


def read_options() -> Options:
    given = getattr(settings, "DUETIME", {})
    if not isinstance(given, Mapping):
        raise ConfigError('settings.DUETIME: must be a dict: DUETIME = {"STORE": "postgresql://..."}')
    for name in given:
        if name not in KNOWN:
            raise ConfigError(f"settings.DUETIME: {name!r} is not an option: use one of {', '.join(KNOWN)}")
    options = Options(**{name.lower(): value for name, value in given.items()})
    if options.store is None and options.app is None and options.database is None:
        raise ConfigError(f"settings.DUETIME: there is no place to keep jobs: {REMEDY}")
    return options


def database_url(database: Mapping[str, Any]) -> str:
    """The URL of a store for an entry of DATABASES."""
    engine = str(database["ENGINE"]).rpartition(".")[2]
    if engine in ("postgresql", "postgis"):
        return _postgres_url(database)
    if engine in ("sqlite3", "spatialite"):
        return _sqlite_url(str(database["NAME"]))
    raise ConfigError(f"settings.DUETIME: jobs cannot be kept in a {engine} database: {REMEDY}")


def same_place(url: str, database: Mapping[str, Any]) -> bool:
    """Whether a store's URL may be this entry of DATABASES. Servers have many names, so only the database's
    name is compared."""
    try:
        other = database_url(database)
    except ConfigError:
        return False
    one, two = urlsplit(url), urlsplit(other)
    if "sqlite" in (one.scheme, two.scheme):
        return one.scheme == two.scheme and path_of(url) == path_of(other)
    return one.path == two.path


def _postgres_url(database: Mapping[str, Any]) -> str:
    user, password, host, port = (
        str(database.get(name) or "") for name in ("USER", "PASSWORD", "HOST", "PORT")
    )
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    given = database.get("OPTIONS") or {}
    options = {name: value for name in CONNECTION_OPTIONS if isinstance(value := given.get(name), str)}
    if host.startswith("/"):
        options, host = {**options, "host": host}, ""
    ports = itertools.chain(port.split(","), itertools.repeat(port.rpartition(",")[2]))
    place = ",".join(
        f"{one}{f':{own}' if own else ''}" for one, own in zip(host.split(","), ports, strict=False)
    )
    name = quote(str(database.get("NAME") or ""), safe="")
    query = f"?{urlencode(options)}" if options else ""
    return f"postgresql://{f'{login}@' if login else ''}{place}/{name}{query}"


def in_memory(database: Mapping[str, Any]) -> bool:
    """Whether it is a SQLite database in memory, like Django's own test databases."""
    return str(database["ENGINE"]).endswith(("sqlite3", "spatialite")) and str(database["NAME"]).startswith(
        (":memory:", "file:")
    )


def _sqlite_url(name: str) -> str:
    if name.startswith((":memory:", "file:")):
        remedy = 'name a file, in tests with DATABASES["default"]["TEST"] = {"NAME": "test.sqlite3"}'
        raise ConfigError(f"settings.DUETIME: jobs cannot be kept in a SQLite database in memory: {remedy}")
    return f"sqlite:///{quote(str(Path(name).absolute()))}"
