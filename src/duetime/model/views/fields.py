"""How fields of views are described and copied. The descriptions are the ones of the API document."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar, cast

from duetime.model.codec import decode
from duetime.model.instant import Micros, to_datetime

View = TypeVar("View")
TARGET: dict[str, Any] = {
    "json_schema_extra": {
        "required": ["type"],
        "properties": {"type": {"type": "string"}},
        "examples": [{"type": "task", "name": "report.build"}],
    }
}


def about(description: str, *examples: Any) -> dict[str, Any]:
    """Metadata of a dataclass field."""
    return {"description": description, **({"examples": list(examples)} if examples else {})}


ANY_JSON = about("Any JSON.")


def moment(micros: Micros | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)


def decoded(stored: bytes | None) -> Any:
    return None if stored is None else decode(stored)


def copied(kind: type[View], source: Any, **given: Any) -> View:
    """A view with the attributes that `source` has under the same names; `given` replaces some of them."""
    names = [one.name for one in fields(cast(Any, kind)) if one.name not in given]
    return kind(**{name: getattr(source, name) for name in names}, **given)
