"""What an answer, or none, means for the job."""

from __future__ import annotations

import os
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp

from duetime.errors import TargetNotAllowed
from duetime.invokers.http.answer import Answer
from duetime.invokers.http.guard import Refused
from duetime.model import duration
from duetime.model.instant import SECOND, Micros, to_micros
from duetime.model.target import HttpTarget
from duetime.model.verdict import Failed, GiveUp, Verdict

WORTH_ANOTHER = frozenset({408, 425, 429})
SHOWN_OF_BODY = 200
LONGEST_WISH = 366 * 86_400


def judge(target: HttpTarget, answer: Answer, now: Micros) -> Verdict | None:
    """None for success."""
    if target.succeeded(answer.status):
        return None
    line = f"HTTP {answer.status}{_phrase(answer.status)} from {target.method} {target.url.shown}"
    if text := " ".join(answer.body[:SHOWN_OF_BODY].split()):
        line = f"{line}: {''.join(letter if letter.isprintable() else '?' for letter in text)}"
    if answer.status >= 500 or answer.status in WORTH_ANOTHER:
        return Failed(line, answer.to_json(), retry_after(answer.headers.get("Retry-After"), now))
    return GiveUp(line, answer.to_json())


def judge_problem(target: HttpTarget, problem: BaseException) -> Verdict:
    """No answer came. What is said of it never tells what lies behind the name."""
    if _refused(problem):
        return GiveUp(str(TargetNotAllowed()), {"code": TargetNotAllowed.code})
    where = f"{target.method} {target.url.shown}"
    if isinstance(problem, TimeoutError):
        return Failed(f"no complete answer within {duration.show(target.timeout)} from {where}")
    return Failed(f"no answer from {where}: {_kind(problem)}")


def retry_after(text: str | None, now: Micros) -> timedelta | None:
    """Seconds or a date; nonsense and the past are as if nothing was said."""
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
    return timedelta(seconds=min(seconds, LONGEST_WISH)) if seconds > 0 else None


def _refused(problem: BaseException) -> bool:
    return isinstance(problem, Refused) or isinstance(problem.__cause__, Refused)


def _kind(problem: BaseException) -> str:
    match problem:
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate cannot be trusted"
        case aiohttp.ClientSSLError():
            return "no secure connection could be made"
        case aiohttp.ClientConnectorError(os_error=error):
            # By its number: the text that comes with it holds the address.
            return f"cannot connect ({os.strerror(error.errno).lower()})" if error.errno else "cannot connect"
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "the connection was closed before an answer came"
        case aiohttp.ClientPayloadError():
            return "the answer broke off"
        case aiohttp.ClientResponseError():
            return "what came back is not HTTP, or its headers are too large"
        case _:
            return type(problem).__name__


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""
