"""API keys. A key belongs to one tenant; the database has only its digest."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.errors import ConfigError, NotFound
from momentum.ids import new_id

PREFIX = "mo_"
TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
keys = tables.keys


@dataclass(frozen=True, slots=True)
class ApiKey:
    id: str
    tenant: str
    name: str
    created_at: datetime
    revoked_at: datetime | None


def digest_of(key: str) -> bytes:
    """A key has 256 random bits, so one round of a hash is enough."""
    return sha256(key.encode()).digest()


async def create_key(connection: AsyncConnection, name: str, tenant: str = "default") -> tuple[ApiKey, str]:
    """The key and its text, which is shown only now."""
    if not TENANT.fullmatch(tenant):
        raise ConfigError(
            f"tenant: {tenant!r}: use 1 to 64 of a-z, 0-9, _ and -, and begin with a letter or digit"
        )
    if not name.strip() or len(name) > 100:
        raise ConfigError("name: must have 1 to 100 characters")
    text = PREFIX + secrets.token_urlsafe(32)
    made = ApiKey(new_id("key"), tenant, name, datetime.now(UTC), None)
    row = {
        "id": made.id,
        "tenant": tenant,
        "name": name,
        "digest": digest_of(text),
        "created_at": made.created_at,
    }
    await connection.execute(insert(keys).values(row))
    return made, text


async def list_keys(connection: AsyncConnection) -> Sequence[ApiKey]:
    columns = (keys.c.id, keys.c.tenant, keys.c.name, keys.c.created_at, keys.c.revoked_at)
    return [ApiKey(*row) for row in await connection.execute(select(*columns).order_by(keys.c.created_at))]


async def revoke_key(connection: AsyncConnection, key_id: str) -> None:
    rule = update(keys).where(keys.c.id == key_id, keys.c.revoked_at.is_(None))
    if (await connection.execute(rule.values(revoked_at=datetime.now(UTC)))).rowcount == 0:
        raise NotFound(f"key: there is no valid key {key_id!r}: see `momentum key list`")


async def find_key(
    connection: AsyncConnection, *, text: str | None = None, key_id: str | None = None
) -> ApiKey | None:
    """A valid key, by its text or its id."""
    condition = keys.c.id == key_id if text is None else keys.c.digest == digest_of(text)
    columns = (keys.c.id, keys.c.tenant, keys.c.name, keys.c.created_at, keys.c.revoked_at)
    row = (await connection.execute(select(*columns).where(condition, keys.c.revoked_at.is_(None)))).first()
    return None if row is None else ApiKey(*row)
