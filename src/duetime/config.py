"""Settings: one table that gives the DUETIME_* variables, the flags of `duetime serve`, the keys of duetime.toml and the reference page.

It only parses. What is written closer to the command wins: flag, variable, file, default.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from duetime import config_seeds
from duetime.errors import ConfigError, InvalidInput
from duetime.model import duration
from duetime.model.addresses import Egress, Network
from duetime.model.limit import Rate, parse_rate
from duetime.model.retry import MOST_ATTEMPTS

PREFIX = "DUETIME_"
FILE = "duetime.toml"
FILE_VARIABLE = f"{PREFIX}CONFIG"
OTHER_VARIABLES = (FILE_VARIABLE, f"{PREFIX}FAILPOINTS")
ROLES = ("api", "planner", "worker")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json", "auto")
AUTHS = ("none", "keys")
YES, NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
MOST_CONCURRENCY = 10_000
MOST_LOAD = 100
LAST_PORT = 65_535
UNIX = "unix:"  # before the path of a socket

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


def _attempts(value: Any) -> int:
    if _count(value) > MOST_ATTEMPTS:
        raise ValueError(f"{value!r} must be a whole number from 1 to {MOST_ATTEMPTS:,}")
    return _count(value)


def _port(value: Any) -> int:
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdigit()) or int(text) > LAST_PORT:
        raise ValueError(f"{value!r} must be a port from 1 to {LAST_PORT:,}, or 0 for any that is free")
    return int(text)


def _ports(value: Any) -> tuple[int, ...]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(_port(part) for part in parts))


def _yes(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in (*YES, *NO):
        raise ValueError(f"{value!r} must be yes or no")
    return word in YES


def _rate(value: Any) -> str:
    try:
        parse_rate(value)
    except InvalidInput as problem:
        raise ValueError(problem.reason) from None
    return str(value).strip()


def _networks(value: Any) -> tuple[str, ...]:
    for name in _names(value):
        try:
            ip_network(name)
        except ValueError:
            raise ValueError(f"{name!r} is not a network: write 10.1.0.0/16 or an address") from None
    return _names(value)


def _url(value: Any) -> str:
    parts = urlsplit(text := _text(value))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(f"{value!r} must be written like https://duetime.example.org")
    return text.rstrip("/")


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
    host: str = _setting("127.0.0.1", _text, "ADDRESS", "Where the API listens, also unix:PATH; beyond this machine only with API keys.")
    port: int = _setting(8080, _port, "PORT", "The API's port; 0 takes any that is free.")
    auth: str | None = _setting(None, _among(AUTHS), "MODE", "Who may use the API: none (this machine, without a key) or keys.")
    public_url: str | None = _setting(None, _url, "URL", "How others reach the API: targets that report later, browsers by a proxy.")
    tls_cert: str | None = _setting(None, _text, "FILE", "The API's certificate with its chain, PEM: it answers by https.")
    tls_key: str | None = _setting(None, _text, "FILE", "The certificate's private key, PEM.")
    proxies: tuple[str, ...] = _setting((), _networks, "NETWORKS", "Proxies whose X-Forwarded-For tells who asks.")
    rate_limit: str = _setting("1000/1s", _rate, "N/TIME", "How often a key may ask one API process, unless it has a rate of its own.")
    max_connections: int = _setting(1_000, _count, "N", "How many connections the API holds at the same time.")
    open_metrics: bool = _setting(False, _yes, "yes/no", "Whether /metrics answers without a key.")
    allow: tuple[str, ...] = _setting((), _names, "NAMES", "Private networks, addresses and hosts that HTTP targets may call.")
    allow_ports: tuple[int, ...] = _setting((), _ports, "PORTS", "Ports that HTTP targets may have beside 80, 443 and 8443.")
    plain_http: bool = _setting(True, _yes, "yes/no", "Whether HTTP targets may be called without TLS.")
    per_host: int | None = _setting(None, _count, "N", "How many connections one host of HTTP targets gets at the same time.")
    retry_attempts: int = _setting(5, _attempts, "N", "Attempts of jobs with an HTTP target that say nothing about retries themselves.")
    retry_delay: str = _setting("5s", _lapse("0s"), "TIME", "How long such a job waits after its first failure; twice as long each time.")
    secret_keys: tuple[str, ...] = _setting((), _names, "ID:BASE64", "The service's secret keys, current one first.", secret=True)
    server: str | None = _setting(None, _text, "URL", "The Duetime service that commands are sent to, in place of a store.")
    key: str | None = _setting(None, _text, "KEY", "The API key to show to that service.", secret=True)
    key_file: str | None = _setting(None, _text, "FILE", "A file that holds the API key to show to that service.")
    queues: tuple[str, ...] = _setting((), _names, "NAMES", "Work on these queues only; without it, on all of them.")
    concurrency: int = _setting(100, _count, "N", "How many jobs this node runs at the same time.")
    lease: str = _setting("15s", _lapse("500ms"), "TIME", "How long a node that went silent is trusted; after it its jobs run elsewhere.")
    lookahead: str = _setting("10s", _lapse("1s"), "TIME", "How far ahead fires of schedules become jobs.")
    grace: str = _setting("25s", _lapse("0s"), "TIME", "How long running jobs may go on after the node was told to stop.")
    retention: str = _setting("30d", _lapse("1m"), "TIME", "How long finished jobs are kept.")
    max_load: float | None = _setting(None, _load, "NUMBER", "Claim nothing new while this machine's load per core is above this.")
    log_level: str = _setting("info", _among(LOG_LEVELS), "LEVEL", "The least serious log records to write: debug, info, warning or error.")
    log_format: str = _setting("auto", _among(LOG_FORMATS), "FORMAT", "How log records are written: text, json, or auto (text for people).")
    sources: Mapping[str, str] = field(default_factory=dict)  # where each value that is no default came from
    remarks: tuple[str, ...] = ()  # names that are understood and have no effect, each with the reason

    def given(self, name: str) -> bool:
        return name in self.sources

    @property
    def keys(self) -> bool:
        """Whether whoever asks must show a key."""
        return self.auth == "keys"

    @property
    def local(self) -> bool:
        """Local mode: the API answers this machine only, and asks for no key."""
        return "api" in self.roles and not self.keys and is_loopback(self.host)

    def egress(self) -> Egress:
        """What HTTP targets may call. This machine itself only in local mode, where whoever asks is on it anyway."""
        return Egress.parse(self.allow, self.allow_ports, self.plain_http, self.local)

    def trusted_proxies(self) -> tuple[Network, ...]:
        return tuple(ip_network(name) for name in self.proxies)

    def usual_rate(self) -> Rate:
        return parse_rate(self.rate_limit)


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
        match self.default:
            case tuple():
                return ",".join(map(str, self.default))
            case bool():
                return "yes" if self.default else "no"
            case None:
                return ""
            case _:
                return str(self.default)


TABLE = {one.name: Setting(one.name, one.default, **one.metadata) for one in fields(Settings) if one.metadata}


def load(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None) -> Settings:
    """The settings from all sources. `file` must exist; without it DUETIME_CONFIG names one, or duetime.toml is read if it is there."""
    refuse_unknown_variables(environment)
    layers = [
        _from_file(file or _named_file(environment)),
        {name: (environment[one.variable], one.variable) for name, one in TABLE.items() if environment.get(one.variable)},
        {name: (value, TABLE[name].flag) for name, value in flags.items() if value is not None},
    ]
    own = {name: entry for layer in layers for name, entry in layer.items()}
    written = {**config_seeds.settings_from(environment, "app" in own), **own}
    values = {name: _parsed(TABLE[name], value, source) for name, (value, source) in written.items()}
    remarks = tuple(config_seeds.remarks(environment, "app" in own))
    return Settings(**values, sources={name: source for name, (_, source) in written.items()}, remarks=remarks)


def refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = [*(one.variable for one in TABLE.values()), *OTHER_VARIABLES]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known:
            raise ConfigError(f"{name}: no setting has this variable: {_suggestion(name, known)}")


def is_loopback(host: str) -> bool:
    """Whether what listens there is reached from this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.startswith(UNIX)


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
