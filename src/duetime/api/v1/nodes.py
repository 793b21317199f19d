"""The fleet: its nodes, and who holds which lease."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Reader
from duetime.api.edge import edge_of
from duetime.api.models.fleet import LeasesOut, NodesOut
from duetime.api.routing import StrictRoute, answer, problems

router = APIRouter(tags=["nodes"], route_class=StrictRoute)


@router.get("/nodes", response_model=NodesOut, summary="Nodes, living and recently dead", responses=problems())
async def list_nodes(request: Request, caller: Reader) -> Response:
    view = edge_of(request).view(caller)
    now = await view.now()
    return answer({"items": [shown.node(node, now) for node in await view.nodes()], "next_cursor": None})


@router.get("/leases", response_model=LeasesOut, summary="Leases and their holders", responses=problems())
async def list_leases(request: Request, caller: Reader) -> Response:
    view = edge_of(request).view(caller)
    return answer({"items": [shown.lease(lease) for lease in await view.leases()], "next_cursor": None})
