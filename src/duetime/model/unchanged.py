"""Finds what JSON would change without a word in a caller's value: a datetime that arrives as text, keys that
are not text.

`given` is what the caller gave, `arrived` what the worker reads of it. Plain JSON arrives as it was given, or
an annotation says what becomes of it. A tuple may arrive as a list, as from `json` of the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from types import NoneType
from typing import Any
from uuid import UUID

_EVERYDAY = frozenset({str, int, float, bool, NoneType})
# How to write a value as JSON. Subclasses, such as those of pendulum, are read as these types.
_FORMS: Mapping[type, str] = {
    datetime: "value.isoformat()",
    date: "value.isoformat()",
    time: "value.isoformat()",
    timedelta: 'ISO 8601 text, such as "PT1H"',
    UUID: "str(value)",
    Decimal: "str(value)",
    bytes: "base64 text",
}
_ARRIVES_AS: Mapping[type, str] = {
    str: "text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a dict",
}
Path = tuple[Any, ...]


def lazy_text() -> Any:
    """The class of Django's lazy texts. We never import Django: a program that uses them has done so."""
    return getattr(sys.modules.get("django.utils.functional"), "Promise", ())


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value that arrives as another type."""

    path: Path  # names and numbers that lead to it
    type: str  # that its annotation would name
    what: str  # is wrong
    form: str  # to give instead

    def field_in(self, field: str = "") -> str:
        shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return (field + shown).removeprefix(".")

    def reason(self, annotated: bool) -> str:
        """`annotated`: the value belongs to a parameter that could have an annotation."""
        if not annotated:
            return f"{self.what}: give {self.form}"
        if len(self.path) == 1:
            return f"{self.what}: annotate the parameter ({self.path[0]}: {self.type})"
        return f"{self.what}: say so in the annotation of {self.path[0]!r}, or give {self.form}"


def are_plain(values: Iterable[Any]) -> bool:
    """Certain to arrive as they are. Nearly all values are, and every submission asks."""
    for value in values:
        kind = type(value)
        if kind in _EVERYDAY:
            continue
        if kind is dict:
            for key in value:
                if type(key) is not str:
                    return False
            if not are_plain(value.values()):
                return False
        elif kind is not list or not are_plain(value):
            return False
    return True


def find_change(given: Any, arrived: Any, path: Path = ()) -> ChangedValue | None:
    match given:
        case None | str() | int() | float() | PurePath():
            return None
        case dict():
            return _in_dict(given, arrived, path)
        case list() | tuple() if not hasattr(given, "_fields") or type(arrived) is type(given):
            return _in_list(given, arrived, path)
        case set() | frozenset() if isinstance(arrived, set | frozenset):
            return _in_list(given, arrived, path)
        case _ if isinstance(given, lazy_text()):
            return None
        case _:
            return _in_object(given, arrived, path)


def _in_dict(given: dict[Any, Any], arrived: Any, path: Path) -> ChangedValue | None:
    there = arrived if isinstance(arrived, dict) else _members(arrived)
    # An annotation may say what becomes of keys that are text.
    in_order = dict(zip(given, there.values(), strict=True)) if len(given) == len(there) else {}
    for key, item in given.items():
        if key not in there and not isinstance(key, str):
            kind = _type_name(key)
            what = f"has keys of type {kind}, which arrive as text"
            return ChangedValue(path, f"dict[{kind}, Any]", what, "keys that are text")
        other = there.get(key, in_order.get(key) if there is arrived else item)
        if found := find_change(item, other, (*path, key)):
            return found
    return None


def _in_list(given: Any, arrived: Any, path: Path) -> ChangedValue | None:
    if isinstance(arrived, set | frozenset):
        pairs = [(item, next((one for one in arrived if one == item), None)) for item in given]
    elif isinstance(arrived, Sequence) and not isinstance(arrived, str):
        pairs = list(zip(given, arrived, strict=False))
    else:
        return None
    for number, (item, other) in enumerate(pairs):
        if found := find_change(item, other, (*path, number)):
            return found
    return None


def _in_object(given: Any, arrived: Any, path: Path) -> ChangedValue | None:
    members = _members(given)
    if members and type(arrived) is type(given):
        there = _members(arrived)
        found = (find_change(item, there[name], (*path, name)) for name, item in members.items())
        return next(filter(None, found), None)
    # Two zones may show one instant as unequal, in the hour when the clocks are put back.
    if given == arrived or (isinstance(given, datetime) and isinstance(arrived, datetime)):
        return None
    kind = _type_name(given)
    article = "an" if kind[0] in "AEIOaeio" else "a"
    form = next((form for known, form in _FORMS.items() if isinstance(given, known)), None)
    arrives = _ARRIVES_AS.get(type(arrived), type(arrived).__name__)
    return ChangedValue(path, kind, f"is {article} {kind}, which arrives as {arrives}", form or arrives)


def _members(value: Any) -> dict[str, Any]:
    """The fields of a struct, a dataclass, an attrs class or a model of pydantic."""
    kind = type(value)
    names = (
        getattr(kind, "__struct_fields__", None)
        or getattr(kind, "__dataclass_fields__", None)
        or getattr(kind, "model_fields", None)
        or [one.name for one in getattr(kind, "__attrs_attrs__", ())]
    )
    return {name: getattr(value, name, None) for name in names}


def _type_name(value: Any) -> str:
    kind = type(value)
    return next((known for known in kind.__mro__ if known in _FORMS), kind).__name__
