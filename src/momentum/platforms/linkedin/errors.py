"""What follows from an error of LinkedIn: its status and body become one of the platform errors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from momentum.platform import (
    DuplicatePost,
    OutcomeUnknown,
    PlatformError,
    PlatformStopped,
    Published,
    ReconnectNeeded,
    Rejected,
    Throttled,
    TryLater,
)

POST_URN = re.compile(r"urn:li:(?:share|ugcPost):\d+")
TOKEN_CODES = {65600: "token_invalid", 65601: "token_revoked", 65602: "token_expired"}


class UploadExpired(TryLater):
    """The signed upload URL is too old: the upload begins again with a new one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, read completely."""

    status: int
    headers: Any = field(default_factory=dict)
    body: Any = None

    @property
    def request_id(self) -> str | None:
        request_id: str | None = self.headers.get("x-li-uuid")
        return request_id

    @property
    def fields(self) -> dict[str, Any]:
        return self.body if isinstance(self.body, dict) else {}

    @property
    def message(self) -> str:
        text = self.body if isinstance(self.body, str) else self.fields.get("message")
        return str(text or "").strip()[:500] or f"status {self.status}"

    @property
    def codes(self) -> set[str]:
        """LinkedIn's own codes: at the top of the body, or one for each input error."""
        details = self.fields.get("errorDetails")
        errors = details.get("inputErrors", []) if isinstance(details, dict) else []
        found = [self.fields.get("code"), *(error.get("code") for error in errors if isinstance(error, dict))]
        return {str(code) for code in found if code}


def error_of(answer: Answer, *, creates: bool, web_url: str, now: datetime) -> PlatformError:
    """`creates`: the call was the one that creates the post, so that an unclear answer leaves doubt."""
    details: Any = {"status": answer.status, "request_id": answer.request_id}
    code = min(answer.codes, default="").lower()
    message = f"LinkedIn: {answer.message}"
    match answer.status:
        case 400 if "MEDIA_ASSET_WAITING_UPLOAD" in answer.codes:
            return TryLater(message, code="media_processing", **details)
        case 400 if "EXPIRED_UPLOAD_URL" in answer.codes:
            return UploadExpired(message, code="upload_expired", **details)
        case 401:
            return _token_refused(answer, details)
        case 403 if "resource is forbidden" in answer.message.lower():
            return TryLater(message, code="forbidden", **details)  # it passes after some time
        case 403:
            advice = "The account may not do this: connect it again and grant every permission."
            return Rejected(f"{message}. {advice}", code="access_denied", **details)
        case 409:
            return TryLater(message, code="conflict", **details)
        case 422 if "DUPLICATE_POST" in answer.codes or "duplicate of urn" in answer.message:
            return _duplicate(answer, web_url, details)
        case 426:
            advice = "Set a newer version in the settings of LinkedIn, then resume the platform."
            return PlatformStopped(f"{message}. {advice}", code="version_ended", **details)
        case 429:
            return _throttled(answer, now, details)
        case status if 400 <= status < 500 and status != 408:
            return Rejected(message, code=code or f"status_{status}", **details)
    if creates:
        text = f"{message}. Nothing proves whether the post was created."
        return OutcomeUnknown(text, code="unclear_answer", **details)
    return TryLater(message, code="unavailable", **details)


def _token_refused(answer: Answer, details: Any) -> PlatformError:
    code = TOKEN_CODES.get(answer.fields.get("serviceErrorCode", 0), "token_refused")
    text = f"LinkedIn refused the access token ({answer.message}). Connect the account again."
    return ReconnectNeeded(text, code=code, **details)


def _duplicate(answer: Answer, web_url: str, details: Any) -> PlatformError:
    found = POST_URN.search(answer.message)
    existing = Published(found[0], post_url(web_url, found[0])) if found else None
    text = f"LinkedIn already has a post with this content: {answer.message}"
    return DuplicatePost(text, existing, code="duplicate_content", **details)


def _throttled(answer: Answer, now: datetime, details: Any) -> PlatformError:
    """LinkedIn sends no Retry-After: its limits are for one UTC day. The message names the limit of the app
    "APPLICATION DAY", and the limit of one member "APPLICATION_AND_MEMBER DAY" or not at all."""
    whole_app = "APPLICATION" in answer.message and "MEMBER" not in answer.message
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    text = f"LinkedIn's daily limit is reached ({answer.message})"
    return Throttled(text, until=midnight, whole_platform=whole_app, code="daily_limit", **details)


def post_url(web_url: str, urn: str) -> str:
    return f"{web_url.rstrip('/')}/feed/update/{urn}/"
