"""Alive and ready. Alive says that this process answers; ready, that what it needs does, too."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.edge import edge_of
from duetime.api.problems import RETRY_AFTER, Refused
from duetime.api.routing import PROBLEM, answer
from duetime.errors import DuetimeError
from duetime.version import VERSION

PATIENCE = 2.0  # seconds: whoever asks has a timeout of his own
router = APIRouter(tags=["health"])


class HealthOut(BaseModel):
    model_config = ConfigDict(title="Health", extra="forbid")
    status: str
    version: str


@router.get("/healthz", response_model=HealthOut, summary="This process answers")
async def alive() -> Response:
    return answer({"status": "ok", "version": VERSION})


@router.get(
    "/readyz", response_model=HealthOut, summary="The store answers, too", responses={503: {"description": "Not ready.", **PROBLEM}}
)
async def ready(request: Request) -> Response:
    try:
        async with asyncio.timeout(PATIENCE):
            await edge_of(request).app.store.time()
    except (DuetimeError, TimeoutError):
        remedy = "it comes back by itself when the store does"
        raise Refused(503, "not_ready", f"the store does not answer: {remedy}", None, {"Retry-After": RETRY_AFTER}) from None
    return answer({"status": "ready", "version": VERSION})
