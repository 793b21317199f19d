"""Who the caller is to the service: what a page or a program asks first."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Known
from duetime.api.edge import edge_of
from duetime.api.models.keys import MeOut
from duetime.api.routing import StrictRoute, answer, problems
from duetime.model.apikey import listed
from duetime.version import VERSION

router = APIRouter(tags=["keys"], route_class=StrictRoute)


@router.get("/me", response_model=MeOut, operation_id="me", summary="Who asks, and what they may do", responses=problems())
async def me(request: Request, caller: Known) -> Response:
    edge = edge_of(request)
    return answer(
        {
            "tenant": caller.tenant,
            "scopes": listed(caller.scopes),
            "key": caller.key_prefix,
            "local": edge.gate.local,
            "version": VERSION,
            "now": shown.iso(await edge.view(caller).now()),
            "expires_at": shown.iso(caller.expires_at),
        }
    )
