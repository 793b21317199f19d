"""API keys, kept in the store under their prefixes: made, listed, revoked; and found when one is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from duetime.app.client import Client
from duetime.engine.checks import check_count, check_name
from duetime.errors import KeyNotFound, StoreUnavailable
from duetime.model import duration
from duetime.model.apikey import ApiKey, Scope, digest_of, make_text, read_prefix, with_lesser
from duetime.model.duration import Duration
from duetime.model.ids import random_bytes
from duetime.model.instant import LATEST, SECOND, Micros
from duetime.model.limit import parse_rate

KIND = "key"
INDEX = ""  # no tenant has this name: who shows a key has not said yet whose it is
KEPT = 90 * 86_400 * SECOND  # how long a key that opens nothing any more is still listed
PAGE = 500
TRIES = 20  # others may change a record at the same time, though hardly ever


class NewKey(NamedTuple):
    text: str  # the key itself: nobody can show it again
    key: ApiKey


class Keys(Client):
    async def create_key(
        self,
        name: str,
        scopes: Iterable[str] = (Scope.SUBMIT,),
        *,
        expires_in: Duration | None = None,
        rate: str | None = None,
    ) -> NewKey:
        """A key of this tenant. A scope includes those below it: read, submit, manage, admin. `rate` ("100/1s") in place of the service's
        own limit."""
        self._require_open()
        checked, granted = check_name(name, "name"), with_lesser(scopes)
        lapse = None if expires_in is None else duration.positive(expires_in, "expires_in")
        limit = None if rate is None else parse_rate(rate, "rate")
        now = await self._commands.now()
        expires_at = None if lapse is None else min(now + lapse, LATEST - 1)
        while True:
            text, prefix = make_text(random_bytes)
            made = ApiKey(prefix, checked, self._tenant, granted, digest_of(text), now, expires_at, rate=limit)
            if await self._put_key(made, 0):
                return NewKey(text, made)

    async def keys(self, *, limit: int = 100, after: str | None = None, every_tenant: bool = False) -> list[ApiKey]:
        """By prefix, those lately expired or revoked included; `after` is the last prefix already seen."""
        self._require_open()
        wanted = check_count(limit, "limit")
        found: list[ApiKey] = []
        while len(found) < wanted:
            rows = await self._store.list_records(KIND, INDEX, PAGE, (INDEX, after or ""))
            keys = [ApiKey.from_value(row.key, row.value) for row in rows]
            found += [key for key in keys if every_tenant or key.tenant == self._tenant]
            if len(rows) < PAGE:
                break
            after = rows[-1].key
        return found[:wanted]

    async def revoke_key(self, prefix: str, *, every_tenant: bool = False) -> ApiKey:
        """From now on it opens nothing: at once where it is not in use, everywhere within seconds. A whole key is taken for its prefix."""
        self._require_open()
        for _ in range(TRIES):
            found = await self.find_key(read_prefix(prefix) or "")
            if found is None or not (every_tenant or found[0].tenant == self._tenant):
                raise KeyNotFound(f"there is no key {(read_prefix(prefix) or prefix)[:40]!r}: list the keys to see those there are")
            key, version = found
            revoked = key.revoked(await self._commands.now())
            if revoked is key or await self._put_key(revoked, version):
                return revoked
        raise StoreUnavailable(f"key {prefix[:40]!r} is being changed by others all the time: try again")

    # -- for whoever guards a door --------------------------------------------------------------------------------------
    async def find_key(self, prefix: str) -> tuple[ApiKey, int] | None:
        """The key of whichever tenant, and the version of its record."""
        record = await self._store.get_record(KIND, INDEX, prefix)
        return None if record is None else (ApiKey.from_value(prefix, record.value), record.version)

    async def note_key_use(self, key: ApiKey, version: int, now: Micros) -> bool:
        """Unless somebody changed it meanwhile: their word weighs more."""
        return await self._put_key(key.used(now), version) != 0

    async def _put_key(self, key: ApiKey, expect: int) -> int:
        ends = [moment for moment in (key.expires_at, key.revoked_at) if moment is not None]
        expires_at = min(min(ends) + KEPT, LATEST - 1) if ends else None
        return await self._store.put_record(KIND, INDEX, key.prefix, key.to_value(), expect, expires_at)
