"""The address of a service: scheme, host, port, and a path prefix."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from duetime.errors import ConfigError

API = "/api/v1"
PORTS = {"http": 80, "https": 443}
STORES = ("memory", "sqlite", "postgres", "postgresql")
LIKE = "use a URL like https://duetime.example.org or http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    host: str
    port: int
    secure: bool
    prefix: str  # of every path; ends with the version of the API

    @staticmethod
    def parse(url: str) -> ServiceAddress:
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except (AttributeError, ValueError):
            text = "the value" if "@" in str(url) else repr(url)  # it may contain a password
            raise ConfigError(f"server: {text} is not a URL: {LIKE}") from None
        if (
            not isinstance(url, str)
            or parts.scheme not in PORTS
            or not parts.hostname
            or not _printable(parts.path)
        ):
            raise ConfigError(f"server: {_reason(url, parts.scheme, parts.hostname)}: {LIKE}")
        if parts.username is not None or parts.query or parts.fragment:
            raise ConfigError(
                f"server: the URL must not contain a login, query or fragment; pass the key "
                f"separately: {LIKE}"
            )
        path = parts.path.rstrip("/").removesuffix(API)
        return ServiceAddress(
            parts.hostname,
            PORTS[parts.scheme] if port is None else port,
            parts.scheme == "https",
            f"{path}{API}",
        )

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self._scheme] else f"{host}:{self.port}"

    @property
    def local(self) -> bool:
        """Whether the service is on this machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def _scheme(self) -> str:
        return "https" if self.secure else "http"

    def __str__(self) -> str:
        return f"{self._scheme}://{self.authority}{self.prefix.removesuffix(API)}"


def _reason(url: object, scheme: str, host: str | None) -> str:
    if scheme in STORES:
        return (
            f"{scheme!r} is the scheme of a store URL, which dt.App takes; a client takes the "
            f"address of a service (`duetime serve`)"
        )
    if isinstance(url, str) and url and "://" not in url:
        return "the URL begins with neither http:// nor https://"
    return f"scheme {scheme or 'none'!r} and host {host or 'none'!r} are not the URL of a service"


def _printable(path: str) -> bool:
    return all("!" <= character <= "~" for character in path)
