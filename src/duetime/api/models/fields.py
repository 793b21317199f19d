"""Kinds of values that several models share. What JSON Schema cannot say has a `format` of its own, and the domain checks it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from duetime.engine.checks import LONGEST_KEY, LONGEST_NAME, LONGEST_NOTE
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY


class Input(BaseModel):
    """A closed object: unknown fields are refused, and nothing is converted (a boolean is no integer)."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Output(BaseModel):
    """Only what is listed leaves the house."""

    model_config = ConfigDict(extra="forbid")


def whole(value: Any) -> Any:
    """To JSON 3.0 is an integer, too."""
    return int(value) if type(value) is float and value.is_integer() else value


WHOLE = BeforeValidator(whole)


def _text(description: str, format: str, example: str, longest: int = 256) -> Any:
    schema = {"type": "string", "format": format, "minLength": 1, "maxLength": longest, "description": description, "examples": [example]}
    return WithJsonSchema(schema)


Instant = Annotated[str, WithJsonSchema(
    {"type": "string", "format": "date-time", "description": "ISO 8601 with an offset, 1970 to 9998."}
)]  # fmt: skip
Duration = Annotated[str, _text('A time such as "100ms", "15m" or "1h30m".', "duetime-duration", "15m")]
PositiveDuration = Annotated[str, _text("A time longer than zero.", "duetime-duration-positive", "10s")]
Name = Annotated[str, _text("Printable, no blanks at the ends, not beginning with @.", "duetime-name", "billing", LONGEST_NAME)]
UniqueKey = Annotated[str, _text("Printable.", "duetime-key", "invoice-2030-01", LONGEST_KEY)]
Note = Annotated[str, Field(max_length=LONGEST_NOTE, description="Shown to whoever wonders why.", examples=["database moves house"])]
Priority = Annotated[int, Field(ge=LOWEST_PRIORITY, le=HIGHEST_PRIORITY, description="9 is most urgent.", examples=[5]), WHOLE]
Labels = Annotated[dict[str, str], Field(description="Free keys and values to filter by.", examples=[{"team": "billing"}])]
Json = Annotated[Any, WithJsonSchema({"description": "Any JSON.", "examples": [{"customer": "c1"}]})]
OutJson = Annotated[Any, WithJsonSchema({"description": "Any JSON."})]
OutInstant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2030-01-01T09:00:00Z"]})]
OutId = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid", "examples": ["01935c2e-7b3a-7000-8000-000000000000"]})]
OutTarget = Annotated[dict[str, Any], WithJsonSchema(
    {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}, "examples": [{"type": "task", "name": "a.b"}]}
)]  # fmt: skip
