"""Listings, read page by page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from duetime.errors import InvalidInput
from duetime.model.views import Page
from duetime.remote.request import Call, read, request

Item = TypeVar("Item")
MAX_PAGE = 1_000


def listed(
    kind: type[Page[Item]],
    path: str,
    limit: int,
    filters: Mapping[str, Any] | None = None,
    wanted: Callable[[Item], bool] | None = None,
) -> Call[list[Item]]:
    """The first `limit` items of a listing that pass the filter `wanted`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidInput("limit", f"{limit!r} must be a whole number of at least 1")
    found: list[Item] = []
    cursor = None
    while True:
        size = MAX_PAGE if wanted is not None else min(limit - len(found), MAX_PAGE)
        page = read(
            kind, (yield request("GET", path, query={**(filters or {}), "limit": size, "cursor": cursor}))
        )
        found += page.items if wanted is None else filter(wanted, page.items)
        cursor = page.next_cursor
        if cursor is None or len(found) >= limit:
            return found[:limit]


def everything(kind: type[Page[Item]], path: str) -> Call[list[Item]]:
    """A listing of one page."""
    return read(kind, (yield request("GET", path))).items
