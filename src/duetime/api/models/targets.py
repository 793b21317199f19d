"""The schemas of targets and of `when`. The domain parses both."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from duetime.engine.submit.validate import MAX_NAME_LENGTH
from duetime.model.target import MAX_CODES, METHODS
from duetime.model.url import MAX_URL

_NAME = {"type": "string", "format": "duetime-name", "minLength": 1, "maxLength": MAX_NAME_LENGTH}
_ZONE = {
    "type": "string",
    "format": "duetime-zone",
    "minLength": 1,
    "description": "An IANA time zone.",
    "examples": ["Europe/Berlin"],
}
_DURATION = {"type": "string", "format": "duetime-duration-positive", "minLength": 1, "examples": ["10s"]}
_INSTANT = {"type": "string", "format": "date-time"}


def _closed(required: list[str], properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
        **more,
    }


TASK_TARGET = _closed(["type", "name"], {"type": {"const": "task"}, "name": _NAME}, title="TaskTarget")
_HEADERS = {
    "type": "object",
    "maxProperties": 16,
    "propertyNames": {"type": "string", "format": "duetime-header-name", "minLength": 1},
    "additionalProperties": {"type": "string", "format": "duetime-header-value"},
}
_KEPT = "an edit without it keeps the stored value"
HTTP_TARGET = _closed(
    ["type", "url"],
    {
        "type": {"const": "http"},
        "url": {
            "type": "string",
            "format": "duetime-url",
            "minLength": 8,
            "maxLength": MAX_URL,
            "examples": ["https://agent.example/run"],
        },
        "method": {
            "type": "string",
            "format": "duetime-method",
            "description": f"One of {', '.join(METHODS)}.",
            "default": "POST",
        },
        "headers": {**_HEADERS, "examples": [{"X-Team": "billing"}]},
        "secret_headers": {
            **_HEADERS,
            "description": f"Encrypted at rest and never shown; {_KEPT}, {{}} removes them.",
        },
        "signing_secret": {
            "type": ["string", "null"],
            "format": "duetime-signing-secret",
            "description": f"whsec_... of Standard Webhooks; {_KEPT}, null removes it.",
        },
        "body": {"enum": ["json", "raw"], "default": "json"},
        "timeout": {**_DURATION, "format": "duetime-timeout", "default": "30s"},
        "success": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_CODES,
            "default": ["2xx"],
            "items": {
                "anyOf": [
                    {"type": "integer", "minimum": 100, "maximum": 599},
                    {"type": "string", "format": "duetime-codes"},
                ]
            },
        },
        "async": {
            "type": "boolean",
            "default": False,
            "description": "The target may answer 202 and report the result later.",
        },
    },
    title="HttpTarget",
)
TARGET: dict[str, Any] = {
    "oneOf": [TASK_TARGET, HTTP_TARGET],
    "description": "What the job runs.",
    "title": "Target",
}
WHEN: dict[str, Any] = {
    "title": "When",
    "description": "When it fires: one of cron, every, at and rrule.",
    "examples": [{"cron": "0 9 * * *", "tz": "Europe/Berlin"}],
    "oneOf": [
        _closed(
            ["cron"], {"cron": {"type": "string", "format": "duetime-cron", "minLength": 1}, "tz": _ZONE}
        ),
        _closed(
            ["every"],
            {"every": {"type": "string", "format": "duetime-interval", "minLength": 1}, "anchor": _INSTANT},
        ),
        _closed(["at"], {"at": {**_INSTANT, "examples": ["2030-01-01T09:00:00Z"]}}),
        _closed(
            ["rrule"], {"rrule": {"type": "string", "format": "duetime-rrule", "minLength": 1}, "tz": _ZONE}
        ),
    ],
}

Target = Annotated[dict[str, Any], WithJsonSchema(TARGET)]
When = Annotated[dict[str, Any], WithJsonSchema(WHEN)]
