"""The ping of an outside monitor: one GET, with the standard library: a node may have no HTTP client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from duetime.model.url import parse
from duetime.version import VERSION

TIMEOUT = 10.0  # seconds
_logger = logging.getLogger("duetime.watchdog")


def pinger(url: str, field: str = "watchdog_url") -> Callable[[], Awaitable[None]]:
    """Pings this address. A failure is logged once, not raised: the absence of pings is the message."""
    shown, failing = parse(url, field).origin, False

    async def ping() -> None:
        nonlocal failing
        problem = await asyncio.to_thread(_get, url)
        if problem is not None and not failing:
            _logger.warning("the outside monitor %s cannot be pinged: %s", shown, problem)
        elif problem is None and failing:
            _logger.info("the outside monitor %s answers again", shown)
        failing = problem is not None

    return ping


def _get(url: str) -> str | None:
    """What went wrong. The path of the address is a secret of many monitors, so it is not repeated."""
    request = Request(url, headers={"User-Agent": f"duetime/{VERSION}"})  # noqa: S310  # http or https only
    try:
        with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            answer.read(1_024)
    except HTTPError as problem:
        return f"HTTP {problem.code}"
    except OSError as problem:
        return type(problem).__name__
    return None
