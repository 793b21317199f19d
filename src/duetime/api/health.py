"""Alive and ready. Alive says that this process answers; ready, that it can do its work, and if not, why."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.edge import edge_of
from duetime.api.problems import RETRY_AFTER, Refused
from duetime.api.routing import PROBLEM, answer
from duetime.version import VERSION

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
    summary="Store and node are fit for work, and nobody has told this process to stop",
    responses={503: {"description": "Not ready.", **PROBLEM}},
)
async def ready(request: Request) -> Response:
    edge = edge_of(request)
    trouble = "the service is stopping" if edge.stopping else await edge.health.trouble()
    if trouble is not None:
        raise Refused(503, "not_ready", trouble, None, {"Retry-After": RETRY_AFTER})
    return answer({"status": "ready", "version": VERSION})
