"""/demo/echo: a sample agent for local mode. Its path selects the answer.

/anything         200 with the request         /status/503      that status; after 202 no report follows
/flaky            503 for some jobs, on the first attempt
/slow/1.5         200 after 1.5 seconds        /later/10        202, a report each second, success after ten
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import known_caller
from duetime.api.bodies import MAX_BODY, read_body
from duetime.api.routing import answer
from duetime.api.state import state_of
from duetime.app.reports import Alive, Completed
from duetime.app.services import Services
from duetime.clock import pause
from duetime.errors import DuetimeError
from duetime.invokers.http.echo_paths import MAX_SHOWN_BODY, response_for
from duetime.model.signing import verify_report_token

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
MAX_SLOW = 60.0
MAX_LATER = 120
router = APIRouter(prefix="/demo/echo", dependencies=[Depends(known_caller)], include_in_schema=False)
_reporting: set[asyncio.Task[None]] = set()  # asyncio keeps only weak references to tasks


@router.api_route("/{path:path}", methods=METHODS)
async def echo(request: Request, path: str) -> Response:
    body = await read_body(request, MAX_BODY)
    said = {
        "method": request.method,
        "path": f"/{path}",
        "body": body[:MAX_SHOWN_BODY].decode("utf-8", "replace"),
    }
    status, wait = response_for(f"/{path}")
    if path == "flaky" and _fails_first(request):
        return answer({**said, "note": "this attempt fails on purpose: the next one succeeds"}, 503)
    kind, _, seconds = path.partition("/")
    if kind == "later":
        _report_later(request, seconds)
    if wait:
        await pause(min(wait, MAX_SLOW))
    return answer(said, status)


def _fails_first(request: Request) -> bool:
    """One job in three, on its first attempt."""
    job_id = _job_id(request)
    return job_id is not None and request.headers.get("duetime-attempt") == "1" and job_id.int % 3 == 0


def _job_id(request: Request) -> UUID | None:
    try:
        return UUID(request.headers.get("duetime-job-id", ""))
    except ValueError:
        return None


def _report_later(request: Request, seconds: str) -> None:
    """Only with the report token of an attempt."""
    state, job_id = state_of(request), _job_id(request)
    spoken = (
        None
        if job_id is None
        else verify_report_token(state.ring, job_id, request.headers.get("duetime-report-token", ""))
    )
    if job_id is None or spoken is None:
        return
    steps = min(int(seconds), MAX_LATER) if seconds.isascii() and seconds.isdigit() else 10
    task = asyncio.create_task(
        _work(state.app.for_tenant(spoken.tenant), job_id, spoken.attempt, steps), name="duetime-demo"
    )
    _reporting.add(task)
    task.add_done_callback(_reporting.discard)


async def _work(view: Services, job_id: UUID, attempt: int, steps: int) -> None:
    """Report like an external agent, but without the network. Stops when the attempt has ended."""
    try:
        for step in range(1, steps + 1):
            await pause(1)
            progress = {"done": step, "total": steps, "note": f"page {step} of {steps}"}
            await view.jobs.report(job_id, Alive(attempt, progress))
        await view.jobs.report(job_id, Completed(attempt, {"pages": steps}))
    except DuetimeError:
        return
