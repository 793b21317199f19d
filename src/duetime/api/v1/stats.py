"""Statistics of the fleet, as far as the caller's tenant goes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Reader
from duetime.api.edge import edge_of
from duetime.api.models.stats import StatsOut
from duetime.api.routing import StrictRoute, answer, problems
from duetime.app.statistics import Stats

router = APIRouter(tags=["stats"], route_class=StrictRoute)


class StatsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    since: Annotated[
        str, Field(description="How far back, up to 24h.", examples=["1h"], max_length=32, json_schema_extra={"format": "duetime-since"})
    ] = "1h"
    step: Annotated[
        str, Field(description="Whole minutes.", examples=["1m"], max_length=32, json_schema_extra={"format": "duetime-step"})
    ] = "1m"


@router.get("/stats", response_model=StatsOut, summary="What is alive, was done, fails, is late and comes next", responses=problems())
async def stats(request: Request, caller: Reader, query: Annotated[StatsQuery, Query()]) -> Response:
    return answer(shown_stats(await edge_of(request).view(caller).stats(query.since, query.step)))


def shown_stats(stats: Stats) -> dict[str, Any]:
    return {
        "now": _iso(stats.now),
        "live": asdict(stats.live),
        "series": [{**asdict(point), "at": _iso(point.at)} for point in stats.series],
        "failing": [asdict(one) for one in stats.failing],
        "late": [shown.job_summary(job) for job in stats.late],
        "next": [{"schedule_id": str(one.schedule_id), "name": one.name, "at": _iso(one.at)} for one in stats.next],
        "leader": stats.leader,
    }


def _iso(moment: datetime) -> str:
    return f"{moment.replace(tzinfo=None).isoformat()}Z"
