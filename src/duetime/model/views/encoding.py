"""Views as JSON and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from duetime.model.codec import decode, encode, reader
from duetime.model.views.fields import about
from duetime.model.views.schedules import ScheduleView

Kind = TypeVar("Kind")
Item = TypeVar("Item")
_readers: dict[Any, Callable[[bytes], Any]] = {}


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: list[Item]
    next_cursor: str | None = field(
        default=None, metadata=about("Send it back as `cursor`; null: this is the last page.")
    )


def encode_view(value: Any) -> bytes:
    """A view, a page or a list of views as JSON bytes."""
    return encode(_encodable(value))


def to_json(value: Any) -> Any:
    """The same as plain dicts and lists."""
    return decode(encode_view(value))


def from_json(kind: type[Kind], data: bytes) -> Kind:
    """Fields that the type does not have are ignored. Raises ValueError for anything that is not of this
    type."""
    if kind not in _readers:
        _readers[kind] = reader(kind)
    view: Kind = _readers[kind](data)
    return view


def _encodable(value: Any) -> Any:
    match value:
        case ScheduleView():
            return value.to_fields()
        case list():
            return [_encodable(item) for item in value]
        case Page():
            return {"items": _encodable(value.items), "next_cursor": value.next_cursor}
        case _:
            return value
