"""`Idempotency-Key`: the answer to a request is kept with it and given again when the request comes again.

A record is taken before the work and finished after it. It holds a seed: whoever carries the request out, the first or one who takes over
from a process that died in the middle, makes the same ids of it, and the store takes a job of the same id once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from starlette.responses import Response

from duetime.api.problems import Refused
from duetime.app.operations import Operations
from duetime.app.tenants import repeating
from duetime.clock import pause
from duetime.engine.commands import Repeat
from duetime.errors import DuetimeError, StoreError
from duetime.model.codec import decode, encode
from duetime.model.ids import RepeatedIds, random_bytes
from duetime.model.instant import SECOND, Micros
from duetime.store import Store

KIND = "idempotency"
LONGEST_KEY = 255
KEPT = 24 * 3_600 * SECOND
PATIENCE = 10 * SECOND  # with the first, before another takes over
LOOKS, LOOK_EVERY = 40, 0.05  # while the first is under way
HEADERS = ("location", "etag")
Work = Callable[[Operations], Awaitable[Response]]  # given the view to do it through


@dataclass(frozen=True, slots=True)
class Memory:
    """Remembered requests, in the store: any API process knows them."""

    store: Store

    async def once(self, view: Operations, key: str | None, request: bytes, work: Work) -> Response:
        """Do the work, unless this tenant's request with this key was answered before. `request` is what must be the same."""
        if key is None:
            return await work(view)
        turn = _Turn(self.store, view, _checked(key), sha256(request).hexdigest())
        for _ in range(LOOKS):
            if (answer := await turn.take(work)) is not None:
                return answer
            await pause(LOOK_EVERY)
        raise Refused(
            409, "idempotency_in_progress", "the first request with this Idempotency-Key is still under way: repeat this one later",
            "Idempotency-Key", {"Retry-After": "1"},
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Turn:
    store: Store
    view: Operations
    key: str
    request: str

    async def take(self, work: Work) -> Response | None:
        """The answer, of this or an earlier turn; None while somebody else is at it."""
        now = await self.view.now()
        fresh = {"request": self.request, "seed": random_bytes(16).hex(), "at": now, "taken": now}
        version = await self._put(fresh, 0, now)
        if version:
            return await self._work(fresh, version, False, work)
        known = await self.store.get_record(KIND, self.view.tenant, self.key)
        if known is None:
            return None  # its time was up just now
        stored = decode(known.value)
        if stored["request"] != self.request:
            raise Refused(
                409, "idempotency_reused", "this Idempotency-Key came with another request before: use a new key for each new request",
                "Idempotency-Key",
            )  # fmt: skip
        if "status" in stored:
            return Response(stored["body"], stored["status"], {**stored["headers"], "Idempotency-Replayed": "true"}, "application/json")
        if now - stored["taken"] < PATIENCE:
            return None
        mine = {**stored, "taken": now}
        version = await self._put(mine, known.version, now)
        return await self._work(mine, version, True, work) if version else None

    async def _work(self, mine: dict[str, Any], version: int, again: bool, work: Work) -> Response:
        repeat = Repeat(RepeatedIds(bytes.fromhex(mine["seed"])), mine["at"], again)
        try:
            answer = await work(repeating(self.view, repeat))
        except (Refused, DuetimeError) as problem:
            if not isinstance(problem, StoreError):
                await self.store.delete_record(KIND, self.view.tenant, self.key)  # nothing was done: the key is free
                raise
            with suppress(StoreError):  # nobody knows what was done: the next one finds out, at once
                await self._put({**mine, "taken": 0}, version, mine["at"])
            raise
        kept = {name: answer.headers[name] for name in HEADERS if name in answer.headers}
        done = {"request": self.request, "status": answer.status_code, "headers": kept, "body": bytes(answer.body).decode()}
        await self._put(done, version, mine["at"])
        return answer

    async def _put(self, value: dict[str, Any], expect: int, now: Micros) -> int:
        return await self.store.put_record(KIND, self.view.tenant, self.key, encode(value), expect=expect, expires_at=now + KEPT)


def _checked(key: str) -> str:
    if not 1 <= len(key) <= LONGEST_KEY or not all("!" <= character <= "~" for character in key):
        raise Refused(
            422,
            "input_invalid",
            f"Idempotency-Key: must be 1 to {LONGEST_KEY} printable ASCII characters without blanks",
            "Idempotency-Key",
        )
    return key
