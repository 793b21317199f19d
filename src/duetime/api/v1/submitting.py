"""POST /jobs, made quick: from bytes to one model, a draft, the group commit, and bytes. FastAPI documents it; requests pass it by."""

from __future__ import annotations

import json

from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from duetime.api import shown
from duetime.api.auth import Asked, Caller, admit
from duetime.api.auth import Scope as KeyScope
from duetime.api.edge import Edge
from duetime.api.limits import LARGEST_BODY, check_body, check_type, gather, parse, validated
from duetime.api.models.jobs import NewJobIn
from duetime.api.problems import Refused, refusal_of, respond
from duetime.api.wanted import new_job
from duetime.app.operations import Operations
from duetime.errors import DuetimeError
from duetime.model.codec import encode

PATH = "/api/v1/jobs"
NEW_JOB: TypeAdapter[NewJobIn] = TypeAdapter(NewJobIn)


class Submitting:
    """The ASGI application of this one route. What a request goes through is what all others go through, without the steps between."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The first of several headers counts, as everywhere else.
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        try:
            client = scope.get("client")
            response = await self._answer(Asked("POST", headers, client[0] if client else None), receive)
        except Refused as refused:
            response = respond(refused, scope["state"]["request_id"])
        except DuetimeError as problem:
            known = refusal_of(problem)
            if known.status == 500:
                raise
            response = respond(known, scope["state"]["request_id"])
        await response(scope, receive, send)

    async def _answer(self, asked: Asked, receive: Receive) -> Response:
        caller = await admit(self._edge, asked, KeyScope.SUBMIT)
        headers = asked.headers
        check_body(headers, LARGEST_BODY)
        data = await gather(receive, LARGEST_BODY)
        check_type(headers.get("content-type"))
        return await submit(self._edge, caller, headers.get("idempotency-key"), validated(NEW_JOB, parse(data)))


async def submit(edge: Edge, caller: Caller, key: str | None, body: NewJobIn) -> Response:
    view = edge.view(caller)
    if key is None:
        return await _store(edge, view, body)
    return await edge.memory.once(view, key, fingerprint("POST", PATH, body), lambda view: _store(edge, view, body))


async def _store(edge: Edge, view: Operations, body: NewJobIn) -> Response:
    done = await view.submit_target(new_job(edge, view.tenant, body))
    known = None if done.conflict is None or done.conflict == "replaced" else await view.read_job(done.id)
    job_id = str(done.id)
    made = encode(shown.submitted(job_id, done.draft, known, done.conflict))
    return Response(made, 201 if known is None else 200, {"Location": f"{PATH}/{job_id}"}, "application/json")


def fingerprint(method: str, path: str, body: BaseModel | None) -> bytes:
    """What makes two requests the same: where they go and what they say, not how it is laid out."""
    said = None if body is None else body.model_dump(exclude_unset=True)
    return f"{method} {path}\n{json.dumps(said, sort_keys=True)}".encode()
