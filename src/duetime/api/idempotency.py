"""`Idempotency-Key`: the service stores the answer to a request, and sends it again when the request is
repeated.

A record is taken before the work and completed after it. It holds a seed for ids: a process that takes
over from one that died makes the same ids, and the store accepts a job of the same id once.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from duetime.api.problems import ApiProblem
from duetime.api.rate_limit import SharedBuckets, too_many
from duetime.app.services import Services
from duetime.clock import pause
from duetime.engine.submit.commands import Repeat
from duetime.errors import DuetimeError, StoreError
from duetime.model.codec import decode, encode
from duetime.model.ids import RepeatedIds, random_bytes
from duetime.model.instant import SECOND, Micros
from duetime.model.limit import Rate, show_rate
from duetime.store import Store

KIND = "idempotency"
HEADER = "Idempotency-Key"
MAX_KEY = 255
RETENTION = 24 * 3_600 * SECOND
MAX_KEYS = Rate(1_000_000, RETENTION)  # of one tenant: the store keeps an answer for each
TAKEOVER_TIMEOUT = 10 * SECOND  # after which another request takes over
MAX_POLLS, POLL_INTERVAL = 40, 0.05  # seconds, while the first request runs
STORED_HEADERS = ("location", "etag")
Work = Callable[[Services], Awaitable[Response]]  # gets the view to use


@dataclass(frozen=True, slots=True)
class IdempotencyStore:
    """Answers by key, in the store: all API processes share them."""

    store: Store
    quota: SharedBuckets

    async def once(self, view: Services, key: str, request: bytes, work: Work) -> Response:
        """Do the work, unless the tenant's request with this key was answered before. `request` must be the
        same each time."""
        if wait := await self.quota.spend(view.tenant, MAX_KEYS):
            raise too_many(f"{HEADER}: the limit of a tenant is {show_rate(MAX_KEYS)}: repeat it later", wait)
        keyed = _KeyedRequest(self.store, view, _checked(key), sha256(request).hexdigest())
        for _ in range(MAX_POLLS):
            if (answer := await keyed.attempt(work)) is not None:
                return answer
            await pause(POLL_INTERVAL)
        detail = f"the first request with this {HEADER} is still in progress: repeat this one later"
        raise ApiProblem(409, "idempotency_in_progress", detail, HEADER, {"Retry-After": "1"})


@dataclass(frozen=True, slots=True)
class _KeyedRequest:
    store: Store
    view: Services
    key: str
    request: str

    async def attempt(self, work: Work) -> Response | None:
        """The answer, new or stored; None while another request with this key runs."""
        now = await self.view.now()
        fresh = {"request": self.request, "seed": random_bytes(16).hex(), "at": now, "taken": now}
        version = await self._put(fresh, 0, now)
        if version:
            return await self._work(fresh, version, False, work)
        known = await self.store.get_record(KIND, self.view.tenant, self.key)
        if known is None:
            return None  # it expired just now
        stored = decode(known.value)
        if stored["request"] != self.request:
            detail = f"this {HEADER} was used with another request: use a new key for each new request"
            raise ApiProblem(409, "idempotency_reused", detail, HEADER)
        if "status" in stored:
            headers = {**stored["headers"], "Idempotency-Replayed": "true"}
            return Response(stored["body"], stored["status"], headers, "application/json")
        if now - stored["taken"] < TAKEOVER_TIMEOUT:
            return None
        mine = {**stored, "taken": now}
        version = await self._put(mine, known.version, now)
        return await self._work(mine, version, True, work) if version else None

    async def _work(self, mine: dict[str, Any], version: int, again: bool, work: Work) -> Response:
        repeat = Repeat(RepeatedIds(bytes.fromhex(mine["seed"])), mine["at"], again)
        try:
            answer = await work(Services(self.view.context.repeating(repeat)))
        except (ApiProblem, DuetimeError) as problem:
            if not isinstance(problem, StoreError):
                # Nothing was done: the key is free again, unless another request has taken over.
                await self.store.put_record(KIND, self.view.tenant, self.key, None, version)
                raise
            with suppress(StoreError):  # it is unknown what was done: the next request takes over immediately
                await self._put({**mine, "taken": 0}, version, mine["at"])
            raise
        kept = {name: answer.headers[name] for name in STORED_HEADERS if name in answer.headers}
        done = {
            "request": self.request,
            "status": answer.status_code,
            "headers": kept,
            "body": bytes(answer.body).decode(),
        }
        await self._put(done, version, mine["at"])
        return answer

    async def _put(self, value: dict[str, Any], expect: int, now: Micros) -> int:
        expires_at = now + RETENTION
        return await self.store.put_record(
            KIND, self.view.tenant, self.key, encode(value), expect=expect, expires_at=expires_at
        )


def fingerprint(method: str, path: str, body: BaseModel | None) -> bytes:
    """Equal for equal requests: the address and the values of the body, not its layout."""
    given = None if body is None else body.model_dump(exclude_unset=True)
    return f"{method} {path}\n{json.dumps(given, sort_keys=True)}".encode()


def _checked(key: str) -> str:
    if not 1 <= len(key) <= MAX_KEY or not all("!" <= character <= "~" for character in key):
        detail = f"{HEADER}: must be 1 to {MAX_KEY} printable ASCII characters without blanks"
        raise ApiProblem(422, "input_invalid", detail, HEADER)
    return key
