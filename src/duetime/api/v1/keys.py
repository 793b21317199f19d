"""API keys: made, listed, revoked. Admins of the tenant that runs the service see to those of all tenants, others to their own."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Admin, Caller, at_home
from duetime.api.edge import Edge, edge_of
from duetime.api.models.keys import CreatedKeyOut, KeyPageOut, NewKeyIn
from duetime.api.problems import Refused
from duetime.api.routing import StrictRoute, answer, problems, with_body
from duetime.app.operations import Operations
from duetime.model.apikey import ApiKey, listed
from duetime.model.limit import show_rate

MOST_A_PAGE = 1_000
LISTING = "keys"
Prefix = Annotated[str, Path(min_length=1, max_length=128, examples=["k3v9q2m7xw"])]
LINKS = {"revoke": {"operationId": "revoke_key", "parameters": {"prefix": "$response.body#/prefix"}}}
LOCATION = {"Location": {"description": "Where the key can be revoked.", "schema": {"type": "string"}}}
router = APIRouter(prefix="/keys", tags=["keys"], route_class=StrictRoute)


class KeyQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: Annotated[int, Field(ge=1, le=MOST_A_PAGE)] = 100
    cursor: Annotated[str | None, Field(min_length=1, max_length=1_024, json_schema_extra={"format": "duetime-cursor"})] = None


@router.post(
    "",
    status_code=201,
    response_model=CreatedKeyOut,
    operation_id="create_key",
    summary="Make a key; it is shown this once",
    responses={201: {"headers": LOCATION, "links": LINKS}, **with_body()},
)
async def create(request: Request, body: Annotated[NewKeyIn, Body()], caller: Admin) -> Response:
    # No Idempotency-Key here: the answer would have to be kept, and it holds the key.
    view, given = _view_for(edge_of(request), caller, body), body.model_fields_set
    options = {name: getattr(body, name) for name in ("expires_in", "rate") if name in given}
    made = await view.create_key(body.name, body.scopes, **options)
    return answer({**shown_key(made.key), "key": made.text}, 201, {"Location": f"/api/v1/keys/{made.key.prefix}"})


@router.get("", response_model=KeyPageOut, operation_id="list_keys", summary="List keys by prefix", responses=problems())
async def list_keys(request: Request, query: Annotated[KeyQuery, Query()], caller: Admin) -> Response:
    edge = edge_of(request)
    after = None if query.cursor is None else str(edge.cursors.read(caller.tenant, LISTING, {}, query.cursor)[0])
    found = await edge.view(caller).keys(limit=query.limit + 1, after=after, every_tenant=at_home(edge, caller))
    page = found[: query.limit]
    following = edge.cursors.write(caller.tenant, LISTING, {}, [page[-1].prefix]) if len(found) > query.limit else None
    return answer({"items": [shown_key(key) for key in page], "next_cursor": following})


@router.delete(
    "/{prefix}",
    status_code=204,
    operation_id="revoke_key",
    summary="Revoke a key; it opens nothing any more within seconds",
    responses=problems(404),
)
async def revoke(request: Request, prefix: Prefix, caller: Admin) -> Response:
    edge = edge_of(request)
    await edge.view(caller).revoke_key(prefix, every_tenant=at_home(edge, caller))
    return Response(status_code=204)


def _view_for(edge: Edge, caller: Caller, body: NewKeyIn) -> Operations:
    if "tenant" not in body.model_fields_set or body.tenant == caller.tenant:
        return edge.view(caller)
    if not at_home(edge, caller):
        raise Refused(403, "tenant_not_allowed", f"tenant: only admins of {edge.app.tenant!r} make keys for other tenants", "tenant")
    return edge.app.for_tenant(body.tenant)


def shown_key(key: ApiKey) -> dict[str, Any]:
    """Everything but what it is recognised by."""
    return {
        "prefix": key.prefix,
        "name": key.name,
        "scopes": listed(key.scopes),
        "tenant": key.tenant,
        "created_at": shown.iso(key.created_at),
        "expires_at": shown.iso(key.expires_at),
        "last_used_at": shown.iso(key.last_used_at),
        "revoked_at": shown.iso(key.revoked_at),
        "rate": None if key.rate is None else show_rate(key.rate),
    }
