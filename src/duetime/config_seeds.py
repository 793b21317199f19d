"""Environment names of the scheduler Duetime stands in for, understood where nothing of our own is said: a drop-in keeps its `.env`.

Whatever is said to Duetime itself wins: flags, DUETIME_* variables, duetime.toml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from duetime.errors import ConfigError

HOST = "POSTGRES_HOST"
POSTGRES = {"POSTGRES_USER": "scheduler", "POSTGRES_PASSWORD": "", "POSTGRES_PORT": "5432", "POSTGRES_DB": "scheduler"}


@dataclass(frozen=True, slots=True)
class Seed:
    """One name: the setting it stands for, and how its value is written there."""

    setting: str
    text: str
    write: Callable[[str, str], Any] = lambda _, value: value


def _millis(name: str, value: str) -> str:
    if not (value.isascii() and value.isdigit()):
        raise ConfigError(f"{name}: {value!r} must be a whole number of milliseconds")
    return f"{value}ms"


KNOWN = {
    "PORT": Seed("port", "The port of the API."),
    "LOCK_TTL": Seed("lease", "Milliseconds.", _millis),
    "MAX_RETRY_ATTEMPTS": Seed("retry_attempts", "Attempts of HTTP targets that say nothing themselves."),
    "RETRY_BACKOFF_BASE": Seed("retry_delay", "Milliseconds.", _millis),
}
UNNEEDED = {
    "SCHEDULER_TICK_INTERVAL": "fires are planned ahead and start at their instant: nothing ticks",
    "REDIS_HOST": "locks are leases in the store: no Redis is needed",
    "REDIS_PORT": "locks are leases in the store: no Redis is needed",
    "NODE_ENV": "there is one mode only",
}


def settings_from(environment: Mapping[str, str], has_app: bool) -> dict[str, tuple[Any, str]]:
    """Values by setting, each with the name it came from. A program's own App says itself where its store is."""
    found = {seed.setting: (seed.write(name, environment[name]), name) for name, seed in KNOWN.items() if environment.get(name)}
    if environment.get(HOST) and not has_app:
        found["store"] = (_store(environment), HOST)
    return found


def remarks(environment: Mapping[str, str], has_app: bool) -> list[str]:
    """What was given and is not used, with the reason."""
    unused = [f"{name} has no effect: {reason}" for name, reason in UNNEEDED.items() if environment.get(name)]
    names = [name for name in (HOST, *POSTGRES) if environment.get(name)]
    if names and has_app:
        unused += [f"{name} has no effect: the App names its store itself" for name in names]
    elif names and HOST not in names:
        unused += [f"{name} has no effect without {HOST}" for name in names]
    return unused


def _store(environment: Mapping[str, str]) -> str:
    user, password, port, database = (quote(environment.get(name) or usual, safe="") for name, usual in POSTGRES.items())
    host = environment[HOST]
    login = f"{user}:{password}" if password else user
    return f"postgresql://{login}@{f'[{host}]' if ':' in host else quote(host, safe='')}:{port}/{database}"
