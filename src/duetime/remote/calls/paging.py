"""Listings, page by page, until there is enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from duetime.errors import InvalidInput
from duetime.remote.reading import read
from duetime.remote.talk import Talk, ask

Item = TypeVar("Item")
LARGEST_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: list[Item]
    next_cursor: str | None = None


def listed(
    kind: type[Page[Item]], path: str, limit: int, filters: Mapping[str, Any] | None = None, wanted: Callable[[Item], bool] | None = None
) -> Talk[list[Item]]:
    """The first `limit` of a listing; with `wanted`, of those it says yes to."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidInput("limit", f"{limit!r} must be a whole number of at least 1")
    found: list[Item] = []
    cursor = None
    while True:
        size = LARGEST_PAGE if wanted is not None else min(limit - len(found), LARGEST_PAGE)
        page = read(kind, (yield ask("GET", path, query={**(filters or {}), "limit": size, "cursor": cursor})))
        found += page.items if wanted is None else filter(wanted, page.items)
        cursor = page.next_cursor
        if cursor is None or len(found) >= limit:
            return found[:limit]


def everything(kind: type[Page[Item]], path: str) -> Talk[list[Item]]:
    """A listing that is not paged."""
    return read(kind, (yield ask("GET", path))).items
