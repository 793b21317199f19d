"""Settings: one table that gives the DUETIME_* variables, the flags of `duetime serve`, the keys of duetime.toml and the reference page.

It only parses. What is written closer to the command wins: flag, variable, file, default.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from duetime.errors import ConfigError, InvalidInput
from duetime.model import duration

PREFIX = "DUETIME_"
FILE = "duetime.toml"
FILE_VARIABLE = f"{PREFIX}CONFIG"
OTHER_VARIABLES = (FILE_VARIABLE, f"{PREFIX}FAILPOINTS")
ROLES = ("api", "planner", "worker")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")
MOST_CONCURRENCY = 10_000
MOST_LOAD = 100
LAST_PORT = 65_535

Parser = Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be text and not empty")
    return value.strip()


def _app(value: Any) -> str:
    module, colon, name = _text(value).partition(":")
    if not module or (colon and not name):
        raise ValueError(f"{value!r} must be written module:app, or module where it has one App only")
    return f"{module}{colon}{name}"


def _names(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be names separated by commas, or a list of names")
    names = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not names:
        raise ValueError("must name at least one")
    return names


def _among(known: tuple[str, ...]) -> Parser:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or value.lower() not in known:
            raise ValueError(f"{value!r} is not one of {', '.join(known)}")
        return value.lower()

    return parse


def _roles(value: Any) -> tuple[str, ...]:
    one_role = _among(ROLES)
    return tuple(one_role(name) for name in _names(value))


def _count(value: Any) -> int:
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MOST_CONCURRENCY:
        raise ValueError(f"{value!r} must be a whole number from 1 to {MOST_CONCURRENCY:,}")
    return int(text)


def _port(value: Any) -> int:
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdigit()) or int(text) > LAST_PORT:
        raise ValueError(f"{value!r} must be a port from 1 to {LAST_PORT:,}, or 0 for any that is free")
    return int(text)


def _load(value: Any) -> float:
    try:
        load = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        load = math.nan
    if not 0 < load <= MOST_LOAD:
        raise ValueError(f"{value!r} must be a number above 0 and at most {MOST_LOAD}: 1 means that every core is busy")
    return load


def _lapse(shortest: str) -> Parser:
    def parse(value: Any) -> str:
        try:
            micros = duration.parse(value, "")
        except InvalidInput as problem:
            raise ValueError(problem.reason) from None
        if micros < duration.parse(shortest, ""):
            raise ValueError(f"{value!s} is too short: use {shortest} or more")
        return str(value).strip()

    return parse


def _setting(default: Any, parse: Parser, form: str, text: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"parse": parse, "form": form, "text": text, "secret": secret})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default. Durations are kept as written; whoever uses them counts."""

    store: str = _setting("sqlite:///duetime.db", _text, "URL", "Where schedules and jobs are kept: sqlite:///FILE or postgresql://...")
    app: str | None = _setting(None, _app, "MODULE:APP", "The program's App, whose tasks run; its store is used unless one is given.")
    roles: tuple[str, ...] = _setting(ROLES, _roles, "NAMES", "What this node does: api, planner, worker; all three by default.")
    host: str = _setting("127.0.0.1", _text, "ADDRESS", "Where the API listens; beyond this machine only with API keys.")
    port: int = _setting(8080, _port, "PORT", "The API's port; 0 takes any that is free.")
    public_url: str | None = _setting(None, _text, "URL", "How targets reach the API, for reports on jobs that were handed over.")
    allow: tuple[str, ...] = _setting((), _names, "NAMES", "Private networks, addresses and hosts that HTTP targets may call.")
    secret_keys: tuple[str, ...] = _setting((), _names, "ID:BASE64", "The service's secret keys, current one first.", secret=True)
    queues: tuple[str, ...] = _setting((), _names, "NAMES", "Work on these queues only; without it, on all of them.")
    concurrency: int = _setting(100, _count, "N", "How many jobs this node runs at the same time.")
    lease: str = _setting("15s", _lapse("500ms"), "TIME", "How long a node that went silent is trusted; after it its jobs run elsewhere.")
    lookahead: str = _setting("10s", _lapse("1s"), "TIME", "How far ahead fires of schedules become jobs.")
    grace: str = _setting("25s", _lapse("0s"), "TIME", "How long running jobs may go on after the node was told to stop.")
    retention: str = _setting("30d", _lapse("1m"), "TIME", "How long finished jobs are kept.")
    max_load: float | None = _setting(None, _load, "NUMBER", "Claim nothing new while this machine's load per core is above this.")
    log_level: str = _setting("info", _among(LOG_LEVELS), "LEVEL", "The least serious log records to write: debug, info, warning or error.")
    log_format: str = _setting("text", _among(LOG_FORMATS), "FORMAT", "How log records are written: text or json.")
    sources: Mapping[str, str] = field(default_factory=dict)  # where each value that is no default came from

    def given(self, name: str) -> bool:
        return name in self.sources


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    default: Any
    parse: Parser
    form: str
    text: str
    secret: bool  # never on a command line, where every process of the machine could read it

    @property
    def variable(self) -> str:
        return f"{PREFIX}{self.name.upper()}"

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def shown_default(self) -> str:
        return ",".join(self.default) if isinstance(self.default, tuple) else "" if self.default is None else str(self.default)


TABLE = {one.name: Setting(one.name, one.default, **one.metadata) for one in fields(Settings) if one.metadata}


def load(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None) -> Settings:
    """The settings from all sources. `file` must exist; without it DUETIME_CONFIG names one, or duetime.toml is read if it is there."""
    refuse_unknown_variables(environment)
    layers = [
        _from_file(file or _named_file(environment)),
        {name: (environment[one.variable], one.variable) for name, one in TABLE.items() if environment.get(one.variable)},
        {name: (value, TABLE[name].flag) for name, value in flags.items() if value is not None},
    ]
    written = {name: entry for layer in layers for name, entry in layer.items()}
    values = {name: _parsed(TABLE[name], value, source) for name, (value, source) in written.items()}
    return Settings(**values, sources={name: source for name, (_, source) in written.items()})


def refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = [*(one.variable for one in TABLE.values()), *OTHER_VARIABLES]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known:
            raise ConfigError(f"{name}: no setting has this variable: {_suggestion(name, known)}")


def hide_password(url: str) -> str:
    """The URL as it may be shown: without a password, in whatever part of it one stands."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    options = [(name, "***" if "password" in name.lower() else value) for name, value in parse_qsl(parts.query, keep_blank_values=True)]
    query = f"?{urlencode(options, safe='*/:', quote_via=quote)}" if options else ""
    return f"{parts.scheme}://{user}{':***' if colon else ''}{at}{host}{parts.path}{query}" if parts.scheme else url


def _named_file(environment: Mapping[str, str]) -> Path | None:
    if named := environment.get(FILE_VARIABLE):
        return Path(named)
    return Path(FILE) if Path(FILE).is_file() else None


def _from_file(path: Path | None) -> dict[str, tuple[Any, str]]:
    if path is None:
        return {}
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read ({problem.strerror}): name another file with --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: is not TOML: {problem}") from None
    for name in content:
        if name not in TABLE:
            raise ConfigError(f"{path}: {name!r} is no setting: {_suggestion(name, TABLE)}")
    return {name: (value, str(path)) for name, value in content.items()}


def _parsed(setting: Setting, value: Any, source: str) -> Any:
    try:
        return setting.parse(value)
    except ValueError as problem:
        raise ConfigError(f"{setting.name} (from {source}): {problem}") from None


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known := list(known), 1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
