"""Settings: one table for the DUETIME_* variables, the flags of `duetime serve`, the keys of duetime.toml and
the reference page.

This module only parses. The order of precedence is flag, variable, the variables in .env, duetime.toml,
default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from duetime import config_values as values
from duetime.errors import ConfigError
from duetime.model.destination import Destination
from duetime.model.limit import Rate, parse_rate
from duetime.model.url import LOOPBACK, Egress, Network

PREFIX = "DUETIME_"
FILE = "duetime.toml"
VARIABLES_FILE = ".env"
FILE_VARIABLE = f"{PREFIX}CONFIG"
OTHER_VARIABLES = (FILE_VARIABLE, f"{PREFIX}FAILPOINTS")
ROLES = values.ROLES
DEFAULT_ROLES = ("api", "planner", "worker")  # with a queue, all of them
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json", "auto")
AUTHS = ("none", "keys")
ARCHIVE_FORMATS = ("jsonl", "parquet")
TYPED, ENVIRONMENT, FOLDER = 0, 1, 2  # how far the source of a value is from the user
UNIX = "unix:"  # before the path of a socket


def _setting(default: Any, parse: values.Parser, form: str, text: str, *, secret: bool = False) -> Any:
    return field(
        default=default,
        repr=not secret,
        metadata={"parse": parse, "form": form, "text": text, "secret": secret},
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default. Durations are kept as text; their users parse them."""

    store: str = _setting(
        "sqlite:///duetime.db",
        values.text,
        "URL",
        "Where schedules and jobs are stored: sqlite:///FILE, postgresql://..., mysql://... or redis://...",
    )
    read_store: str | None = _setting(
        None,
        values.text,
        "URL",
        "A read replica of the store, for lists and statistics. The default is none.",
    )
    queue: str | None = _setting(
        None,
        values.text,
        "URL",
        "The broker between the store and the workers: redis://..., amqp://..., nats://..., sqs://... or "
        "kafka://.... The default is none.",
    )
    queue_depth: int = _setting(
        5_000,
        values.depth,
        "N",
        "The maximum number of jobs of one queue, priority and tenant in the broker.",
    )
    leases: str | None = _setting(
        None,
        values.text,
        "URL",
        "Where planners hold their leases: etcd://HOST:2379,... or etcds://.... The default is the store.",
    )
    app: str | None = _setting(
        None,
        values.app_path,
        "MODULE:APP",
        "The program's App, whose tasks run. Its store is used unless a setting names one.",
    )
    roles: tuple[str, ...] = _setting(
        DEFAULT_ROLES,
        values.roles,
        "NAMES",
        "What this node does: api, planner, worker and, with a queue, dispatcher. The default is all.",
    )
    host: str = _setting(
        "127.0.0.1",
        values.text,
        "ADDRESS",
        "The address of the API, or unix:PATH. Other machines need API keys.",
    )
    port: int = _setting(8080, values.port, "PORT", "The port of the API; 0 means any free port.")
    auth: str | None = _setting(
        None,
        values.among(AUTHS),
        "MODE",
        "Who may use the API: none (only this machine, without a key) or keys.",
    )
    public_url: str | None = _setting(
        None,
        values.url,
        "URL",
        "The public URL of the API, for reports. Needs --auth keys, unless it is of this machine.",
    )
    tls_cert: str | None = _setting(
        None, values.text, "FILE", "The certificate of the API with its chain, in PEM. Enables https."
    )
    tls_key: str | None = _setting(None, values.text, "FILE", "The private key of the certificate, in PEM.")
    proxies: tuple[str, ...] = _setting(
        (), values.networks, "NETWORKS", "Proxies whose X-Forwarded-For header is trusted."
    )
    rate_limit: str = _setting(
        "1000/1s",
        values.rate,
        "N/TIME",
        "Requests of one key to all API processes, unless the key has its own rate.",
    )
    max_connections: int = _setting(
        1_000, values.count, "N", "The maximum number of API connections at the same time."
    )
    max_pending: int | None = _setting(
        None, values.pending, "N", "The maximum number of pending jobs of one tenant."
    )
    max_pending_per_queue: int | None = _setting(
        None, values.pending, "N", "The maximum number of pending jobs of one tenant in one queue."
    )
    open_metrics: bool = _setting(
        False, values.yes_or_no, "yes/no", "Whether /metrics can be read without a key."
    )
    allow: tuple[str, ...] = _setting(
        (), values.names, "NAMES", "Private networks, addresses and hosts that HTTP targets may use."
    )
    allow_ports: tuple[int, ...] = _setting(
        (), values.ports, "PORTS", "Ports that HTTP targets may use in addition to 80, 443 and 8443."
    )
    plain_http: bool = _setting(
        True, values.yes_or_no, "yes/no", "Whether HTTP targets may be called without TLS."
    )
    per_host: int | None = _setting(
        None, values.count, "N", "The maximum number of connections to one host of HTTP targets."
    )
    strict_tasks: bool = _setting(
        False,
        values.yes_or_no,
        "yes/no",
        "Whether jobs and schedules of a task that no node has had so far are refused, not only warned of.",
    )
    allow_commands: bool = _setting(
        False,
        values.yes_or_no,
        "yes/no",
        "Whether this node runs and the API accepts commands: programs of this machine.",
    )
    command_environment: tuple[str, ...] = _setting(
        (),
        values.names,
        "NAMES",
        "Variables of this node that commands get, in addition to PATH, HOME and the like.",
    )
    allow_apprise: bool = _setting(
        False,
        values.yes_or_no,
        "yes/no",
        "Whether this node delivers to and the API accepts alert channels of type apprise.",
    )
    destinations: tuple[Destination, ...] = _setting(
        (),
        values.destinations,
        "NAME=URL",
        "Where jobs may publish messages: brokers by name, with their credentials.",
        secret=True,
    )
    retry_attempts: int = _setting(
        5,
        values.attempts,
        "N",
        "Attempts of jobs that call a URL or publish a message and have no retry policy of their own.",
    )
    retry_delay: str = _setting(
        "5s",
        values.lapse("0s"),
        "TIME",
        "The wait of such a job after its first failure; it doubles each time.",
    )
    secret_keys: tuple[str, ...] = _setting(
        (), values.names, "ID:BASE64", "The secret keys of the service, the current one first.", secret=True
    )
    server: str | None = _setting(
        None, values.text, "URL", "The Duetime service that commands use instead of a store."
    )
    key: str | None = _setting(None, values.text, "KEY", "The API key for that service.", secret=True)
    key_file: str | None = _setting(None, values.text, "FILE", "A file with the API key for that service.")
    queues: tuple[str, ...] = _setting(
        (), values.names, "NAMES", "The queues of this node. The default is all queues."
    )
    concurrency: int = _setting(
        100, values.count, "N", "The maximum number of jobs this node runs at the same time."
    )
    threads: int | None = _setting(
        None,
        values.count,
        "N",
        "The maximum number of plain and isolated tasks among them. The default is --concurrency; with "
        "Django 10, because each has a database connection.",
    )
    processes: int = _setting(
        1, values.processes, "N", "How many processes to start, each a node of its own; only without the API."
    )
    lease: str = _setting(
        "15s",
        values.lapse("500ms"),
        "TIME",
        "How long a node may miss its heartbeats. After that, other nodes run its jobs.",
    )
    lookahead: str = _setting(
        "10s", values.lapse("1s"), "TIME", "How far ahead the fires of schedules become jobs."
    )
    grace: str = _setting(
        "25s",
        values.lapse("0s"),
        "TIME",
        "How long running jobs may continue after the node was asked to stop.",
    )
    stop_delay: str = _setting(
        "0s",
        values.lapse("0s"),
        "TIME",
        "How long the API still answers after SIGTERM, so that proxies see that it is not ready.",
    )
    watchdog_url: str | None = _setting(
        None,
        values.text,
        "URL",
        "An outside monitor that the leader calls while the store answers and schedules are planned.",
    )
    watchdog_interval: str = _setting("1m", values.lapse("1s"), "TIME", "How often the leader calls it.")
    alert_interval: str = _setting(
        "15s", values.lapse("1s"), "TIME", "How often the leader looks for alerts."
    )
    retention: str = _setting("30d", values.lapse("1m"), "TIME", "How long finished jobs are kept.")
    archive: str | None = _setting(
        None,
        values.text,
        "FOLDER|URL",
        "Write jobs to this folder or s3://bucket/prefix before they are deleted.",
    )
    archive_format: str = _setting(
        "jsonl",
        values.among(ARCHIVE_FORMATS),
        "FORMAT",
        "The format of archived jobs: jsonl (compressed JSON lines) or parquet.",
    )
    keep_failed: str | None = _setting(
        None, values.lapse("1m"), "TIME", "How long dead letters are kept, if longer than other jobs."
    )
    keep_queues: tuple[tuple[str, str], ...] = _setting(
        (), values.kept, "QUEUE=TIME,...", "How long finished jobs of these queues are kept."
    )
    output_retention: str = _setting(
        "7d", values.lapse("0s"), "TIME", "How long the output of jobs is kept; 0s: it is not kept at all."
    )
    max_load: float | None = _setting(
        None,
        values.processor_load,
        "NUMBER",
        "Claim no jobs while the load per core of this machine is above this.",
    )
    traces: str | None = _setting(
        None,
        values.text,
        "URL",
        "The OpenTelemetry collector that gets traces, such as http://localhost:4318. The default is none, "
        "or that of the OTEL_* variables.",
    )
    trace_sampling: float = _setting(
        1.0, values.trace_share, "NUMBER", "The share of traces that are exported, from 0 to 1."
    )
    trace_link: str | None = _setting(
        None,
        values.trace_link,
        "URL",
        "Where a trace is shown, with {trace_id} in it: the page of a job links to it.",
    )
    log_level: str = _setting(
        "info",
        values.among(LOG_LEVELS),
        "LEVEL",
        "The lowest log level to write: debug, info, warning or error.",
    )
    log_format: str = _setting(
        "auto",
        values.among(LOG_FORMATS),
        "FORMAT",
        "The log format: text, json, or auto (text on a terminal).",
    )
    sources: Mapping[str, str] = field(default_factory=dict)  # the source of each value that is not a default
    distances: Mapping[str, int] = field(default_factory=dict)  # 0: typed, 1: environment, 2: this folder
    remarks: tuple[str, ...] = ()  # known names that have no effect, each with the reason

    def given(self, name: str) -> bool:
        return name in self.sources

    def require_trust(self, key: str) -> None:
        """Refuse to send the key (`key` or `key_file`) to a server that a more distant source names: anyone
        can put a file into a folder."""
        if self.distances.get("server", 0) > self.distances.get(key, 0):
            raise ConfigError(
                f"{key} (from {self.sources[key]}): is not sent to {self.server}, "
                f"which {self.sources['server']} names: "
                f"give that server with --server or {TABLE['server'].variable}"
            )

    @property
    def keys(self) -> bool:
        """Whether the API requires a key."""
        return self.auth == "keys"

    @property
    def local(self) -> bool:
        """Local mode: the API serves only this machine, without a key."""
        return "api" in self.roles and not self.keys and is_loopback(self.host)

    def egress(self) -> Egress:
        """What HTTP targets may call. This machine itself only in local mode, because its callers are on it
        anyway."""
        return Egress.parse(self.allow, self.allow_ports, self.plain_http, self.local)

    def permissions(self, secret_keys: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """What jobs may need of this node, by setting; without what is not given."""
        found = {
            "allow": (*self.allow, *(LOOPBACK if self.local else ())),
            "allow_ports": tuple(map(str, self.allow_ports)),
            **{
                name: ("yes",)
                for name in ("plain_http", "allow_commands", "allow_apprise")
                if getattr(self, name)
            },
            "destinations": tuple(one.name for one in self.destinations),
            "secret_keys": tuple(secret_keys),
        }
        return {name: values for name, values in found.items() if values}

    def trusted_proxies(self) -> tuple[Network, ...]:
        return tuple(ip_network(name) for name in self.proxies)

    def usual_rate(self) -> Rate:
        return parse_rate(self.rate_limit, "rate_limit")


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    default: Any
    parse: values.Parser
    form: str
    text: str
    secret: bool  # not allowed on a command line, which every process of the machine can read

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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on this address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.startswith(UNIX)


def hide_password(url: str) -> str:
    """The URL without passwords, in any of its parts."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    options = [
        (name, "***" if "password" in name.lower() else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    query = f"?{urlencode(options, safe='*/:', quote_via=quote)}" if options else ""
    return (
        f"{parts.scheme}://{user}{':***' if colon else ''}{at}{host}{parts.path}{query}"
        if parts.scheme
        else url
    )
