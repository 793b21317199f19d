"""The service's own secret keys: the first one encrypts and signs, the others still decrypt and verify.

Each purpose uses its own key, derived from these.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from duetime.errors import ConfigError

MIN_KEY_BYTES = 32
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
FORM = "write ID:BASE64 with at least 32 random bytes, the current key first"


@dataclass(frozen=True, slots=True)
class ServiceKey:
    id: str
    material: bytes = field(repr=False)

    def derive(self, purpose: str) -> bytes:
        return hmac.digest(self.material, f"duetime/{purpose}".encode(), sha256)


@dataclass(frozen=True, slots=True)
class KeyRing:
    keys: tuple[ServiceKey, ...] = ()

    @classmethod
    def parse(cls, entries: Sequence[str]) -> KeyRing:
        """From a setting. An error never repeats any part of a key."""
        keys = tuple(_key(number, entry) for number, entry in enumerate(entries, 1))
        if len({key.id for key in keys}) < len(keys):
            raise ConfigError("two secret keys have the same id: give each its own")
        return cls(keys)

    @property
    def current(self) -> ServiceKey | None:
        return self.keys[0] if self.keys else None

    def find(self, key_id: str) -> ServiceKey | None:
        return next((key for key in self.keys if key.id == key_id), None)


def _key(number: int, entry: str) -> ServiceKey:
    key_id, colon, text = entry.partition(":")
    try:
        material = b64decode(text, validate=True)
    except (NotBase64, ValueError):
        material = b""
    if not colon or not _KEY_ID.fullmatch(key_id) or len(material) < MIN_KEY_BYTES:
        raise ConfigError(f"secret key number {number} is invalid: {FORM}")
    return ServiceKey(key_id, material)
