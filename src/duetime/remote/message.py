"""What both transports write and check: the head of a request, and what a request that got no answer is told as."""

from __future__ import annotations

import os
import re
import socket
import ssl
from dataclasses import dataclass
from logging import getLogger

from duetime.errors import ConfigError, DuetimeError, ServiceError, ServiceUnreachable
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND
from duetime.remote.address import Address
from duetime.remote.talk import Request
from duetime.version import VERSION

LARGEST_REPLY = 64 * 1024 * 1024
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
NO_WAY = "are host and port right, and does no firewall stand in the way?"
ERRNO = re.compile(r"\[Errno (\d+)\]")
IDLE = 3 * SECOND  # a connection unused for longer is not trusted to be open still
_logger = getLogger("duetime.remote")


@dataclass(frozen=True, slots=True)
class Line:
    """How the service is reached."""

    address: Address
    key: str | None
    timeout: float  # seconds
    tls: ssl.SSLContext | None

    @staticmethod
    def of(url: str, key: str | None, timeout: Duration, tls: ssl.SSLContext | None) -> Line:
        address = Address.parse(url)
        if key is not None:
            _check_key(key)
        if key is not None and not address.secure and not address.local:
            _logger.warning("the key is sent to %s without encryption: use https", address.host)
        secure = (tls or ssl.create_default_context()) if address.secure else None
        return Line(address, key, duration.positive(timeout, "timeout") / SECOND, secure)

    def headers(self, request: Request) -> dict[str, str]:
        own = {"Host": self.address.authority, "User-Agent": f"duetime/{VERSION}", "Accept": "application/json"}
        if self.key is not None:
            own["Authorization"] = f"Bearer {self.key}"
        if request.body is not None:
            own["Content-Type"] = "application/json"
        if request.body is not None or request.method not in ("GET", "DELETE"):
            own["Content-Length"] = str(len(request.body or b""))
        return {**own, **request.headers}

    def unreachable(self, problem: BaseException, sent: bool) -> DuetimeError:
        """`sent`: whether the request may have arrived."""
        if isinstance(problem, ssl.SSLCertVerificationError):
            remedy = "trust its authority with SSL_CERT_FILE=FILE, or tls=ssl.create_default_context(cafile=FILE)"
            return ServiceError(f"the certificate of {self.address} is not trusted ({problem.verify_message}): {remedy}")
        reason = f"no answer within {self.timeout:g} s" if isinstance(problem, TimeoutError) else _reason(problem)
        return ServiceUnreachable(f"{self.address} cannot be reached ({reason}): {self._remedy(problem, sent)}", sent)

    def _remedy(self, problem: BaseException, sent: bool) -> str:
        if isinstance(problem, ssl.SSLError) and problem.reason in NO_TLS:
            return "it does not speak TLS: write http:// if that is meant"
        if isinstance(problem, socket.gaierror):
            return "is the name of the host right?"
        if isinstance(problem, TimeoutError):
            return "is the address right, and is nothing in between in the way? `timeout` may be longer" if sent else NO_WAY
        if sent and not self.address.secure:
            return "is it a Duetime service, or does it want https:// there?"
        return "is it running (`duetime serve`), and are host and port right?"


def too_large(size: int) -> None:
    if size > LARGEST_REPLY:
        raise ServiceError(f"the answer is over {LARGEST_REPLY:,} bytes: ask for less at a time")


def _reason(problem: BaseException) -> str:
    if isinstance(problem, ssl.SSLError):
        return (problem.reason or str(problem)).replace("_", " ").lower()
    if isinstance(problem, socket.gaierror):
        return problem.strerror or str(problem)
    # asyncio tells of all addresses it tried, in words of its own.
    number = getattr(problem, "errno", None) or next((int(found) for found in ERRNO.findall(str(problem))), None)
    return os.strerror(number) if number else str(problem) or type(problem).__name__


def _check_key(key: object) -> None:
    if key == "":
        raise ConfigError("key: is empty: give the text that `duetime key create` showed, or None where the service asks for no key")
    if not isinstance(key, str) or not all("!" <= character <= "~" for character in key):
        remedy = "copy it as `duetime key create` showed it, without a line end and without 'Bearer'"
        raise ConfigError(f"key: must be printable ASCII without blanks: {remedy}")
