"""How a client reaches its service. Both transports use it for request headers and for errors of the
connection."""

from __future__ import annotations

import os
import re
import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from logging import getLogger
from urllib.parse import urlsplit

from duetime.errors import ConfigError, DuetimeError, ServiceError, ServiceUnreachable
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND
from duetime.remote.request import ServiceRequest
from duetime.version import VERSION

# The address of a service: scheme, host, port, and a path prefix.


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
            raise ConfigError(f"server: {_address_problem(url, parts.scheme, parts.hostname)}: {LIKE}")
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


def _address_problem(url: object, scheme: str, host: str | None) -> str:
    if scheme in STORES:
        return (
            f"{scheme!r} is the scheme of a store URL, which dt.App takes; a client takes the "
            f"address of a service (`duetime serve`)"
        )
    if url == "":
        return "the URL is empty"
    if isinstance(url, str) and "://" not in url:
        return "the URL begins with neither http:// nor https://"
    return f"scheme {scheme or 'none'!r} and host {host or 'none'!r} are not the URL of a service"


def _printable(path: str) -> bool:
    return all("!" <= character <= "~" for character in path)


MAX_REPLY = 64 * 1024 * 1024
MAX_IDLE = 3 * SECOND  # a connection that is idle for longer may have been closed by the service
CHUNK = 64 * 1024
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
NO_WAY = "check host and port, and firewalls on the way"
ERRNO = re.compile(r"\[Errno (\d+)\]")
_logger = getLogger("duetime.remote")


@dataclass(frozen=True, slots=True)
class Endpoint:
    address: ServiceAddress
    key: str | None
    timeout: float  # seconds
    tls: ssl.SSLContext | None

    @staticmethod
    def of(url: str, key: str | None, timeout: Duration, tls: ssl.SSLContext | None) -> Endpoint:
        address = ServiceAddress.parse(url)
        if key is not None:
            _check_key(key)
        if key is not None and not address.secure and not address.local:
            _logger.warning("the key is sent to %s without encryption: use https", address.host)
        secure = (tls or ssl.create_default_context()) if address.secure else None
        return Endpoint(address, key, duration.positive(timeout, "timeout") / SECOND, secure)

    def headers(self, request: ServiceRequest) -> dict[str, str]:
        own = {
            "Host": self.address.authority,
            "User-Agent": f"duetime/{VERSION}",
            "Accept": "application/json",
        }
        if self.key is not None:
            own["Authorization"] = f"Bearer {self.key}"
        if request.body is not None:
            own["Content-Type"] = "application/json"
        if request.body is not None or request.method not in ("GET", "DELETE"):
            own["Content-Length"] = str(len(request.body or b""))
        return {**own, **request.headers}

    def unreachable(self, problem: BaseException, sent: bool) -> DuetimeError:
        """`sent`: the service may have received the request."""
        if isinstance(problem, ssl.SSLCertVerificationError):
            remedy = (
                "trust its authority with SSL_CERT_FILE=FILE, or tls=ssl.create_default_context(cafile=FILE)"
            )
            return ServiceError(
                f"the certificate of {self.address} is not trusted ({problem.verify_message}): {remedy}"
            )
        reason = (
            f"no answer within {self.timeout:g} s" if isinstance(problem, TimeoutError) else _reason(problem)
        )
        return ServiceUnreachable(
            f"{self.address} cannot be reached ({reason}): {self._remedy(problem, sent)}", sent
        )

    def _remedy(self, problem: BaseException, sent: bool) -> str:
        if isinstance(problem, ssl.SSLError) and problem.reason in NO_TLS:
            return "the server does not use TLS: use http:// if that is intended"
        if isinstance(problem, socket.gaierror):
            return "check the host name"
        if isinstance(problem, TimeoutError):
            return "check the address and the network, or use a longer `timeout`" if sent else NO_WAY
        if sent and not self.address.secure:
            return "check that it is a Duetime service; it may need https://"
        return "check that it is running (`duetime serve`), and its host and port"


def check_size(size: int) -> None:
    if size > MAX_REPLY:
        raise ServiceError(f"the reply is over {MAX_REPLY:,} bytes: request less at a time")


def _reason(problem: BaseException) -> str:
    if isinstance(problem, ssl.SSLError):
        return (problem.reason or str(problem)).replace("_", " ").lower()
    if isinstance(problem, socket.gaierror):
        return problem.strerror or str(problem)
    # asyncio lists every address it tried in one message.
    number = getattr(problem, "errno", None) or next(
        (int(found) for found in ERRNO.findall(str(problem))), None
    )
    return os.strerror(number) if number else str(problem) or type(problem).__name__


def _check_key(key: object) -> None:
    if key == "":
        raise ConfigError(
            "key: is empty: use the text that `duetime key create` printed, or None if the "
            "service needs no key"
        )
    if not isinstance(key, str) or not all("!" <= character <= "~" for character in key):
        remedy = "copy it as `duetime key create` printed it, without a newline and without 'Bearer'"
        raise ConfigError(f"key: must be printable ASCII without blanks: {remedy}")
