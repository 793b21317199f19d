"""Field types that several requests and responses share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer, WithJsonSchema


def shown(instant: datetime) -> str:
    """ISO 8601 in UTC, with Z and milliseconds."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant.microsecond // 1000:03d}Z"


Instant = Annotated[
    datetime,
    PlainSerializer(shown, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-20T08:00:00.000Z"]}),
]


class Input(BaseModel):
    """A request body: unknown fields are errors, so that a misspelt one is not ignored."""

    model_config = ConfigDict(extra="forbid", str_max_length=100_000)


class Output(BaseModel):
    model_config = ConfigDict(frozen=True)


class ProblemItem(Output):
    """One thing that is wrong, and its field."""

    field: str
    message: str
    code: str


class ProblemDocument(Output):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    problems: list[ProblemItem] = []
