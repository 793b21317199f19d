"""What a response, or a missing one, means for the job."""

from __future__ import annotations

import os
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp

from duetime.errors import TargetNotAllowed
from duetime.invokers.http.guard import TargetRefused
from duetime.invokers.http.response import TargetResponse
from duetime.model import duration
from duetime.model.directives import AttemptFailed, Directive, GiveUp
from duetime.model.instant import SECOND, Micros, to_micros
from duetime.model.target import HttpTarget

RETRYABLE = frozenset({408, 425, 429})
MAX_SHOWN_BODY = 200
MAX_RETRY_AFTER = 366 * 86_400


def directive_for(target: HttpTarget, response: TargetResponse, now: Micros) -> Directive | None:
    """None for success."""
    if target.succeeded(response.status):
        return None
    line = f"HTTP {response.status}{_phrase(response.status)} from {target.method} {target.url.shown}"
    if text := " ".join(response.body[:MAX_SHOWN_BODY].split()):
        line = f"{line}: {''.join(letter if letter.isprintable() else '?' for letter in text)}"
    if response.status >= 500 or response.status in RETRYABLE:
        return AttemptFailed(line, response.to_json(), retry_after(response.headers.get("Retry-After"), now))
    return GiveUp(line, response.to_json())


def directive_for_error(target: HttpTarget, problem: BaseException) -> Directive:
    """The call got no response. The message never reveals the address behind the name."""
    if isinstance(problem, TargetRefused) or isinstance(problem.__cause__, TargetRefused):
        return GiveUp(str(TargetNotAllowed()), {"code": TargetNotAllowed.code})
    where = f"{target.method} {target.url.shown}"
    if isinstance(problem, TimeoutError):
        return AttemptFailed(f"no complete response within {duration.show(target.timeout)} from {where}")
    return AttemptFailed(f"no response from {where}: {_kind(problem)}")


def retry_after(text: str | None, now: Micros) -> timedelta | None:
    """Reads seconds or a date. An invalid value or a past date counts as none."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        seconds = int(text[:12])
    else:
        try:
            moment = parsedate_to_datetime(text)
            seconds = (to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now) // SECOND + 1
        except (ValueError, OverflowError):
            return None
    return timedelta(seconds=min(seconds, MAX_RETRY_AFTER)) if seconds > 0 else None


def _kind(problem: BaseException) -> str:
    match problem:
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not trusted"
        case aiohttp.ClientSSLError():
            return "no secure connection could be made"
        case aiohttp.ClientConnectorError(os_error=error):
            # By its number, because its text contains the address.
            return f"cannot connect ({os.strerror(error.errno).lower()})" if error.errno else "cannot connect"
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "the connection was closed before a response came"
        case aiohttp.ClientPayloadError():
            return "the response broke off"
        case aiohttp.ClientResponseError():
            return "the response is not HTTP, or its headers are too large"
        case _:
            return type(problem).__name__


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""
