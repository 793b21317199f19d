"""Alive and ready. Alive says that this process answers; ready, that it can do its work, and if not, why."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.edge import Edge, edge_of
from duetime.api.problems import RETRY_AFTER, Refused
from duetime.api.routing import PROBLEM, answer
from duetime.app.health import WITHIN
from duetime.clock import wall_micros
from duetime.errors import DuetimeError
from duetime.model.instant import SECOND, Micros
from duetime.store import Store
from duetime.version import VERSION

MOST_SKEW = 5 * SECOND
router = APIRouter(tags=["health"])


class HealthOut(BaseModel):
    model_config = ConfigDict(title="Health", extra="forbid")
    status: str
    version: str


@router.get("/healthz", response_model=HealthOut, summary="This process answers")
async def alive() -> Response:
    return answer({"status": "ok", "version": VERSION})


@router.get(
    "/readyz",
    response_model=HealthOut,
    summary="Store, node, clock and event loop are fit for work, and nobody has told this process to stop",
    responses={503: {"description": "Not ready.", **PROBLEM}},
)
async def ready(request: Request) -> Response:
    trouble = await _trouble(edge_of(request))
    if trouble is not None:
        raise Refused(503, "not_ready", trouble, None, {"Retry-After": RETRY_AFTER})
    return answer({"status": "ready", "version": VERSION})


async def _trouble(edge: Edge) -> str | None:
    if edge.stopping:
        return "the service is stopping"
    return edge.pulse.trouble() or await edge.health.trouble() or await _clock_trouble(edge.app.store)


async def _clock_trouble(store: Store) -> str | None:
    try:
        async with asyncio.timeout(WITHIN):
            skew = await _skew(store)
    except (DuetimeError, TimeoutError):
        return "the store does not answer: it comes back by itself when the store does"
    if abs(skew) <= MOST_SKEW:
        return None
    side = "ahead of" if skew > 0 else "behind"
    return f"this machine's clock is {abs(skew) / SECOND:.1f} s {side} the store's: synchronise both (NTP)"


async def _skew(store: Store) -> Micros:
    """By how much this machine's clock is ahead, at least: an answer that travelled long is no proof of a wrong clock."""
    asked_at = wall_micros()
    store_at = await store.time()
    answered_at = wall_micros()
    return max(0, asked_at - store_at) + min(0, answered_at - store_at)
