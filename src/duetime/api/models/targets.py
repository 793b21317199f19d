"""The schemas of targets and of `when`. The domain parses both."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from duetime.engine.submit.validate import MAX_KEY_LENGTH, MAX_NAME_LENGTH, MAX_NOTE_LENGTH
from duetime.model.command import MAX_WORDS
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY
from duetime.model.publish import MAX_KEY
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


def never(*forbidden: dict[str, Any]) -> dict[str, Any]:
    """A rule about several fields. Generators of clients ignore `not`; from `anyOf` or `oneOf` next to
    `properties` they would make a union without fields."""
    return {"not": {"anyOf": list(forbidden)}}


def both(*names: str) -> dict[str, Any]:
    return {"required": list(names)}


def neither(*names: str) -> dict[str, Any]:
    return {"not": {"anyOf": [both(name) for name in names]}}


# The payload of a task is an object of named arguments.
NO_ARGUMENTS: dict[str, Any] = {
    "required": ["target", "payload"],
    "properties": {
        "target": {"type": "object", "required": ["type"], "properties": {"type": {"const": "task"}}},
        "payload": {"not": {"type": "object"}},
    },
}
TASK_TARGET = _closed(["type", "name"], {"type": {"const": "task"}, "name": _NAME}, title="TaskTargetIn")
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
            "description": f"One of {', '.join(METHODS)}. Default: POST.",
            "examples": ["POST"],
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
        "body": {"type": "string", "enum": ["json", "raw"], "description": "Default: json."},
        "timeout": {**_DURATION, "format": "duetime-timeout", "description": "Default: 30s."},
        "success": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_CODES,
            "description": 'Codes that mean success. Default: ["2xx"].',
            "items": {
                "anyOf": [
                    {"type": "integer", "minimum": 100, "maximum": 599},
                    {"type": "string", "format": "duetime-codes"},
                ]
            },
        },
        "async": {
            "type": "boolean",
            "description": "The target may answer 202 and report the result later.",
        },
    },
    title="HttpTargetIn",
)
COMMAND_TARGET = _closed(
    ["type", "argv"],
    {
        "type": {"const": "command"},
        "argv": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_WORDS,
            "items": {"type": "string", "format": "duetime-word"},
            "examples": [["/usr/local/bin/backup", "--all"]],
        },
        "cwd": {"type": "string", "format": "duetime-folder", "description": "An absolute path."},
    },
    title="CommandTarget",
    description="A program that a node with --allow-commands starts, without a shell. For admin keys.",
)
PUBLISH_TARGET = _closed(
    ["type", "destination"],
    {
        "type": {"const": "publish"},
        "destination": {
            "type": "string",
            "format": "duetime-destination",
            "minLength": 1,
            "maxLength": 64,
            "description": "A name from the setting `destinations`.",
            "examples": ["orders"],
        },
        "key": {
            "type": "string",
            "format": "duetime-message-key",
            "minLength": 1,
            "maxLength": MAX_KEY,
            "description": "The routing key, partition key or message group.",
        },
        "report": {
            "const": "required",
            "description": "The job ends with a report of the consumer, not with the broker's confirmation.",
        },
    },
    title="PublishTarget",
    description="A message for a broker: the payload as a CloudEvents 1.0 event.",
)
_CALLING = [TASK_TARGET, HTTP_TARGET, COMMAND_TARGET, PUBLISH_TARGET]
SHADOW_TARGET = _closed(
    ["type", "target"],
    {"type": {"const": "shadow"}, "target": {"oneOf": _CALLING, "title": "ShadowedTarget"}},
    title="ShadowTarget",
    description="Its jobs are planned and recorded and call nothing. Secrets of the target are not stored.",
)
TARGET: dict[str, Any] = {
    "oneOf": [*_CALLING, SHADOW_TARGET],
    "description": "What the job runs.",
    "title": "TargetIn",
}
WHEN: dict[str, Any] = {
    "title": "WhenIn",
    "description": "When it fires: one of cron, every, at and rrule.",
    "examples": [{"cron": "0 9 * * *", "tz": "Europe/Berlin"}],
    "oneOf": [
        _closed(
            ["cron"],
            {"cron": {"type": "string", "format": "duetime-cron", "minLength": 1}, "tz": _ZONE},
            title="CronIn",
        ),
        _closed(
            ["every"],
            {"every": {"type": "string", "format": "duetime-interval", "minLength": 1}, "anchor": _INSTANT},
            title="EveryIn",
        ),
        _closed(["at"], {"at": {**_INSTANT, "examples": ["2030-01-01T09:00:00Z"]}}, title="AtIn"),
        _closed(
            ["rrule"],
            {"rrule": {"type": "string", "format": "duetime-rrule", "minLength": 1}, "tz": _ZONE},
            title="RRuleIn",
        ),
    ],
}

Target = Annotated[dict[str, Any], WithJsonSchema(TARGET)]
When = Annotated[dict[str, Any], WithJsonSchema(WHEN)]


# Types of values that several models share. A `format` of our own stands for rules that JSON Schema cannot
# express.


class Input(BaseModel):
    """A closed object: unknown fields are errors, and values are not converted (a boolean is not an
    integer)."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Output(BaseModel):
    """An answer of the compatible routes; other answers are views."""

    model_config = ConfigDict(extra="forbid")


def whole(value: Any) -> Any:
    """In JSON, 3.0 is an integer."""
    return int(value) if type(value) is float and value.is_integer() else value


WHOLE = BeforeValidator(whole)


def text_schema(description: str, format: str, example: str, limit: int = 256) -> Any:
    schema = {
        "type": "string",
        "format": format,
        "minLength": 1,
        "maxLength": limit,
        "description": description,
        "examples": [example],
    }
    return WithJsonSchema(schema)


Instant = Annotated[
    str,
    WithJsonSchema(
        {"type": "string", "format": "date-time", "description": "RFC 3339 with an offset, 1970 to 9998."}
    ),
]
Duration = Annotated[
    str, text_schema('A duration such as "100ms", "15m" or "1h30m".', "duetime-duration", "15m")
]
PositiveDuration = Annotated[str, text_schema("Longer than zero.", "duetime-duration-positive", "10s")]
Expiry = Annotated[
    str,
    text_schema(
        "Skip the job if it has not started this long after it is due, or at this instant.",
        "duetime-expiry",
        "10m",
    ),
]
Jitter = Annotated[
    str, text_schema('A random delay up to this, or in a range such as "1s..5s".', "duetime-jitter", "30s")
]
Name = Annotated[
    str,
    text_schema(
        "Printable, without blanks at the ends, not beginning with @.",
        "duetime-name",
        "billing",
        MAX_NAME_LENGTH,
    ),
]
UniqueKey = Annotated[str, text_schema("Printable.", "duetime-key", "invoice-2030-01", MAX_KEY_LENGTH)]
Note = Annotated[
    str,
    Field(
        max_length=MAX_NOTE_LENGTH,
        description="The reason, shown with the pause.",
        examples=["database migration"],
    ),
]
Priority = Annotated[
    int,
    Field(ge=LOWEST_PRIORITY, le=HIGHEST_PRIORITY, description="9 is the most urgent.", examples=[5]),
    WHOLE,
]
Labels = Annotated[
    dict[str, str], Field(description="Keys and values to filter by.", examples=[{"team": "billing"}])
]
Json = Annotated[Any, WithJsonSchema({"description": "Any JSON.", "examples": [{"customer": "c1"}]})]
OutJson = Annotated[Any, WithJsonSchema({"description": "Any JSON."})]
OutInstant = Annotated[
    str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2030-01-01T09:00:00Z"]})
]
OutId = Annotated[
    str,
    WithJsonSchema(
        {"type": "string", "format": "uuid", "examples": ["01935c2e-7b3a-7000-8000-000000000000"]}
    ),
]
RateText = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "format": "duetime-rate",
            "minLength": 1,
            "description": "A number for each period.",
            "examples": ["10/1s"],
        }
    ),
]
