"""Queues and keys in requests."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from duetime.api.models.targets import WHOLE, Input, Name, PositiveDuration, RateText, never
from duetime.model.api_key import Scope
from duetime.model.limit import MAX_RUNNING

_NEW_KEY: dict[str, Any] = {"name": "billing", "scopes": ["submit"], "expires_in": "90d"}
_RULES = never(
    {
        "required": ["scopes", "queues"],
        "properties": {
            "scopes": {"not": {"contains": {"const": Scope.WORK.value}}},
            "queues": {"minItems": 1},
        },
    }
)  # queues limit the scope work
ScopeName = Annotated[str, WithJsonSchema({"type": "string", "enum": [scope.value for scope in Scope]})]


class QueueLimitIn(Input):
    """Replaces earlier limits; null or left out: no limit."""

    model_config = ConfigDict(
        title="QueueLimit", json_schema_extra={"examples": [{"max_running": 5, "rate": "100/1m"}]}
    )
    max_running: Annotated[
        int | None,
        Field(ge=1, le=MAX_RUNNING, description="Running jobs of the queue, across all nodes."),
        WHOLE,
    ] = None
    rate: Annotated[RateText | None, Field(description="Starts in a period, across all nodes.")] = None


class NewKeyIn(Input):
    model_config = ConfigDict(title="NewKey", json_schema_extra={"examples": [_NEW_KEY], **_RULES})
    name: Name
    scopes: Annotated[
        list[ScopeName],
        Field(
            min_length=1,
            max_length=len(Scope),
            description="Each scope includes those before it in this list, except work, which stands alone.",
        ),
    ]
    expires_in: PositiveDuration = ""
    tenant: Annotated[
        Name,
        Field(
            description="Default: the tenant of the caller. Only admins of the operator's "
            "tenant may choose another."
        ),
    ] = ""
    rate: RateText = ""
    queues: Annotated[
        list[Name],
        Field(max_length=100, description="Limits the scope work to these queues; empty: all queues."),
    ] = Field(default_factory=list)
