"""All compatible routes, closed to whom nobody knows like every other."""

from __future__ import annotations

from fastapi import Depends, FastAPI

from duetime.api.auth import anyone_known
from duetime.api.compat import agents, jobs


def include_compatible(service: FastAPI) -> None:
    for router in (agents.router, jobs.router):
        service.include_router(router, dependencies=[Depends(anyone_known)])
