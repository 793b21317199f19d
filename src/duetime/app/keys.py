"""API keys: stored under their prefixes, created, listed, revoked, and looked up for requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from duetime.app.context import AppContext
from duetime.engine.submit.validate import check_count, check_name
from duetime.errors import InvalidInput, KeyNotFound, StoreUnavailable
from duetime.model import duration
from duetime.model.api_key import (
    ALL_TENANTS,
    KEY,
    ApiKey,
    Scope,
    digest_of,
    make_text,
    read_prefix,
    with_lesser,
)
from duetime.model.duration import Duration
from duetime.model.ids import random_bytes
from duetime.model.instant import LATEST, SECOND, Micros
from duetime.model.limit import parse_rate

RETENTION = 90 * 86_400 * SECOND  # how long expired and revoked keys are still listed
PAGE = 500
MAX_TRIES = 20  # another process may change the record at the same time


class NewKey(NamedTuple):
    text: str  # the key itself: it cannot be shown again
    key: ApiKey


@dataclass(frozen=True, slots=True)
class Keys:
    """Calling it lists the keys."""

    context: AppContext

    async def create(
        self,
        name: str,
        scopes: Iterable[str] = (Scope.SUBMIT,),
        *,
        expires_in: Duration | None = None,
        rate: str | None = None,
        queues: Sequence[str] = (),
    ) -> NewKey:
        """Create a key of this tenant. The scopes are read, submit, manage and admin; each includes those
        before it. The scope work is for remote workers, of these `queues` only if there are any. `rate`
        ("100/1s") replaces the service's own limit."""
        checked, granted = check_name(name, "name"), with_lesser(scopes)
        served = tuple(dict.fromkeys(check_name(queue, "queues") for queue in queues))
        if served and Scope.WORK not in granted:
            raise InvalidInput(
                "queues", "limits the scope work only: add work to the scopes, or leave it out"
            )
        lapse = None if expires_in is None else duration.positive(expires_in, "expires_in")
        limit = None if rate is None else parse_rate(rate, "rate")
        now = await self.context.now()
        expires_at = None if lapse is None else min(now + lapse, LATEST - 1)
        while True:
            text, prefix = make_text(random_bytes)
            made = ApiKey(
                prefix, checked, self.context.tenant, granted, digest_of(text), now, expires_at, rate=limit,
                queues=served,
            )  # fmt: skip
            if await self._put(made, 0):
                return NewKey(text, made)

    async def __call__(
        self, *, limit: int = 100, after: str | None = None, every_tenant: bool = False
    ) -> list[ApiKey]:
        """By prefix, including recently expired and revoked keys; `after` is the last prefix of the previous
        page."""
        wanted = check_count(limit, "limit")
        found: list[ApiKey] = []
        while len(found) < wanted:
            rows = await self.context.store.list_records(KEY, ALL_TENANTS, PAGE, (ALL_TENANTS, after or ""))
            keys = [ApiKey.from_value(row.key, row.value) for row in rows]
            found += [key for key in keys if every_tenant or key.tenant == self.context.tenant]
            if len(rows) < PAGE:
                break
            after = rows[-1].key
        return found[:wanted]

    async def revoke(self, prefix: str, *, every_tenant: bool = False) -> ApiKey:
        """Revoke a key, given by its prefix or as a whole. Running services reject it within seconds."""
        for _ in range(MAX_TRIES):
            found = await self.find(read_prefix(prefix) or "")
            if found is None or not (every_tenant or found[0].tenant == self.context.tenant):
                raise KeyNotFound(
                    f"key {(read_prefix(prefix) or prefix)[:40]!r} not found: "
                    "list the keys to see all of them"
                )
            key, version = found
            revoked = key.revoked(await self.context.now())
            if revoked is key or await self._put(revoked, version):
                return revoked
        raise StoreUnavailable(f"key {prefix[:40]!r} is being changed by other processes: try again")

    # -- for authentication
    async def find(self, prefix: str) -> tuple[ApiKey, int] | None:
        """The key, of any tenant, and the version of its record."""
        record = await self.context.store.get_record(KEY, ALL_TENANTS, prefix)
        return None if record is None else (ApiKey.from_value(prefix, record.value), record.version)

    async def record_use(self, key: ApiKey, version: int, now: Micros) -> bool:
        """False if the record was changed in between; that change is kept."""
        return await self._put(key.used(now), version) != 0

    async def _put(self, key: ApiKey, expect: int) -> int:
        ends = [moment for moment in (key.expires_at, key.revoked_at) if moment is not None]
        expires_at = min(min(ends) + RETENTION, LATEST - 1) if ends else None
        return await self.context.store.put_record(
            KEY, ALL_TENANTS, key.prefix, key.to_value(), expect, expires_at
        )
