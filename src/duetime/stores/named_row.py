"""A row of a driver that gives values without their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class NamedRow(tuple[Any, ...]):
    """By position and by name."""

    names: tuple[str, ...] = ()

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)

    @classmethod
    def kind(cls, names: Iterable[str]) -> type[NamedRow]:
        """The class of rows with columns of these names."""
        return type("Row", (cls,), {"names": tuple(names)})
