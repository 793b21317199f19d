"""Pages of listings. A cursor is signed: it is valid for one tenant, one listing and one set of filters."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from duetime.api.problems import ApiProblem
from duetime.engine.submit.validate import check_id
from duetime.model.codec import decode, encode
from duetime.model.ids import random_bytes
from duetime.store import Store

SIGNATURE_BYTES = 16
KEY_BYTES = 32
KEY_RECORD = ("secret", "", "cursor")
MAX_CURSOR = 1_024
MAX_PAGE = 1_000
Item = TypeVar("Item")
Cursor = Annotated[
    str | None, Field(min_length=1, max_length=MAX_CURSOR, json_schema_extra={"format": "duetime-cursor"})
]


class ClosedQuery(BaseModel):
    """Unknown query parameters are errors."""

    model_config = ConfigDict(extra="forbid")


ZoneName = Annotated[
    str,
    Field(
        max_length=64,
        json_schema_extra={"format": "duetime-zone"},
    ),
]


class PageQuery(ClosedQuery):
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 100
    cursor: Cursor = None


class Cursors:
    """Without a key, one is made and stored at the first request: all processes of a fleet use the same."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key or b""

    async def open(self, store: Store) -> None:
        if not self._key:
            await store.put_record(*KEY_RECORD, random_bytes(KEY_BYTES), expect=0)
            stored = await store.get_record(*KEY_RECORD)
            self._key = b"" if stored is None else stored.value

    def write(self, tenant: str, listing: str, filters: Mapping[str, Any], position: Sequence[Any]) -> str:
        place = encode(position)
        return urlsafe_b64encode(self._sign(tenant, listing, filters, place) + place).rstrip(b"=").decode()

    def read(self, tenant: str, listing: str, filters: Mapping[str, Any], cursor: str) -> list[Any]:
        try:
            padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            data = urlsafe_b64decode(padded) if len(cursor) <= MAX_CURSOR else b""
        except (NotBase64, ValueError):
            data = b""
        signature, place = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
        if not place or not hmac.compare_digest(signature, self._sign(tenant, listing, filters, place)):
            remedy = "send next_cursor unchanged, with the same filters"
            raise ApiProblem(
                400, "cursor_invalid", f"cursor: is not valid for this listing: {remedy}", "cursor"
            )
        position: list[Any] = decode(place)
        return position

    def _sign(self, tenant: str, listing: str, filters: Mapping[str, Any], place: bytes) -> bytes:
        given = sorted((name, str(value)) for name, value in filters.items() if value is not None)
        bound = encode([tenant, listing, given])
        return hmac.digest(self._key, len(bound).to_bytes(4, "big") + bound + place, sha256)[:SIGNATURE_BYTES]


class Listing:
    """The page of a listing that a query asks for."""

    def __init__(
        self, cursors: Cursors, tenant: str, name: str, filters: Mapping[str, Any], query: PageQuery
    ) -> None:
        self._cursors, self._bound = cursors, (tenant, name, filters)
        self.limit = query.limit
        self.position = None if query.cursor is None else cursors.read(*self._bound, query.cursor)

    @property
    def after(self) -> Any:
        """The key of the last item of the page before."""
        return None if self.position is None else self.position[0]

    @property
    def before_job(self) -> UUID | None:
        """The last job of the page before."""
        return None if self.position is None else check_id(self.position[0])

    def cursor(self, position: Sequence[Any] | None) -> str | None:
        return None if position is None else self._cursors.write(*self._bound, position)

    def cursor_after(self, key: Any) -> str | None:
        """None: there is no next page."""
        return None if key is None else self.cursor([key])

    def split(self, found: Sequence[Item], key: Callable[[Item], Any]) -> tuple[list[Item], str | None]:
        """The page and the next cursor, from up to `limit + 1` items."""
        items = list(found[: self.limit])
        return items, self.cursor_after(key(items[-1])) if len(found) > self.limit else None
