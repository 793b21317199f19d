"""`Idempotency-Key`: the answer to a request is kept with it and given again when the request comes again.

A record is taken before the work and finished after it. Whoever finds it taken waits a moment for the answer of the first; one taken by a
process that died is free again when its time is up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256

from starlette.responses import Response

from duetime.api.problems import Refused
from duetime.clock import pause
from duetime.model.codec import decode, encode
from duetime.model.instant import SECOND, Micros
from duetime.store import Record, Store

KIND = "idempotency"
LONGEST_KEY = 255
KEPT = 24 * 3_600 * SECOND
UNFINISHED = 60 * SECOND  # how long a request may take before another with its key is let through
LOOKS, LOOK_EVERY = 40, 0.05  # while the first is under way
HEADERS = ("location", "etag")
Work = Callable[[], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Memory:
    """Remembered requests, in the store: any API process knows them."""

    store: Store

    async def once(self, tenant: str, key: str | None, request: bytes, now: Micros, work: Work) -> Response:
        """Do the work, unless this tenant's request with this key was answered before. `request` is what must be the same."""
        if key is None:
            return await work()
        name, fingerprint = _checked(key), sha256(request).hexdigest()
        for _ in range(LOOKS):
            taken = encode({"request": fingerprint})
            version = await self.store.put_record(KIND, tenant, name, taken, expect=0, expires_at=now + UNFINISHED)
            if version:
                return await self._work(tenant, name, fingerprint, version, now, work)
            known = await self.store.get_record(KIND, tenant, name)
            if known is not None and (answer := _replay(known, fingerprint)) is not None:
                return answer
            await pause(LOOK_EVERY)
        raise Refused(
            409, "idempotency_in_progress", "the first request with this Idempotency-Key is still under way: repeat this one later",
            "Idempotency-Key", {"Retry-After": "1"},
        )  # fmt: skip

    async def _work(self, tenant: str, name: str, fingerprint: str, version: int, now: Micros, work: Work) -> Response:
        try:
            answer = await work()
        except BaseException:
            # Nothing was done: the next one with this key may try.
            await self.store.delete_record(KIND, tenant, name)
            raise
        kept = {name: answer.headers[name] for name in HEADERS if name in answer.headers}
        value = encode({"request": fingerprint, "status": answer.status_code, "headers": kept, "body": bytes(answer.body).decode()})
        await self.store.put_record(KIND, tenant, name, value, expect=version, expires_at=now + KEPT)
        return answer


def _replay(known: Record, fingerprint: str) -> Response | None:
    """The answer as it was; None while there is none yet."""
    stored = decode(known.value)
    if stored["request"] != fingerprint:
        raise Refused(
            409, "idempotency_reused", "this Idempotency-Key came with another request before: use a new key for each new request",
            "Idempotency-Key",
        )  # fmt: skip
    if "status" not in stored:
        return None
    headers = {**stored["headers"], "Idempotency-Replayed": "true"}
    return Response(stored["body"], stored["status"], headers, "application/json")


def _checked(key: str) -> str:
    if not 1 <= len(key) <= LONGEST_KEY or not all("!" <= character <= "~" for character in key):
        raise Refused(
            422,
            "input_invalid",
            f"Idempotency-Key: must be 1 to {LONGEST_KEY} printable ASCII characters without blanks",
            "Idempotency-Key",
        )
    return key
