"""The URL of an etcd cluster: `etcd://user:password@host:2379,other:2379?prefix=NAME`, with TLS `etcds://`
and the options `ca`, `cert` and `key`, which are files in PEM."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from duetime.errors import ConfigError

DEFAULT_PORT = 2379
DEFAULT_PREFIX = "duetime"
_OPTIONS = ("prefix", "ca", "cert", "key")
_PREFIX = re.compile(r"[A-Za-z0-9/_-]{1,100}")


@dataclass(frozen=True, slots=True)
class EtcdAddress:
    endpoints: tuple[str, ...]  # URLs, tried in turn
    prefix: str  # of every key, so that several installations can share one cluster
    user: str
    password: str = field(repr=False)
    tls: ssl.SSLContext | None

    @staticmethod
    def parse(url: str) -> EtcdAddress:
        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
        user, colon, password = login.partition(":")
        if login and not (user and colon):
            raise ConfigError("leases: etcd needs a user and a password: write USER:PASSWORD@HOST")
        if parts.path.strip("/"):
            raise ConfigError(f"leases: {parts.path} is not used: write ?prefix={parts.path.strip('/')}")
        options = _options(parts.query)
        scheme = "https" if parts.scheme.lower() == "etcds" else "http"
        prefix = options.get("prefix", DEFAULT_PREFIX).strip("/")
        if not _PREFIX.fullmatch(prefix):
            raise ConfigError(f"leases: prefix={prefix} must be 1 to 100 letters, digits, and / _ -")
        return EtcdAddress(
            tuple(_endpoint(scheme, host) for host in hosts.split(",")),
            prefix,
            unquote(user),
            unquote(password),
            _tls(options, scheme),
        )


def _options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            raise ConfigError(f"leases: {name} is not an option of etcd: use {', '.join(_OPTIONS)}")
    return options


def _endpoint(scheme: str, host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError:
        name, port = None, 0
    if not name:
        raise ConfigError(f"leases: {host!r} is not a host: write HOST or HOST:PORT, separated by commas")
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}"


def _tls(options: dict[str, str], scheme: str) -> ssl.SSLContext | None:
    files = ", ".join(f"{name}={options[name]}" for name in ("ca", "cert", "key") if name in options)
    if scheme == "http":
        if files:
            raise ConfigError(f"leases: {files} needs TLS: write etcds:// instead of etcd://")
        return None
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if "cert" in options:
            context.load_cert_chain(options["cert"], options.get("key"))
    except OSError as problem:
        raise ConfigError(f"leases: {files} cannot be used: {problem}") from None
    return context
