"""Cursors: where a page ended, sealed so that it can only be used by the tenant, for the listing and with the filter it was made for."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from typing import Any

from duetime.api.problems import Refused
from duetime.model.codec import decode, encode

MARK = 16  # bytes of the signature: nobody guesses 128 bits
LONGEST = 1_024


class Cursors:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, tenant: str, listing: str, filters: dict[str, Any], position: list[Any]) -> str:
        place = encode(position)
        return urlsafe_b64encode(self._mark(tenant, listing, filters, place) + place).rstrip(b"=").decode()

    def read(self, tenant: str, listing: str, filters: dict[str, Any], cursor: str) -> list[Any]:
        try:
            data = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)) if len(cursor) <= LONGEST else b""
        except (NotBase64, ValueError):
            data = b""
        mark, place = data[:MARK], data[MARK:]
        if not place or not hmac.compare_digest(mark, self._mark(tenant, listing, filters, place)):
            remedy = "give back next_cursor as it was, with the same filters"
            raise Refused(400, "cursor_invalid", f"cursor: is not one of ours, or of another listing: {remedy}", "cursor")
        position: list[Any] = decode(place)
        return position

    def _mark(self, tenant: str, listing: str, filters: dict[str, Any], place: bytes) -> bytes:
        bound = encode([tenant, listing, sorted((name, str(value)) for name, value in filters.items() if value is not None)])
        return hmac.digest(self._key, len(bound).to_bytes(4, "big") + bound + place, sha256)[:MARK]
