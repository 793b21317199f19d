"""Where the service is: scheme, host, port, and the path it was put under."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from duetime.errors import ConfigError

API = "/api/v1"
PORTS = {"http": 80, "https": 443}
STORES = ("memory", "sqlite", "postgres", "postgresql")
LIKE = "write it like https://duetime.example.org or http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    secure: bool
    prefix: str  # of every path, with the version of the API

    @staticmethod
    def parse(url: str) -> Address:
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except (AttributeError, ValueError):
            told = "what was given" if "@" in str(url) else repr(url)  # it may have a password in it
            raise ConfigError(f"server: {told} is no URL: {LIKE}") from None
        if not isinstance(url, str) or parts.scheme not in PORTS or not parts.hostname or not _plain(parts.path):
            raise ConfigError(f"server: {_wrong(url, parts.scheme, parts.hostname)}: {LIKE}")
        if parts.username is not None or parts.query or parts.fragment:
            raise ConfigError(f"server: the URL may have no login, query or fragment; the key is given by itself: {LIKE}")
        path = parts.path.rstrip("/").removesuffix(API)
        return Address(parts.hostname, PORTS[parts.scheme] if port is None else port, parts.scheme == "https", f"{path}{API}")

    @property
    def authority(self) -> str:
        """As the header Host has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self._scheme] else f"{host}:{self.port}"

    @property
    def local(self) -> bool:
        """Whether what is sent stays on this machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def _scheme(self) -> str:
        return "https" if self.secure else "http"

    def __str__(self) -> str:
        return f"{self._scheme}://{self.authority}{self.prefix.removesuffix(API)}"


def _wrong(url: object, scheme: str, host: str | None) -> str:
    if scheme in STORES:
        return f"{scheme!r} begins the URL of a store, which dt.App takes; a client takes the address of a service (`duetime serve`)"
    if isinstance(url, str) and url and "://" not in url:
        return "the URL begins with neither http:// nor https://"
    return f"{scheme or 'nothing'!r} and {host or 'no host'!r} make no URL of a service"


def _plain(path: str) -> bool:
    return all("!" <= character <= "~" for character in path)
