"""Alert channels, rules and mutes in requests. The domain parses them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from duetime.api.models.targets import (
    WHOLE,
    Input,
    Instant,
    Name,
    Note,
    PositiveDuration,
    never,
    text_schema,
    whole,
)
from duetime.model.alert.channel import FIELDS, MAX_RECIPIENTS, MAX_TEXT, ChannelType, Tls
from duetime.model.alert.channel import Field as ChannelField
from duetime.model.alert.quiet import DAYS
from duetime.model.alert.rule import FLEET, MAX_CHANNELS, MAX_COUNT, Condition, Severity

_URL = {"type": "string", "format": "duetime-url", "examples": ["https://hooks.example.org/duetime"]}
_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT, "pattern": "^[!-~]+$"}
_MAIL = {
    "type": "string",
    "format": "duetime-email",
    "maxLength": 100,
    "pattern": "^[a-z0-9.]{1,30}@[a-z0-9.]{1,60}$",
}
_SERVICE_URL = {
    "type": "string",
    "maxLength": MAX_TEXT,
    "pattern": "^[a-z]+://[!-~]+$",
    "examples": ["tgram://bottoken/chat"],
}
_TIME = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$", "examples": ["22:00"]}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "url": _URL,
    "signing_secret": {"type": "string", "format": "duetime-signing-secret"},
    "routing_key": _TEXT,
    "authorization": _TEXT,
    "host": {"type": "string", "pattern": "^[a-z0-9-]{1,60}(\\.[a-z0-9-]{1,60}){1,3}$"},
    "port": {"type": "integer", "minimum": 1, "maximum": 65_535},
    "tls": {"type": "string", "enum": [Tls.STARTTLS.value, Tls.TLS.value, Tls.NONE.value]},
    "sender": _MAIL,
    "to": {"type": "array", "items": _MAIL, "minItems": 1, "maxItems": MAX_RECIPIENTS},
    "username": _TEXT,
    "password": _TEXT,
}


# A user name needs a password, and a password an encrypted connection
_LOGIN = never(
    {
        "required": ["password"],
        "properties": {"password": {"type": "string"}},
        "not": {"required": ["username"]},
    },
    {"required": ["username", "password"], "properties": {"password": {"type": "null"}}},
    {"required": ["username", "tls"], "properties": {"tls": {"const": Tls.NONE.value}}},
)


def _channel(kind: ChannelType) -> dict[str, Any]:
    fields = FIELDS[kind]
    schemas = _SCHEMAS | ({"url": _SERVICE_URL} if kind is ChannelType.APPRISE else {})
    made: dict[str, Any] = {
        "type": "object",
        "title": f"{kind.value.title()}Channel",
        "additionalProperties": False,
        "required": ["type", *(name for name, rule in fields.items() if rule.required and not rule.secret)],
        "properties": {
            "type": {"const": kind.value},
            **{name: _removable(schemas[name], rule) for name, rule in fields.items()},
        },
    }
    return made | (_LOGIN if kind is ChannelType.EMAIL else {})


def _removable(schema: dict[str, Any], rule: ChannelField) -> dict[str, Any]:
    """Null removes a secret that its channel does not need."""
    return {**schema, "type": ["string", "null"]} if rule.secret and not rule.required else schema


_EXAMPLE: dict[str, Any] = {"type": "webhook", "url": "https://hooks.example.org/duetime"}
_CHANNEL_EXAMPLES: dict[str, Any] = {"examples": [{"target": _EXAMPLE}]}
_NOT_IN_TARGET = ("self", "name", "version", "quiet", "enabled")  # of the channel, not of its type


def _of_its_type(target: dict[str, Any]) -> dict[str, Any]:
    if misplaced := [field for field in target if field in _NOT_IN_TARGET]:
        raise ValueError(f"{misplaced[0]} is not a field of a target: remove it")
    return {field: whole(value) for field, value in target.items()}  # as a port, 587.0 is 587


Receiver = Annotated[
    dict[str, Any],
    AfterValidator(_of_its_type),
    WithJsonSchema(
        {
            "oneOf": [_channel(kind) for kind in ChannelType],
            "description": "A secret that is left out keeps its value. It must be given again if the "
            "channel moves to another receiver. Null removes an optional one.",
            "examples": [_EXAMPLE],
        }
    ),
]
Quiet = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["start", "end"],
            "properties": {
                "start": _TIME,
                "end": _TIME,
                "tz": {"type": "string", "format": "duetime-zone", "examples": ["Europe/Berlin"]},
                "days": {
                    "type": "array", "minItems": 1, "items": {"type": "string", "enum": list(DAYS)},
                },
            },
        }
    ),
]  # fmt: skip


class AlertChannelIn(Input):
    model_config = ConfigDict(title="NewAlertChannel", json_schema_extra=_CHANNEL_EXAMPLES)
    target: Receiver
    quiet: Annotated[list[Quiet], Field(max_length=20, description="Times in which it is told nothing.")] = (
        Field(default_factory=list)
    )
    enabled: bool = True


ConditionIn = Annotated[str, WithJsonSchema({"type": "string", "enum": [one.value for one in Condition]})]
SeverityIn = Annotated[str, WithJsonSchema({"type": "string", "enum": [one.value for one in Severity]})]
Pattern = Annotated[Name, Field(description="A name, or a pattern with *. Left out: all.")]
_FLEET = sorted(one.value for one in FLEET)
_COUNTED = ("failing", "dead_letters", "skipped")
_NOT_SKIPPED = {"condition": {"enum": [one.value for one in Condition if one is not Condition.SKIPPED]}}


def _not_for(field: str, *conditions: str) -> dict[str, Any]:
    return {"required": [field], "properties": {"condition": {"enum": list(conditions)}}}


_RULES = never(
    _not_for("schedule", "queue_lag", *_FLEET),
    _not_for("queue", *_FLEET),
    _not_for("after", *_COUNTED),
    _not_for("count", *(one for one in Condition if one not in _COUNTED)),
    _not_for("ratio", *(one for one in Condition if one != "failing")),
    {"required": ["window"], "not": {"required": ["ratio"]}, "properties": _NOT_SKIPPED},
)


class AlertRuleIn(Input):
    model_config = ConfigDict(
        title="NewAlertRule",
        json_schema_extra={
            "examples": [{"condition": "silent", "schedule": "nightly", "after": "30m"}], **_RULES,
        },
    )  # fmt: skip
    condition: ConditionIn
    schedule: Pattern = ""
    queue: Pattern = ""
    after: PositiveDuration = ""
    count: Annotated[int, Field(ge=1, le=MAX_COUNT), WHOLE] = 1
    ratio: Annotated[float, Field(gt=0, le=1, description="The share of failed jobs within `window`.")] = 1
    window: Annotated[PositiveDuration, Field(description="For `ratio`, and for skipped fires.")] = ""
    channels: Annotated[
        list[Name], Field(max_length=MAX_CHANNELS, description="Left out or empty: all channels.")
    ] = Field(default_factory=list)
    severity: SeverityIn = ""
    enabled: bool = True


class MuteIn(Input):
    model_config = ConfigDict(
        title="NewMute", json_schema_extra={"examples": [{"for": "2h", "subject": "report-*"}]}
    )
    for_: Annotated[PositiveDuration, Field(alias="for")]
    start: Annotated[Instant, Field(description="Left out: now.")] = ""
    condition: ConditionIn = ""
    subject: Annotated[
        str, text_schema("A name, or a pattern with *. Left out: all.", "duetime-name", "report-*", 256)
    ] = ""
    note: Note = ""


class SnoozeIn(Input):
    model_config = ConfigDict(title="Snooze", json_schema_extra={"examples": [{"for": "1h"}]})
    for_: Annotated[PositiveDuration, Field(alias="for")] = "1h"
    note: Note = ""
