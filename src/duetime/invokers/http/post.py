"""One POST of JSON through the address guard, for senders that are not HTTP targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiohttp
from yarl import URL

from duetime.errors import TargetNotAllowed
from duetime.invokers.http.guard import HttpConnections, TargetRefused, trusted_roots
from duetime.invokers.http.response import RETRYABLE, error_kind, read_response, retry_after
from duetime.model.instant import Micros
from duetime.model.settle import AttemptFailed, Directive, GiveUp, NotHere
from duetime.model.url import ALLOW_IT, Egress, Url

TIMEOUT = aiohttp.ClientTimeout(total=30)
MAX_SHOWN = 200


class Poster:
    """It connects at its first call. Close it on the same event loop."""

    def __init__(self, egress: Egress, now: Callable[[], Micros]) -> None:
        self._egress = egress
        self._now = now
        self._connections: HttpConnections | None = None

    async def post(
        self, url: Url, body: bytes, headers: Mapping[str, str], hidden: Sequence[str], shown: str
    ) -> dict[str, Any]:
        """The answer, if it is a success; raises what it means for the job if not. `shown` names the receiver
        in errors."""
        if self._connections is None:
            self._connections = HttpConnections(self._egress, None, trusted_roots(), 0)
        try:
            self._connections.guard.check(url)
            async with self._connections.session.post(
                URL(str(url), encoded=True),
                data=body,
                headers={"Content-Type": "application/json", **headers},
                allow_redirects=False,
                timeout=TIMEOUT,
            ) as response:
                answer = await read_response(response, hidden)
        except (TargetRefused, TimeoutError, aiohttp.ClientError, OSError) as problem:
            directive = _without_answer(problem, shown)
        else:
            if 200 <= answer.status < 300:
                return answer.to_json()
            text = " ".join(answer.body[:MAX_SHOWN].split())
            line = f"HTTP {answer.status} from {shown}{': ' if text else ''}{text}"
            if answer.status >= 500 or answer.status in RETRYABLE:
                wish = retry_after(answer.headers.get("Retry-After"), self._now())
                directive = AttemptFailed(line, answer.to_json(), wish)
            else:
                directive = GiveUp(line, answer.to_json())
        # Raised out here, so that it does not carry the original error: its text may reveal too much.
        raise directive

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()
            self._connections = None


def _without_answer(problem: BaseException, shown: str) -> Directive:
    if isinstance(problem, TargetRefused) or isinstance(problem.__cause__, TargetRefused):
        return NotHere(f"target not allowed ({TargetNotAllowed.code}): {ALLOW_IT}")
    if isinstance(problem, TimeoutError):
        return AttemptFailed(f"no complete response from {shown}")
    return AttemptFailed(f"no response from {shown}: {error_kind(problem)}")
