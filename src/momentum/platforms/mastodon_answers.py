"""Answers of Mastodon servers. Any program can be such a server, so types, lengths and addresses are checked
before anything is stored or shown."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from momentum.platform import PlatformError, ReconnectNeeded, Rejected, Throttled, TryLater

ID = re.compile(r"[A-Za-z0-9_-]{1,100}")  # becomes a part of a path
USER = re.compile(r"[A-Za-z0-9_.-]{1,100}")
SECRET = re.compile(r"[!-~]{1,1000}")  # a token, or the id or secret of a registration
ADDRESS = re.compile(r"https?://[!-~]{1,2000}")
MAX_NAME = 255
MAX_MESSAGE = 500
MAX_REQUEST_ID = 100
UNSEEN = {"Cc", "Cs", "Cn", "Zl", "Zp"}  # categories of characters that no name has
WINDOW = timedelta(minutes=5)  # of Mastodon's rate limits


class AnswerUnusable(TryLater):
    """The server answers something else than Mastodon does."""


@dataclass(frozen=True, slots=True)
class Reply:
    base: str  # of the server
    status: int
    headers: Mapping[str, str]
    body: Any

    def field(self, name: str, form: re.Pattern[str]) -> str:
        """A text or number of an object. Raises AnswerUnusable."""
        return field_of(self.body, name, form, self.base)


def field_of(body: object, name: str, form: re.Pattern[str], base: str) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not form.fullmatch(text):
        raise unusable(base, f"its {name} is missing or invalid")
    return text


def objects_of(reply: Reply) -> list[dict[str, Any]]:
    if not isinstance(reply.body, list) or not all(isinstance(one, dict) for one in reply.body):
        raise unusable(reply.base, "it is not a list")
    return reply.body


def instant_of(body: Mapping[str, Any], name: str, base: str) -> datetime:
    try:
        instant = datetime.fromisoformat(body[name])
        if instant.tzinfo is not None:
            return instant
    except (KeyError, TypeError, ValueError):
        pass
    raise unusable(base, f"its {name} is missing or invalid")


def address_of(body: Mapping[str, Any], name: str, *, plain_http: bool) -> str | None:
    """An address that a page may link to; None if there is no such one."""
    found = body.get(name)
    if isinstance(found, str) and ADDRESS.fullmatch(found) and (plain_http or found.startswith("https:")):
        return found
    return None


def shown_text(value: object, limit: int) -> str:
    """Text of a stranger, as one line without characters that no database or terminal should get."""
    text = value[: 4 * limit] if isinstance(value, str) else ""
    seen = ("" if unicodedata.category(one) in UNSEEN and one not in "\t\n\r" else one for one in text)
    return " ".join("".join(seen).split())[:limit]


def unusable(base: str, why: str) -> AnswerUnusable:
    return AnswerUnusable(f"{base} sent an answer that cannot be used: {why}", code="answer_invalid")


def parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def checked(reply: Reply) -> Reply:
    """A success; everything else becomes a platform error."""
    if 200 <= reply.status < 300:
        return reply
    raise error_of(reply)


def error_of(reply: Reply) -> PlatformError:
    text = f"{reply.base}: {_message(reply)}"
    request_id = shown_text(reply.headers.get("X-Request-Id"), MAX_REQUEST_ID) or None
    details: Any = {"status": reply.status, "request_id": request_id}
    match reply.status:
        case 401:
            return ReconnectNeeded(f"{text}. Connect the account again.", code="token_refused", **details)
        case 403 if "suspended" in text or "disabled" in text:
            return ReconnectNeeded(text, code="account_stopped", **details)
        case 422 if "not finished processing" in text:
            return TryLater(text, code="media_processing", **details)
        case 429:
            return Throttled(text, until=_reset_at(reply), code="rate_limit", **details)
        case status if 400 <= status < 500 and status != 408:
            return Rejected(text, code=f"status_{status}", **details)
    return TryLater(text, code="unavailable", **details)


def _reset_at(reply: Reply) -> datetime:
    now = datetime.now(UTC)
    try:
        asked = datetime.fromisoformat(reply.headers["X-RateLimit-Reset"])
        return min(asked, now + timedelta(days=1)) if asked.tzinfo else now + WINDOW
    except (KeyError, ValueError):
        return now + WINDOW


def _message(reply: Reply) -> str:
    body = reply.body if isinstance(reply.body, dict) else {}
    said = shown_text(body.get("error_description") or body.get("error"), MAX_MESSAGE)
    return said or f"status {reply.status}"
