"""Types of values that several models share. A `format` of our own stands for rules that JSON Schema cannot
express."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from duetime.engine.submit.validate import MAX_KEY_LENGTH, MAX_NAME_LENGTH, MAX_NOTE_LENGTH
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY


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


def _text(description: str, format: str, example: str, limit: int = 256) -> Any:
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
Duration = Annotated[str, _text('A duration such as "100ms", "15m" or "1h30m".', "duetime-duration", "15m")]
PositiveDuration = Annotated[str, _text("A duration longer than zero.", "duetime-duration-positive", "10s")]
Name = Annotated[
    str,
    _text(
        "Printable, without blanks at the ends, not beginning with @.",
        "duetime-name",
        "billing",
        MAX_NAME_LENGTH,
    ),
]
UniqueKey = Annotated[str, _text("Printable.", "duetime-key", "invoice-2030-01", MAX_KEY_LENGTH)]
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
