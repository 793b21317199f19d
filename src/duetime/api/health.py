"""Health checks. /healthz: this process answers. /readyz: it can do its work; if not, why."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.problems import RETRY_AFTER, ApiProblem
from duetime.api.routing import PROBLEM, answer
from duetime.api.state import ServiceState, state_of
from duetime.app.health import NO_RESPONSE, STORE_TIMEOUT
from duetime.clock import wall_micros
from duetime.errors import DuetimeError
from duetime.model.instant import SECOND, Micros
from duetime.model.views.fields import about
from duetime.store import Store
from duetime.version import VERSION

MAX_SKEW = 5 * SECOND
ALIVE, READY = "/healthz", "/readyz"
router = APIRouter(tags=["health"])


@dataclass(frozen=True, slots=True)
class HealthView:
    status: str
    version: str


@dataclass(frozen=True, slots=True)
class ReadyView(HealthView):
    remark: str | None = field(default=None, metadata=about("What it works without, for example the broker."))


@router.get(ALIVE, response_model=HealthView, operation_id="is_alive", summary="This process answers")
async def alive() -> Response:
    return answer(HealthView("ok", VERSION))


@router.get(
    READY,
    response_model=ReadyView,
    operation_id="is_ready",
    summary="Store, node, clock and event loop work, and the process is not stopping",
    responses={503: {"description": "Not ready.", **PROBLEM}},
)
async def ready(request: Request) -> Response:
    trouble = await _trouble(state_of(request))
    if trouble is not None:
        raise ApiProblem(503, "not_ready", trouble, None, {"Retry-After": RETRY_AFTER})
    state = state_of(request)
    return answer(ReadyView("ready", VERSION, await state.health.remark()))


# Load balancers and monitors often send HEAD.
for _path, _check in ((ALIVE, alive), (READY, ready)):
    router.add_api_route(_path, _check, methods=["HEAD"], include_in_schema=False)


async def _trouble(state: ServiceState) -> str | None:
    if state.stopping:
        return "the service is stopping"
    return state.loop_lag.trouble() or await state.health.trouble() or await _clock_trouble(state.app.store)


async def _clock_trouble(store: Store) -> str | None:
    try:
        async with asyncio.timeout(STORE_TIMEOUT):
            skew = await _skew(store)
    except (DuetimeError, TimeoutError):
        return NO_RESPONSE
    if abs(skew) <= MAX_SKEW:
        return None
    side = "ahead of" if skew > 0 else "behind"
    return f"this machine's clock is {abs(skew) / SECOND:.1f} s {side} the store's: synchronise both (NTP)"


async def _skew(store: Store) -> Micros:
    """How far the clock of this machine is ahead, at least: a slow answer does not prove a wrong clock."""
    asked_at = wall_micros()
    store_at = await store.time()
    answered_at = wall_micros()
    return max(0, asked_at - store_at) + min(0, answered_at - store_at)
