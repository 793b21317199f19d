"""API keys: create, list, revoke. Admins of the operator's tenant manage the keys of all tenants, others
their own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query
from starlette.responses import Response

from duetime.api.auth import Admin, Known, RequestContext
from duetime.api.models.fleet import NewKeyIn
from duetime.api.paging import PageQuery
from duetime.api.problems import ApiProblem
from duetime.api.routing import PREFIX, StrictRoute, answer, links, location, problems, with_body
from duetime.app.services import Services
from duetime.model.api_key import Scope
from duetime.model.instant import to_datetime
from duetime.model.views import CreatedKey, KeyView, Me, Page
from duetime.model.views.fields import moment
from duetime.version import VERSION

Prefix = Annotated[str, Path(min_length=1, max_length=128, examples=["k3v9q2m7xw"])]
CREATED = {
    "headers": location("The address at which the key can be revoked."),
    "links": links("key", "prefix", "prefix", "revoke"),
}
router = APIRouter(tags=["keys"], route_class=StrictRoute)


@router.post(
    "/keys",
    status_code=201,
    response_model=CreatedKey,
    operation_id="create_key",
    summary="Create a key; only this answer contains it",
    responses={201: CREATED, **with_body()},
)
async def create(body: Annotated[NewKeyIn, Body()], context: Admin) -> Response:
    # No Idempotency-Key: the service would have to store the answer, which contains the key.
    view, given = _view_for(context, body), body.model_fields_set
    options = {name: getattr(body, name) for name in ("expires_in", "rate", "queues") if name in given}
    made = await view.keys.create(body.name, body.scopes, **options)
    headers = {"Location": f"{PREFIX}/keys/{made.key.prefix}"}
    return answer(CreatedKey.with_text(made.key, made.text), 201, headers)


@router.get(
    "/keys",
    response_model=Page[KeyView],
    operation_id="list_keys",
    summary="List keys by prefix",
    responses=problems(),
)
async def list_keys(query: Annotated[PageQuery, Query()], context: Admin) -> Response:
    listing = await context.listing("keys", query)
    found = await context.view.keys(
        limit=listing.limit + 1, after=listing.after, every_tenant=context.is_operator
    )
    page, cursor = listing.split(found, lambda key: key.prefix)
    return answer(Page([KeyView.of(key) for key in page], cursor))


@router.delete(
    "/keys/{prefix}",
    status_code=204,
    operation_id="revoke_key",
    summary="Revoke a key; running services reject it within seconds",
    responses=problems(404),
)
async def revoke(prefix: Prefix, context: Admin) -> Response:
    await context.view.keys.revoke(prefix, every_tenant=context.is_operator)
    return Response(status_code=204)


@router.get(
    "/me", response_model=Me, operation_id="me", summary="The caller and its scopes", responses=problems()
)
async def me(context: Known) -> Response:
    caller = context.caller
    return answer(
        Me(
            tenant=caller.tenant,
            scopes=[scope for scope in Scope if scope in caller.scopes],
            key=caller.key_prefix,
            local=context.state.authenticator.local,
            version=VERSION,
            now=to_datetime(await context.view.now()),
            expires_at=moment(caller.expires_at),
            trace_link=context.state.settings.trace_link,
        )
    )


def _view_for(context: RequestContext, body: NewKeyIn) -> Services:
    if "tenant" not in body.model_fields_set or body.tenant == context.caller.tenant:
        return context.view
    if not context.is_operator:
        operator = context.state.app.tenant
        detail = f"tenant: only admins of {operator!r} create keys for other tenants"
        raise ApiProblem(403, "tenant_not_allowed", detail, "tenant")
    return context.state.app.for_tenant(body.tenant)
