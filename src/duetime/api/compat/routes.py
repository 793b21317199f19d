"""All compatible routes, closed to whom nobody knows like every other."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from duetime.api.auth import anyone_known
from duetime.api.compat import agents, jobs


def compatible() -> APIRouter:
    made = APIRouter(dependencies=[Depends(anyone_known)])
    for router in (agents.router, jobs.router):
        made.include_router(router)
    return made
