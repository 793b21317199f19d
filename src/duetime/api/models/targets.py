"""What a job runs, and when a schedule fires, as they stand in requests. The domain reads both; these say how they look."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from duetime.engine.checks import LONGEST_NAME
from duetime.model.target import METHODS, MOST_CODES
from duetime.model.url import LONGEST_URL

_NAME = {"type": "string", "format": "duetime-name", "minLength": 1, "maxLength": LONGEST_NAME}
_ZONE = {"type": "string", "format": "duetime-zone", "minLength": 1, "description": "An IANA time zone.", "examples": ["Europe/Berlin"]}
_DURATION = {"type": "string", "format": "duetime-duration-positive", "minLength": 1, "examples": ["10s"]}
_INSTANT = {"type": "string", "format": "date-time"}


def _closed(required: list[str], properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties, **more}


TASK_TARGET = _closed(["type", "name"], {"type": {"const": "task"}, "name": _NAME}, title="TaskTarget")
_HEADERS = {
    "type": "object",
    "maxProperties": 16,
    "propertyNames": {"type": "string", "format": "duetime-header-name", "minLength": 1},
    "additionalProperties": {"type": "string", "format": "duetime-header-value"},
}
_KEPT = "an edit that leaves it out keeps what is there"
HTTP_TARGET = _closed(
    ["type", "url"],
    {
        "type": {"const": "http"},
        "url": {"type": "string", "format": "duetime-url", "minLength": 8, "maxLength": LONGEST_URL, "examples": ["https://a.example/run"]},
        "method": {"type": "string", "format": "duetime-method", "description": f"One of {', '.join(METHODS)}.", "default": "POST"},
        "headers": {**_HEADERS, "examples": [{"X-Team": "billing"}]},
        "secret_headers": {**_HEADERS, "description": f"Encrypted at rest and never shown again; {_KEPT}, {{}} takes them away."},
        "signing_secret": {
            "type": ["string", "null"], "format": "duetime-signing-secret",
            "description": f"whsec_... of Standard Webhooks; {_KEPT}, null takes it away.",
        },
        "body": {"enum": ["json", "raw"], "default": "json"},
        "timeout": {**_DURATION, "format": "duetime-timeout", "default": "30s"},
        "success": {
            "type": "array", "minItems": 1, "maxItems": MOST_CODES, "default": ["2xx"],
            "items": {"anyOf": [{"type": "integer", "minimum": 100, "maximum": 599}, {"type": "string", "format": "duetime-codes"}]},
        },
        "async": {"type": "boolean", "default": False, "description": "May answer 202 and report later."},
    },
    title="HttpTarget",
)  # fmt: skip
TARGET: dict[str, Any] = {"oneOf": [TASK_TARGET, HTTP_TARGET], "description": "What the job runs.", "title": "Target"}
WHEN: dict[str, Any] = {
    "title": "When",
    "description": "When it fires: one of cron, every, at and rrule.",
    "examples": [{"cron": "0 9 * * *", "tz": "Europe/Berlin"}],
    "oneOf": [
        _closed(["cron"], {"cron": {"type": "string", "format": "duetime-cron", "minLength": 1}, "tz": _ZONE}),
        _closed(["every"], {"every": {"type": "string", "format": "duetime-interval", "minLength": 1}, "anchor": _INSTANT}),
        _closed(["at"], {"at": {**_INSTANT, "examples": ["2030-01-01T09:00:00Z"]}}),
        _closed(["rrule"], {"rrule": {"type": "string", "format": "duetime-rrule", "minLength": 1}, "tz": _ZONE}),
    ],
}

Target = Annotated[dict[str, Any], WithJsonSchema(TARGET)]
When = Annotated[dict[str, Any], WithJsonSchema(WHEN)]
