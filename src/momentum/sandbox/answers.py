"""LinkedIn's responses: its error bodies, word for word where they are known."""

from __future__ import annotations

from typing import Any

from aiohttp import web

TOKEN_ERRORS = {
    65600: ("INVALID_ACCESS_TOKEN", "Invalid access token"),
    65601: ("REVOKED_ACCESS_TOKEN", "The token used in the request has been revoked by the user"),
    65602: ("EXPIRED_ACCESS_TOKEN", "The token used in the request has expired"),
}
MEMBER_LIMIT = (
    "Resource level throttle APPLICATION_AND_MEMBER DAY limit for calls to this resource is reached."
)
APP_LIMIT = "Resource level throttle APPLICATION DAY limit for calls to this resource is reached."


class Refusal(Exception):
    """The request is answered with an error."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(body.get("message", body))
        self.status, self.body = status, {"status": status, **body}

    def response(self) -> web.Response:
        return web.json_response(self.body, status=self.status)


def bad_request(code: str, message: str) -> Refusal:
    return Refusal(400, {"code": code, "message": message})


def bad_token(service_code: int) -> Refusal:
    code, message = TOKEN_ERRORS[service_code]
    return Refusal(401, {"serviceErrorCode": service_code, "code": code, "message": message})


def empty_token() -> Refusal:
    return Refusal(401, {"code": "EMPTY_ACCESS_TOKEN", "message": "Empty oauth2 access token"})


def forbidden() -> Refusal:
    message = "Not enough permissions to access resource"
    return Refusal(403, {"serviceErrorCode": 100, "code": "ACCESS_DENIED", "message": message})


def not_found(what: str) -> Refusal:
    return Refusal(404, {"code": "NOT_FOUND", "message": f"{what} is not found"})


def conflict() -> Refusal:
    return Refusal(409, {"code": "CONFLICT", "message": "Request conflicts with a concurrent write"})


def invalid_fields(messages: list[str]) -> Refusal:
    return Refusal(422, {"message": "\n".join(messages)})


def missing_field(path: str) -> str:
    return f"ERROR :: {path} :: field is required but not found and has no default value"


def duplicate(urn: str) -> Refusal:
    error = {"description": "Duplicate post is detected", "input": {}, "code": "DUPLICATE_POST"}
    return Refusal(
        422,
        {
            "errorDetailType": "com.linkedin.common.error.BadRequest",
            "message": f"Post is not created. Content is a duplicate of {urn}",
            "errorDetails": {"inputErrors": [error]},
        },
    )


def dead_version(version: str) -> Refusal:
    # LinkedIn names a day in this message, although versions are months.
    message = f"Requested version {version}01 is not active"
    return Refusal(426, {"code": "NONEXISTENT_VERSION", "message": message})


def throttled(message: str = MEMBER_LIMIT) -> Refusal:
    return Refusal(429, {"serviceErrorCode": 101, "message": message})
