"""Every request: ids, headers, authentication, tenants, idempotency, health; and the OpenAPI document."""

from __future__ import annotations

import json
import logging
import re
import threading
from pathlib import Path
from typing import Any, get_type_hints

import fastapi.routing
import pytest
from starlette.responses import Response

import duetime as dt
from duetime.api import openapi, problems
from duetime.api.caller import AuthRequest, Caller
from duetime.api.compat import agents
from duetime.api.compat import jobs as plain_jobs
from duetime.api.problems import ApiProblem
from duetime.api.routing import StrictRoute, documenting
from duetime.api.service import ROUTERS, build
from duetime.api.v1 import fast_submit, reports
from duetime.config import Settings
from duetime.errors import StoreFull, StoreUnavailable
from duetime.model.api_key import Scope
from tests.api.conftest import TASK, Api, client_of, refused

JOB = {"target": TASK}


class Keys:
    """An authenticator that reads tenant and scopes from a header."""

    local = False

    async def authenticate(self, request: AuthRequest) -> Caller:
        tenant, _, scopes = request.headers.get("authorization", "").partition(" ")
        if not tenant:
            raise ApiProblem(401, "unauthenticated", "give a key")
        return Caller(tenant, frozenset(Scope(one) for one in scopes.split()))


@pytest.fixture
async def keyed() -> Any:
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, Settings(), authenticator=Keys())) as client:
        yield Api(app, client)
    await app.close()


async def test_every_route_refuses_unknown_callers(keyed: Api) -> None:
    document = (await keyed.client.get("/openapi.json")).json()
    asked = 0
    for path, operations in document["paths"].items():
        for method in operations:
            where = (
                path.replace("{job_id}", "01935c2e-7b3a-7000-8000-000000000000")
                .replace("{schedule_id}", "a")
                .replace("{name}", "a")
            )
            answer = await keyed.client.request(
                method, where, content=b"{}", headers={"content-type": "application/json"}
            )
            if path.startswith("/api/"):
                refused(answer, 401, "unauthenticated")
                asked += 1
    assert asked >= 25


async def test_scopes_decide_what_a_key_may_do(keyed: Api) -> None:
    refused(await keyed.post("/jobs", JOB, authorization="a read"), 403, "scope_missing")
    refused(await keyed.get("/jobs", authorization="a submit"), 403, "scope_missing")
    assert (await keyed.post("/jobs", JOB, authorization="a submit")).status_code == 201
    refused(await keyed.post("/queues/x/pause", authorization="default read submit"), 403, "scope_missing")
    refused(await keyed.post("/queues/x/pause", authorization="a admin"), 403, "tenant_not_allowed")
    assert (await keyed.post("/queues/x/pause", authorization="default admin")).json()["paused"]


async def test_tenants_do_not_see_one_another(keyed: Api) -> None:
    """Names and keys of tenants do not collide, and ids of other tenants are not found."""
    mine, theirs = "a admin", "b admin"
    job_id = (
        await keyed.post("/jobs", {**JOB, "unique_key": "k"}, authorization=mine, idempotency_key="i")
    ).json()["id"]
    assert (
        await keyed.post("/jobs", {**JOB, "unique_key": "k"}, authorization=theirs, idempotency_key="i")
    ).json()["id"] != job_id
    refused(await keyed.get(f"/jobs/{job_id}", authorization=theirs), 404, "job_not_found")
    refused(await keyed.ask("DELETE", f"/jobs/{job_id}", authorization=theirs), 404, "job_not_found")
    schedule = {"name": "s", "when": {"every": "1h"}, "target": TASK}
    made = (await keyed.post("/schedules", schedule, authorization=mine)).json()
    refused(await keyed.get(f"/schedules/{made['id']}", authorization=theirs), 404, "schedule_not_found")
    assert (await keyed.post("/schedules", schedule, authorization=theirs)).status_code == 201
    for _ in range(2):
        await keyed.post("/jobs", JOB, authorization=mine)
    cursor = (await keyed.get("/jobs?limit=1", authorization=mine)).json()["next_cursor"]
    refused(await keyed.get(f"/jobs?limit=1&cursor={cursor}", authorization=theirs), 400, "cursor_invalid")
    assert len((await keyed.get("/jobs", authorization=theirs)).json()["items"]) == 1


@pytest.mark.parametrize("path", ["/jobs", "/schedules"])
async def test_in_local_mode_pages_of_other_sites_are_refused(api: Api, path: str) -> None:
    """Neither with a name that points to this machine nor from their page."""
    refused(await api.post(path, JOB, host="evil.example:8080"), 403, "host_not_allowed", "Host")
    refused(await api.post(path, JOB, origin="https://evil.example"), 403, "origin_not_allowed", "Origin")
    refused(await api.post(path, JOB, origin="null"), 403, "origin_not_allowed", "Origin")
    for good in (
        {"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:8080"},
        {"host": "[::1]:8080"},
        {"host": "LOCALHOST"},
    ):
        assert (await api.get(path, **good)).status_code == 200
    preflight = await api.ask("OPTIONS", path, origin="https://evil.example")
    assert "access-control-allow-origin" not in preflight.headers


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/nothing", "/healthz", "/docs"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_every_answer_has_an_id_and_is_not_cached(api: Api, path: str, method: str) -> None:
    answer = await api.client.request(method, path, headers={"x-request-id": "mine-1"})
    assert answer.headers["x-request-id"] == "mine-1"
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == (
        "no-store",
        "nosniff",
    )
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    other = await api.client.request(method, path, headers={"x-request-id": "not\tmine"})
    assert other.headers["x-request-id"] not in ("", "not\tmine")


async def test_internal_error_reveals_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fault(*_: Any, **__: Any) -> Any:
        raise RuntimeError("canary at 10.0.0.7")

    monkeypatch.setattr(api.app.store, "add_jobs", fault)
    monkeypatch.setattr(api.app.store, "list_jobs", fault)
    with caplog.at_level(logging.ERROR):
        for answer in (await api.post("/jobs", JOB), await api.get("/jobs")):
            refused(answer, 500, "internal")
            assert "canary" not in answer.text
    assert "canary" in caplog.text


async def test_a_store_that_is_away_is_503_with_retry_after(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("db.internal:5432 refused the connection")

    for name in ("add_jobs", "list_jobs", "time"):
        monkeypatch.setattr(api.app.store, name, away)
    for answer in (await api.post("/jobs", JOB), await api.get("/jobs")):
        refused(answer, 503, "store_unavailable")
        assert (answer.headers["retry-after"], "db.internal" in answer.text) == ("1", False)
    refused(await api.client.get("/readyz"), 503, "not_ready")
    assert (await api.client.get("/healthz")).json()["status"] == "ok"


async def test_a_store_without_room_is_named_and_is_not_one_that_is_away(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any, **__: Any) -> Any:
        raise StoreFull("/var/lib/jobs.db cannot be written")

    with monkeypatch.context() as patch:
        for name in ("add_jobs", "put_record"):
            patch.setattr(api.app.store, name, full)
        answer = await api.post("/jobs", JOB)
        problem = refused(answer, 503, "store_full")
        assert "make room" in problem["detail"]
        assert (answer.headers["retry-after"], "jobs.db" in answer.text) == ("1", False)
        assert "no room left" in refused(await api.client.get("/readyz"), 503, "not_ready")["detail"]
    assert (await api.client.get("/readyz")).status_code == 200


async def test_a_store_whose_writers_wait_is_ready(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def locked(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("locked by another process")

    monkeypatch.setattr(api.app.store, "put_record", locked)
    assert (await api.client.get("/readyz")).status_code == 200


async def test_health_routes_answer(api: Api) -> None:
    assert (await api.client.get("/readyz")).json()["status"] == "ready"


async def test_a_repeated_request_is_answered_as_before_and_done_once(api: Api) -> None:
    first = await api.post("/jobs", JOB, idempotency_key="one")
    again = await api.post(
        "/jobs", b'{ "target" : {"name": "invoice.send", "type": "task"} }', idempotency_key="one"
    )
    assert (again.status_code, again.content, again.headers["location"]) == (
        201,
        first.content,
        first.headers["location"],
    )
    assert again.headers["idempotency-replayed"] == "true"
    refused(
        await api.post("/jobs", {**JOB, "priority": 1}, idempotency_key="one"),
        409,
        "idempotency_reused",
        "Idempotency-Key",
    )
    refused(
        await api.post("/jobs/batch", {"jobs": [JOB]}, idempotency_key="one"),
        409,
        "idempotency_reused",
        "Idempotency-Key",
    )
    assert len((await api.get("/jobs")).json()["items"]) == 1
    for odd in ("x" * 256, "\x7f", "a b"):
        refused(await api.post("/jobs", JOB, idempotency_key=odd), 422, "input_invalid", "Idempotency-Key")


async def test_queues_nodes_and_leases_are_listed(api: Api) -> None:
    await api.submit(queue="billing")
    paused = (await api.post("/queues/billing/pause", {"note": "stocktaking"})).json()
    assert (paused["paused"], paused["pause_note"], paused["pending"]) == (True, "stocktaking", 1)
    assert [(one["name"], one["paused"]) for one in (await api.get("/queues")).json()["items"]] == [
        ("billing", True)
    ]
    assert not (await api.post("/queues/billing/resume")).json()["paused"]
    refused(await api.post("/queues/@x/pause"), 422, "input_invalid", "queue")
    async with api.app.running(name="n1"):
        [node] = (await api.get("/nodes")).json()["items"]
        assert (node["name"], node["state"], node["roles"]) == ("n1", "alive", ["planner", "worker"])
        assert (await api.get("/leases")).status_code == 200


async def test_document_lists_problems_and_examples(api: Api) -> None:
    document = (await api.client.get("/openapi.json")).json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], path
            if not path.startswith("/api/"):
                continue
            statuses = {"400", "401", "403", "422", "429", "500", "503"}
            if operation["operationId"] == "agent_health":  # its 503 says which part does not answer
                statuses.remove("503")
            for status in statuses:
                content = operation["responses"][status]["content"]
                assert list(content) == ["application/problem+json"], (method, path, status)
            if "requestBody" in operation:
                assert {"413", "415"} <= operation["responses"].keys(), (method, path)
    assert "HTTPValidationError" not in json.dumps(document)
    assert '"default": ""' not in json.dumps(document)
    page = await api.client.get("/docs")
    assert "/api/v1/jobs/{job_id}" in page.text
    assert "<script" not in page.text


def test_every_api_code_is_declared() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(problems.__file__).parent.rglob("*.py"))
    used = set(re.findall(r'ApiProblem\(\s*(?:\d+|status),\s*"([a-z_]+)"', source))
    assert used == set(problems.API_CODES)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/openapi.json", 200), ("GET", "/docs", 200), ("DELETE", "/api/v1/jobs", 405)],
)
async def test_document_is_built_in_a_thread(
    api: Api, monkeypatch: pytest.MonkeyPatch, method: str, path: str, status: int
) -> None:
    """It takes half a second, and jobs that are due meanwhile start in time."""
    threads, document = list[threading.Thread](), openapi.document

    def noted(service: openapi.DocumentedService) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return document(service)

    monkeypatch.setattr(openapi, "document", noted)
    assert (await api.client.request(method, path)).status_code == status
    assert threads != []
    assert threading.current_thread() not in threads


def test_handlers_return_responses() -> None:
    """FastAPI does not know the models of responses, and would not check them."""
    routers = [*ROUTERS, reports.router, agents.router, plain_jobs.router]
    routes = [fast_submit.ROUTE, *(route for router in routers for route in router.routes)]
    assert len(routes) > 80
    for route in routes:
        assert isinstance(route, StrictRoute)
        assert issubclass(get_type_hints(route.endpoint)["return"], Response), route.path


def test_models_of_responses_are_built_only_for_the_document() -> None:
    service = build(dt.App("memory://"), Settings())
    with documenting():
        [submitting] = [route for route in service.document_routes() if isinstance(route, StrictRoute)]
        assert submitting.response_field is not None
    assert fast_submit.ROUTE.response_field is None
    assert fast_submit.ROUTE.response_fields == {}


async def test_prepared_service_builds_no_routes_during_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    app = dt.App("memory://")
    await app.open()
    service = build(app, Settings())
    service.prepare()
    monkeypatch.setattr(fastapi.routing, "get_dependant", None)
    async with client_of(service) as client:
        assert (await client.get("/api/v1/jobs")).status_code == 200
        assert (await client.get("/nothing")).status_code == 404
    await app.close()
