"""From a problem that the service reports to the exception the library raises for the same code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duetime import errors
from duetime.errors import (
    AccessDenied,
    DuetimeError,
    InvalidInput,
    JobFailed,
    RateLimited,
    ServiceError,
    TargetNotAllowed,
)
from duetime.model.codec import decode

MEDIA_TYPE = "application/problem+json"
MAX_EXCERPT = 200
GIVE_KEY = 'pass it as key="dt_...", on the command line with DUETIME_KEY or --key-file'
KINDS: dict[str, type[DuetimeError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, DuetimeError)
    and not issubclass(kind, ServiceError | JobFailed)
}


def problem_of(status: int, headers: Mapping[str, str], body: bytes) -> DuetimeError:
    reported = _problem_json(headers, body)
    if reported is None:
        return ServiceError(
            f"the server answered {status} without problem+json: {_excerpt(status, headers, body)}", status
        )
    problem = _exception(status, reported)
    if request_id := reported.get("request_id"):
        problem.add_note(f"request id {request_id}")
    return problem


def _exception(status: int, reported: dict[str, Any]) -> DuetimeError:
    code, field = reported.get("code"), reported.get("field")
    detail = _for_clients(str(code), str(reported.get("detail", "no reason given")))
    kind = KINDS.get(str(code))
    if kind is None:
        by_status = AccessDenied if status in (401, 403) else RateLimited if status == 429 else ServiceError
        return by_status(detail, status, code, field)
    if issubclass(kind, InvalidInput):
        name = str(field or "body")
        return kind(name, detail.removeprefix(f"{name}: "))
    return kind() if kind is TargetNotAllowed else kind(detail)


def _for_clients(code: str, detail: str) -> str:
    """The detail speaks of HTTP; users of a client need the names of its options."""
    match code:
        case "key_missing":
            return (
                f"the service needs a key: {GIVE_KEY}; `duetime key create NAME --scopes submit` "
                f"makes one on the store"
            )
        case "key_invalid":
            return (
                f"key: {detail.removeprefix('Authorization: ')}; copy the whole key, as `duetime key "
                f"create` printed it"
            )
        case "key_revoked" | "key_expired":
            return f"key: {detail.removeprefix('Authorization: ')}"
        case "scope_missing":
            return f"{detail}; me() lists the scopes of this key"
        case "not_found":
            return (
                "the service does not know this address: use its base URL without /ui, and a "
                "service as new as this client"
            )
        case _:
            return detail


def _problem_json(headers: Mapping[str, str], body: bytes) -> dict[str, Any] | None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        return None
    try:
        reported = decode(body)
    except ValueError:
        return None
    return reported if isinstance(reported, dict) else None


def _excerpt(status: int, headers: Mapping[str, str], body: bytes) -> str:
    if 300 <= status < 400:
        return (
            f"it redirects to {headers.get('location', 'nowhere')!r}, which the client does not "
            f"follow: use that address if it is right"
        )
    text = " ".join(body[: 4 * MAX_EXCERPT].decode("utf-8", "replace").split())
    return f"{text[:MAX_EXCERPT] or '(empty)'}; check that the address is that of a Duetime service"
