"""The output of jobs: what tasks log and child processes print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duetime.api.auth import Reader
from duetime.api.models.jobs import OutputLineIn
from duetime.api.paging import ClosedQuery
from duetime.api.routing import StrictRoute, answer, problems
from duetime.api.v1.jobs import JobId
from duetime.app.reports import OutputText
from duetime.model.output import Stream
from duetime.model.views import OutputView
from duetime.task_log import LEVELS

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=StrictRoute)


class OutputQuery(ClosedQuery):
    attempt: Annotated[
        int | None, Field(ge=1, le=2**31 - 1, description="Left out: the latest attempt.", examples=[1])
    ] = None
    after: Annotated[
        int, Field(ge=0, le=2**53, description="Only lines with higher numbers: the `last` of an answer.")
    ] = 0


@router.get(
    "/{job_id:uuid}/output",
    response_model=OutputView,
    operation_id="job_output",
    summary="Read what an attempt of a job has logged and printed",
    responses=problems(404),
)
async def job_output(job_id: JobId, query: Annotated[OutputQuery, Query()], context: Reader) -> Response:
    return answer(await context.view.job_output(job_id, attempt=query.attempt, after=query.after))


def output_texts(lines: Sequence[OutputLineIn]) -> list[OutputText]:
    """Lines of a report."""
    return [(Stream(line.stream), LEVELS[line.level], line.text) for line in lines]
