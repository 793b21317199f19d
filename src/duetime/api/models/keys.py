"""API keys in requests and answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from duetime.api.models.fields import Input, Name, OutInstant, Output, PositiveDuration
from duetime.model.apikey import PREFIX_LENGTH, Scope

_EXAMPLE: dict[str, Any] = {"name": "billing", "scopes": ["submit"], "expires_in": "90d"}
_RATE = {"type": "string", "format": "duetime-rate", "minLength": 1, "description": "So many requests a time.", "examples": ["100/1s"]}
RateText = Annotated[str, WithJsonSchema(_RATE)]
ScopeName = Annotated[str, WithJsonSchema({"type": "string", "enum": [scope.value for scope in Scope]})]
OutPrefix = Annotated[str, WithJsonSchema(
    {"type": "string", "pattern": f"^[0-9a-z]{{{PREFIX_LENGTH}}}$", "description": "Its public name.", "examples": ["k3v9q2m7xw"]}
)]  # fmt: skip


class NewKeyIn(Input):
    model_config = ConfigDict(title="NewKey", json_schema_extra={"examples": [_EXAMPLE]})
    name: Name
    scopes: Annotated[list[ScopeName], Field(min_length=1, max_length=4, description="Each includes those before it in this list.")]
    expires_in: PositiveDuration = ""
    tenant: Annotated[Name, Field(description="Another than the caller's: only for admins of the tenant that runs the service.")] = ""
    rate: RateText = ""


class KeyOut(Output):
    model_config = ConfigDict(title="Key")
    prefix: OutPrefix
    name: str
    scopes: list[ScopeName]
    tenant: str
    created_at: OutInstant
    expires_at: OutInstant | None
    last_used_at: OutInstant | None
    revoked_at: OutInstant | None
    rate: str | None


class CreatedKeyOut(KeyOut):
    model_config = ConfigDict(title="CreatedKey")
    key: Annotated[str, Field(description="Shown this once: nobody can show it again.", examples=["dt_k3v9q2m7xw_..."])]


class KeyPageOut(Output):
    model_config = ConfigDict(title="KeyPage")
    items: list[KeyOut]
    next_cursor: str | None


class MeOut(Output):
    model_config = ConfigDict(title="Me")
    tenant: str
    scopes: list[ScopeName]
    key: Annotated[str | None, Field(description="The key's prefix; null in local mode.")]
    local: Annotated[bool, Field(description="No key is needed: the service answers this machine only.")]
    version: str
    now: OutInstant
    expires_at: OutInstant | None
