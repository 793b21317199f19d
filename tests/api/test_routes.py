"""Every route there is, as the application itself has it: closed without a key, without the scope, and to ids
of other tenants."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from starlette.routing import BaseRoute, Mount

import duetime as dt
from duetime.api.caller import AuthRequest, Caller
from duetime.api.service import build
from duetime.config import Settings
from duetime.model.api_key import Scope
from tests.api.conftest import RING, Api, client_of
from tests.api.keyed_api import KEYS, KeyedApi, keyed_api, open_keyed_api

__all__ = ["keyed_api"]

OPEN = {"/healthz", "/readyz", "/openapi.json", "/docs", "/"}
OPEN_BELOW = ("/ui",)
ANY_SCOPE = {"/api/v1/me"}
OPERATOR_ONLY = {"/metrics", "/api/v1/stats/queues", "/api/v1/broker"}  # they include all tenants
READING = {
    "/api/v1/preview",
    "/api/v1/schedules/plan",
    "/api/v1/schedules/{schedule_id}/plan",
}  # by POST, because they take a body
NO_JOB = "01935c2e-7b3a-7000-8000-000000000000"
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/v1/jobs/{job_id}/complete"): {"token": "1.0"},
    ("POST", "/api/v1/jobs/{job_id}/fail"): {"token": "1.0", "error": "x"},
    ("POST", "/api/v1/jobs/{job_id}/heartbeat"): {"token": "1.0"},
    ("POST", "/api/v1/schedules/{schedule_id}/backfill"): {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
    },
    ("POST", "/api/v1/schedules/{schedule_id}/restore"): {"version": 1},
    ("PATCH", "/api/v1/jobs/{job_id}"): {"priority": 3},
    ("PATCH", "/api/v1/schedules/{schedule_id}"): {"priority": 3},
    ("POST", "/api/v1/schedules/{schedule_id}/plan"): {"priority": 3},
}


class Way(NamedTuple):
    method: str
    path: str

    def filled(self, **values: str) -> str:
        return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: values.get(found[1], "a"), self.path)

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{(\w+)", self.path)

    @property
    def template(self) -> str:
        return re.sub(r":\w+\}", "}", self.path)

    @property
    def open(self) -> bool:
        return self.path in OPEN or self.path.startswith(OPEN_BELOW)


def ways(routes: list[BaseRoute], prefix: str = "") -> Iterator[Way]:
    for route in routes:
        path = f"{prefix}{getattr(route, 'path', '')}"
        inner = getattr(route, "routes", None) or getattr(
            getattr(route, "original_router", None), "routes", None
        )
        if inner:
            own = (
                path
                if isinstance(route, Mount)
                else f"{prefix}{getattr(getattr(route, 'include_context', None), 'prefix', '')}"
            )
            yield from ways(inner, own)
        elif methods := getattr(route, "methods", None):
            yield from (Way(method, path) for method in sorted(methods - {"HEAD"}))
        else:
            yield Way("GET", f"{path}/" if isinstance(route, Mount) else path)


def all_ways() -> list[Way]:
    return sorted(set(ways(build(dt.App("memory://"), KEYS, ring=RING).routes)))


GUARDED = [way for way in all_ways() if not way.open]


def test_route_list_is_complete() -> None:
    """What the document describes is among what was found, so that a forgotten router is noticed."""
    document = build(dt.App("memory://"), KEYS, ring=RING).openapi()
    described = {
        Way(method.upper(), path) for path, operations in document["paths"].items() for method in operations
    }
    found = {Way(way.method, way.template) for way in all_ways()}
    assert described <= found
    assert len(GUARDED) > 30
    asking = {
        Way(method.upper(), path)
        for path, all_of in document["paths"].items()
        for method in all_of
        if "security" in all_of[method]
    }
    assert asking == {Way(way.method, way.template) for way in GUARDED} & described
    local = build(dt.App("memory://"), Settings(), ring=RING).openapi()
    assert not [
        operation
        for all_of in local["paths"].values()
        for operation in all_of.values()
        if "security" in operation
    ]


async def ask(api: Api, way: Way, path: str, **headers: str) -> Any:
    body = BODIES.get((way.method, way.template), {}) if way.method in ("POST", "PATCH", "PUT") else None
    data = None if body is None else json.dumps(body).encode()
    given = {"content-type": "application/json"} if data is not None else {}
    return await api.client.request(way.method, path, content=data, headers={**given, **headers})


async def test_without_a_key_every_route_is_401(keyed_api: KeyedApi) -> None:
    answers = {way: await ask(keyed_api, way, way.filled(job_id=NO_JOB)) for way in GUARDED}
    wrong = {way: answer.status_code for way, answer in answers.items() if answer.status_code != 401}
    assert not wrong
    assert {answer.headers["www-authenticate"] for answer in answers.values()} == {'Bearer realm="duetime"'}


async def test_open_routes_reveal_no_tenant(keyed_api: KeyedApi) -> None:
    for way in all_ways():
        if way.open and way.method == "GET":
            assert (await ask(keyed_api, way, way.filled())).status_code in (200, 307, 404, 503), way


async def test_metrics_are_open_where_the_operator_says_so() -> None:
    async with open_keyed_api(open_metrics=True) as keyed_api:
        if Way("GET", "/metrics") in GUARDED:
            assert (await keyed_api.client.get("/metrics")).status_code == 200


class Powerless:
    """Accepts every caller, without any scope."""

    local = False

    async def authenticate(self, request: AuthRequest) -> Caller:
        return Caller("default", frozenset())


async def test_without_the_scope_every_route_is_403() -> None:
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, Settings(), authenticator=Powerless(), ring=RING)) as client:
        wrong = {}
        for way in GUARDED:
            answer = await ask(Api(app, client), way, way.filled(job_id=NO_JOB), authorization="Bearer weak")
            if answer.status_code not in ((200,) if way.path in ANY_SCOPE else (403, 422)):
                wrong[way] = answer.status_code
        assert not wrong
    await app.close()


async def test_a_key_that_may_only_read_changes_nothing(keyed_api: KeyedApi) -> None:
    reader = await keyed_api.key(Scope.READ)
    for way in GUARDED:
        if way.method != "GET" and way.template not in READING:
            answer = await ask(keyed_api, way, way.filled(job_id=NO_JOB), authorization=reader)
            # An address is validated before the scope; that reveals nothing.
            assert answer.status_code in (403, 422), way


MARK = "marked-7c1d"
MARKED = {
    "target": {"type": "task", "name": MARK},
    "queue": MARK,
    "owner": MARK,
    "labels": {"team": MARK},
    "payload": {"text": MARK},
}
ENDLESS = {"/api/v1/events"}


@pytest.fixture
async def theirs(keyed_api: KeyedApi) -> dict[str, str]:
    """Ids of another tenant."""
    key = await keyed_api.key(tenant="a", name=MARK)
    job = (await keyed_api.post("/jobs", MARKED, authorization=key)).json()["id"]
    made = (
        await keyed_api.post(
            "/schedules", {"name": MARK, "when": {"every": "1h"}, **MARKED}, authorization=key
        )
    ).json()["id"]
    return {"job_id": job, "schedule_id": made, "prefix": key[10:20]}


async def test_ids_of_another_tenant_are_404_everywhere(keyed_api: KeyedApi, theirs: dict[str, str]) -> None:
    """For every route with an id: only the owner finds it."""
    stranger, owner = await keyed_api.key(tenant="b"), await keyed_api.key(tenant="a")
    concerned = [way for way in GUARDED if set(way.parameters) & set(theirs)]
    assert len(concerned) > 15
    wrong = {}
    for way in concerned:
        answer = await ask(keyed_api, way, way.filled(**theirs), authorization=stranger)
        if answer.status_code != 404:
            wrong[way] = (answer.status_code, answer.text)
    assert not wrong
    for way in concerned:
        if way.method == "GET":
            assert (
                await ask(keyed_api, way, way.filled(**theirs), authorization=owner)
            ).status_code == 200, way


async def test_no_listing_shows_another_tenant(keyed_api: KeyedApi, theirs: dict[str, str]) -> None:
    """Neither ids nor names."""
    stranger, owner = await keyed_api.key(tenant="b"), await keyed_api.key(tenant="a")
    span = "?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
    seen_by_owner = 0
    for way in GUARDED:
        if way.method != "GET" or way.parameters or way.path in ENDLESS:
            continue
        query = "?url=https://a.example" if "signing" in way.path else span if "calendar" in way.path else ""
        path = way.path + query
        answer = await ask(keyed_api, way, path, authorization=stranger)
        assert answer.status_code == 200 or way.path in OPERATOR_ONLY, (way, answer.text)
        assert not [one for one in (MARK, *theirs.values()) if one in answer.text], way
        seen_by_owner += MARK in (await ask(keyed_api, way, path, authorization=owner)).text
    assert seen_by_owner >= 4, "the mark is there to be seen by those it belongs to"


@pytest.mark.parametrize(
    ("subject", "field", "action"), [("jobs", "job_id", "cancel"), ("schedules", "schedule_id", "remove")]
)
async def test_bulk_does_not_touch_other_tenants(
    keyed_api: KeyedApi, theirs: dict[str, str], subject: str, field: str, action: str
) -> None:
    stranger, owner = await keyed_api.key(tenant="b"), await keyed_api.key(tenant="a")
    for chosen in ({"ids": [theirs[field]]}, {"filter": {"queue": MARK}}):
        done = await keyed_api.post(f"/{subject}/bulk", {"action": action, **chosen}, authorization=stranger)
        assert (done.status_code, done.json().get("done")) == (200, 0), done.text
    assert (await keyed_api.get(f"/{subject}/{theirs[field]}", authorization=owner)).json().get(
        "state", "pending"
    ) == "pending"
