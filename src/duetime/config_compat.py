"""Environment variables of the scheduler that Duetime replaces, so that an existing `.env` file keeps
working.

Duetime's own flags, DUETIME_* variables and duetime.toml take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from duetime.errors import ConfigError

HOST = "POSTGRES_HOST"
POSTGRES = {
    "POSTGRES_USER": "scheduler",
    "POSTGRES_PASSWORD": "",
    "POSTGRES_PORT": "5432",
    "POSTGRES_DB": "scheduler",
}


@dataclass(frozen=True, slots=True)
class Alias:
    """A variable: the setting it sets, and how its value is converted."""

    setting: str
    text: str
    convert: Callable[[str, str], Any] = lambda _, value: value


def _millis(name: str, value: str) -> str:
    if not (value.isascii() and value.isdigit()):
        raise ConfigError(f"{name}: {value!r} must be a whole number of milliseconds")
    return f"{value}ms"


KNOWN = {
    "PORT": Alias("port", "The port of the API."),
    "LOCK_TTL": Alias("lease", "Milliseconds.", _millis),
    "MAX_RETRY_ATTEMPTS": Alias("retry_attempts", "Attempts of HTTP targets without their own retry policy."),
    "RETRY_BACKOFF_BASE": Alias("retry_delay", "Milliseconds.", _millis),
}
UNNEEDED = {
    "SCHEDULER_TICK_INTERVAL": "fires are planned ahead and start on time, without ticks",
    "REDIS_HOST": "locks are leases in the store, so Redis is not needed",
    "REDIS_PORT": "locks are leases in the store, so Redis is not needed",
    "NODE_ENV": "there is only one mode",
}


def settings_from(environment: Mapping[str, str], has_app: bool) -> dict[str, tuple[Any, str]]:
    """Values by setting, each with its variable. A program's own App names its store itself."""
    found = {
        alias.setting: (alias.convert(name, environment[name]), name)
        for name, alias in KNOWN.items()
        if environment.get(name)
    }
    if environment.get(HOST) and not has_app:
        found["store"] = (_store(environment), HOST)
    return found


def remarks(environment: Mapping[str, str], has_app: bool) -> list[str]:
    """Variables that are set but not used, with the reason."""
    unused = [f"{name} has no effect: {reason}" for name, reason in UNNEEDED.items() if environment.get(name)]
    names = [name for name in (HOST, *POSTGRES) if environment.get(name)]
    if names and has_app:
        unused += [f"{name} has no effect: the App names its store itself" for name in names]
    elif names and HOST not in names:
        unused += [f"{name} has no effect without {HOST}" for name in names]
    return unused


def _store(environment: Mapping[str, str]) -> str:
    user, password, port, database = (
        quote(environment.get(name) or usual, safe="") for name, usual in POSTGRES.items()
    )
    host = environment[HOST]
    login = f"{user}:{password}" if password else user
    return f"postgresql://{login}@{f'[{host}]' if ':' in host else quote(host, safe='')}:{port}/{database}"
