"""API keys: their tenant and scopes. Only the digest of a key is stored; the key itself is shown once, when
it is created."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

from duetime.errors import InvalidInput
from duetime.model.codec import decode, encode
from duetime.model.instant import Micros
from duetime.model.limit import Rate, parse_rate, show_rate

KEY = "key"  # the kind of their records
ALL_TENANTS = ""  # a key is looked up before its tenant is known
MARK = "dt"
SECRET_BYTES = 32
PREFIX_LENGTH, SECRET_LENGTH = 10, 43  # 43 letters and digits hold 256 bits
SMALL = "0123456789abcdefghijklmnopqrstuvwxyz"
LETTERS = f"{SMALL}ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_KEY = re.compile(rf"{MARK}_([0-9a-z]{{{PREFIX_LENGTH}}})_[0-9A-Za-z]{{{SECRET_LENGTH}}}")
_PREFIX = re.compile(rf"[0-9a-z]{{{PREFIX_LENGTH}}}")
NO_DIGEST = bytes(32)  # the digest of no key, to compare with when a key is unknown


class Scope(StrEnum):
    """From least to most: each scope includes those before it, except `work`, which stands alone."""

    READ = "read"
    SUBMIT = "submit"
    MANAGE = "manage"
    ADMIN = "admin"
    WORK = "work"  # the worker protocol and nothing else


LADDER = (Scope.READ, Scope.SUBMIT, Scope.MANAGE, Scope.ADMIN)


@dataclass(frozen=True, slots=True)
class ApiKey:
    prefix: str  # its public name
    name: str
    tenant: str
    scopes: frozenset[Scope]
    digest: bytes = field(repr=False)
    created_at: Micros
    expires_at: Micros | None = None
    revoked_at: Micros | None = None
    last_used_at: Micros | None = None  # to the minute
    rate: Rate | None = None
    queues: tuple[str, ...] = ()  # that the scope `work` is limited to; empty: all

    def expired(self, now: Micros) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def state(self, now: Micros) -> str:
        return "revoked" if self.revoked_at is not None else "expired" if self.expired(now) else "active"

    def revoked(self, now: Micros) -> ApiKey:
        return self if self.revoked_at is not None else replace(self, revoked_at=now)

    def used(self, now: Micros) -> ApiKey:
        return replace(self, last_used_at=now)

    def to_value(self) -> bytes:
        """The value that is stored under the prefix."""
        return encode(
            {
                "name": self.name,
                "tenant": self.tenant,
                "scopes": listed(self.scopes),
                "digest": self.digest.hex(),
                "created_at": self.created_at,
                "expires_at": self.expires_at,
                "revoked_at": self.revoked_at,
                "last_used_at": self.last_used_at,
                "rate": None if self.rate is None else show_rate(self.rate),
                "queues": self.queues,
            }
        )

    @classmethod
    def from_value(cls, prefix: str, value: bytes) -> ApiKey:
        stored: dict[str, Any] = decode(value)
        scopes = frozenset(Scope(name) for name in stored.pop("scopes"))
        digest = bytes.fromhex(stored.pop("digest"))
        rate, queues = stored.pop("rate"), tuple(stored.pop("queues", ()))
        limit = None if rate is None else parse_rate(rate, "rate")
        return cls(prefix, scopes=scopes, digest=digest, rate=limit, queues=queues, **stored)


def make_text(random_bytes: Callable[[int], bytes]) -> tuple[str, str]:
    """A new key and its prefix."""
    prefix = _written(random_bytes(8), PREFIX_LENGTH, SMALL)
    return f"{MARK}_{prefix}_{_written(random_bytes(SECRET_BYTES), SECRET_LENGTH, LETTERS)}", prefix


def digest_of(text: str) -> bytes:
    """A fast hash is enough: 256 random bits cannot be guessed, however fast guesses are checked."""
    return sha256(text.encode("latin-1", "replace")).digest()


def prefix_of(text: str) -> str | None:
    """The prefix of a text that looks like a key; None if it cannot be one."""
    found = _KEY.fullmatch(text)
    return None if found is None else found[1]


def read_prefix(text: str) -> str | None:
    """Accepts a prefix, or a whole key in its place."""
    return text if _PREFIX.fullmatch(text) else prefix_of(text)


def with_lesser(scopes: Iterable[str], field: str = "scopes") -> frozenset[Scope]:
    """The named scopes and all below them."""
    wanted = frozenset(_scope(name, field) for name in scopes)
    if not wanted:
        raise InvalidInput(field, f"must name at least one of {', '.join(Scope)}")
    lesser = (set(LADDER[: LADDER.index(scope)]) for scope in wanted & set(LADDER))
    return wanted.union(*lesser)


def listed(scopes: Iterable[Scope]) -> list[str]:
    """From least to most."""
    return [scope.value for scope in Scope if scope in frozenset(scopes)]


def _scope(name: str, field: str) -> Scope:
    if name not in list(Scope):
        raise InvalidInput(field, f"{name!r} is not one of {', '.join(Scope)}")
    return Scope(name)


def _written(noise: bytes, length: int, alphabet: str) -> str:
    """A number in the digits of an alphabet, always of the same length."""
    number, digits = int.from_bytes(noise, "big"), ""
    for _ in range(length):
        number, digit = divmod(number, len(alphabet))
        digits = alphabet[digit] + digits
    return digits
