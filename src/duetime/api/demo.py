"""/demo/echo: an agent to try things with, in local mode only. It answers as its path says; what is left for later it reports by itself.

/anything         200 with what was sent       /status/503      that status, and 202 for good: no report follows
/flaky            503 at times, on a job's first attempt
/slow/1.5         200 after so many seconds    /later/10        202, then a report each second and, after ten, the end
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import anyone_known
from duetime.api.edge import edge_of
from duetime.api.limits import LARGEST_BODY, read_body
from duetime.api.routing import answer
from duetime.app.operations import Operations
from duetime.app.reporting import Alive, Completed
from duetime.clock import pause
from duetime.errors import DuetimeError
from duetime.invokers.http.echo_paths import SHOWN_OF_BODY, told_by
from duetime.model.signing import spoken_for

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
LONGEST_SLOW = 60.0
LONGEST_LATER = 120
router = APIRouter(prefix="/demo/echo", dependencies=[Depends(anyone_known)], include_in_schema=False)
_reporting: set[asyncio.Task[None]] = set()  # a task nobody holds may vanish before its end


@router.api_route("/{path:path}", methods=METHODS)
async def echo(request: Request, path: str) -> Response:
    body = await read_body(request, LARGEST_BODY)
    said = {"method": request.method, "path": f"/{path}", "body": body[:SHOWN_OF_BODY].decode("utf-8", "replace")}
    status, wait = told_by(f"/{path}")
    if path == "flaky" and _unlucky(request):
        return answer({**said, "note": "this attempt is an unlucky one: the next will do"}, 503)
    kind, _, seconds = path.partition("/")
    if kind == "later":
        _report_later(request, seconds)
    if wait:
        await pause(min(wait, LONGEST_SLOW))
    return answer(said, status)


def _unlucky(request: Request) -> bool:
    """One job in three, on its first attempt."""
    job_id = _job_id(request)
    return job_id is not None and request.headers.get("duetime-attempt") == "1" and job_id.int % 3 == 0


def _job_id(request: Request) -> UUID | None:
    try:
        return UUID(request.headers.get("duetime-job-id", ""))
    except ValueError:
        return None


def _report_later(request: Request, seconds: str) -> None:
    """Only for who comes with the token of an attempt, as every report."""
    edge, job_id = edge_of(request), _job_id(request)
    spoken = None if job_id is None else spoken_for(edge.ring, job_id, request.headers.get("duetime-report-token", ""))
    if job_id is None or spoken is None:
        return
    steps = min(int(seconds), LONGEST_LATER) if seconds.isascii() and seconds.isdigit() else 10
    task = asyncio.create_task(_work(edge.app.for_tenant(spoken.tenant), job_id, spoken.attempt, steps), name="duetime-demo")
    _reporting.add(task)
    task.add_done_callback(_reporting.discard)


async def _work(view: Operations, job_id: UUID, attempt: int, steps: int) -> None:
    """As an agent outside would, only without the way over the network. Whatever ends the attempt ends this, too."""
    try:
        for step in range(1, steps + 1):
            await pause(1)
            progress = {"done": step, "total": steps, "note": f"page {step} of {steps}"}
            await view.report_job(job_id, Alive(attempt, progress))
        await view.report_job(job_id, Completed(attempt, {"pages": steps}))
    except DuetimeError:
        return
