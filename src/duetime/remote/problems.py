"""From a refusal of the service to the exception the library raises for the same: by the problem's stable code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from duetime import errors
from duetime.errors import AccessDenied, DuetimeError, InvalidInput, JobFailed, RateLimited, ServiceError, TargetNotAllowed
from duetime.model.codec import decode

MEDIA_TYPE = "application/problem+json"
LONGEST_EXCERPT = 200
GIVE_KEY = 'give it as key="dt_...", on the command line by DUETIME_KEY or --key-file'


def problem_of(status: int, headers: Mapping[str, str], body: bytes) -> DuetimeError:
    told = _told(headers, body)
    if told is None:
        return ServiceError(f"the server answered {status} and no problem+json: {_excerpt(status, headers, body)}", status)
    problem = _made(status, told)
    if request_id := told.get("request_id"):
        problem.add_note(f"request id {request_id}")
    return problem


def _made(status: int, told: dict[str, Any]) -> DuetimeError:
    code, field = told.get("code"), told.get("field")
    detail = _for_clients(str(code), str(told.get("detail", "no reason given")))
    kind = KINDS.get(str(code))
    if kind is None:
        return _by_status(status)(detail, status, code, field)
    if issubclass(kind, InvalidInput):
        named = str(field or "body")
        return kind(named, detail.removeprefix(f"{named}: "))
    return kind() if kind is TargetNotAllowed else kind(detail)


def _for_clients(code: str, detail: str) -> str:
    """What the service says to whoever writes requests by hand, in the words of those who use a client."""
    match code:
        case "key_missing":
            return f"the service asks for a key: {GIVE_KEY}; `duetime key create NAME --scopes submit` makes one where the store is"
        case "key_invalid":
            return f"key: {detail.removeprefix('Authorization: ')}; copy it whole, as `duetime key create` showed it"
        case "key_revoked" | "key_expired":
            return f"key: {detail.removeprefix('Authorization: ')}"
        case "scope_missing":
            return f"{detail}; me() tells what this one may do"
        case "not_found":
            return "the service knows no such address: is its URL given without a path such as /ui, and is it as new as this client?"
        case _:
            return detail


def _by_status(status: int) -> type[ServiceError]:
    return AccessDenied if status in (401, 403) else RateLimited if status == 429 else ServiceError


def _told(headers: Mapping[str, str], body: bytes) -> dict[str, Any] | None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        return None
    try:
        told = decode(body)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _excerpt(status: int, headers: Mapping[str, str], body: bytes) -> str:
    if 300 <= status < 400:
        return f"it redirects to {headers.get('location', 'nowhere')!r}, which is not followed: give that address, if it is right"
    text = " ".join(body[: 4 * LONGEST_EXCERPT].decode("utf-8", "replace").split())
    return f"{text[:LONGEST_EXCERPT] or 'nothing more'}; is the address that of a Duetime service?"


def _kinds() -> Iterator[type[DuetimeError]]:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, DuetimeError) and not issubclass(kind, ServiceError | JobFailed):
            yield kind


KINDS = {kind.code: kind for kind in _kinds()}
