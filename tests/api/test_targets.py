"""POST /targets/test calls as a job would, and no further; GET /tasks knows what can be submitted. Which
targets are stored, and how."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

import duetime as dt
from duetime.api.service import build
from duetime.config import Settings
from duetime.engine.submit.submission import JobRequest
from duetime.invokers.http.echo import EchoAgent
from duetime.invokers.http.handler import HttpHandler
from duetime.model.schedule import ScheduleFilter
from duetime.model.target import HTTP, HttpTarget
from duetime.model.url import Egress
from tests.api.conftest import RING, Api, client_of, refused


@pytest.fixture
async def agent() -> AsyncIterator[EchoAgent]:
    async with EchoAgent() as found:
        yield found


async def tried(api: Api, target: dict[str, Any], **fields: Any) -> dict[str, Any]:
    done = await api.post("/targets/test", {"target": {"type": "http", **target}, **fields})
    assert done.status_code == 200, done.text
    found: dict[str, Any] = done.json()
    return found


async def test_a_target_is_called_once_as_a_job_would_call_it(api: Api, agent: EchoAgent) -> None:
    found = await tried(
        api, {"url": f"{agent.url}/run", "secret_headers": {"X-Key": "hush"}}, payload={"n": 1}
    )
    assert (found["status"], found["error"], found["truncated"]) == (200, None, False)
    assert json.loads(json.loads(found["body"])["body"]) == {"n": 1}
    assert found["headers"]["Content-Type"] == "application/json"
    assert found["duration_ms"] > 0
    [call] = agent.calls
    assert (call.header("X-Key"), call.header("Duetime-Attempt")) == ("hush", "1")
    assert (
        call.header(
            "webhook-signature",
        )
        is not None
    )
    assert (await api.get("/jobs")).json()["items"] == []


@pytest.mark.parametrize(
    ("path", "target", "status", "code"),
    [
        ("/status/503", {}, 503, "target_failed"),
        ("/status/404", {}, 404, "target_failed"),
        ("/status/404", {"success": [404]}, 404, None),
        ("/later", {"async": True}, 202, None),
        ("/slow/20", {"timeout": "50ms"}, None, "target_unreachable"),
    ],
)
async def test_target_test_predicts_the_outcome_of_a_job(
    api: Api, agent: EchoAgent, path: str, target: dict[str, Any], status: int | None, code: str | None
) -> None:
    found = await tried(api, {"url": f"{agent.url}{path}", **target})
    assert (found["status"], (found["error"] or {}).get("code")) == (status, code)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[fd00::1]/",
        "http://8.8.8.8:25/",
    ],
)
async def test_forbidden_target_cannot_be_tested(api: Api, url: str) -> None:
    """The answer reveals nothing about the address."""
    found = await tried(api, {"url": url})
    assert found["error"]["code"] == "target_not_allowed"
    assert (found["status"], found["body"], found["headers"]) == (None, None, {})
    assert "link-local" not in json.dumps(found)


async def test_remote_caller_cannot_test_loopback_targets(agent: EchoAgent) -> None:
    app = dt.App("memory://")
    await app.open()
    key = (await app.keys.create("k", ["submit"])).text
    async with client_of(build(app, replace(Settings(), auth="keys"), ring=RING)) as client:
        body = {"target": {"type": "http", "url": f"{agent.url}/run"}}
        done = await client.post(
            "/api/v1/targets/test", json=body, headers={"authorization": f"Bearer {key}"}
        )
        assert done.json()["error"]["code"] == "target_not_allowed"
        reader = (await app.keys.create("r", ["read"])).text
        refused(
            await client.post(
                "/api/v1/targets/test", json=body, headers={"authorization": f"Bearer {reader}"}
            ),
            403,
            "scope_missing",
        )
    assert not agent.calls
    await app.close()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"target": {"type": "task", "name": "a"}}, "target.type"),
        ({"target": {"type": "http", "url": "ftp://a"}}, "target.url"),
        (
            {"target": {"type": "http", "url": "https://a.example", "headers": {"Host": "x"}}},
            "target.headers.Host",
        ),
        ({"target": {"type": "http", "url": "https://a.example"}, "tenant": "x"}, "tenant"),
        ({}, "target"),
    ],
)
async def test_invalid_target_is_explained(api: Api, body: dict[str, Any], field: str) -> None:
    refused(await api.post("/targets/test", body), 422, "input_invalid", field)


async def test_tasks_of_this_process_and_of_living_nodes_are_listed(api: Api) -> None:
    @api.app.task("invoice.send", queue="billing")
    async def send_invoice(customer: str) -> None:
        """Send an invoice.

        To the customer.
        """

    [task] = (await api.get("/tasks")).json()["items"]
    assert (task["name"], task["queue"], task["doc"]) == ("invoice.send", "billing", "Send an invoice.")
    assert task["arguments"] == [{"name": "customer", "type": "str", "required": True, "default": None}]
    other = dt.App(api.app.store)

    @other.task("audit.run", queue="audits")
    async def run_audit() -> None: ...

    async with other.running():
        while (found := (await api.get("/tasks")).json()["items"])[0][
            "queue"
        ] != "audits":  # its node says so in its own time
            await api.app.store.time()
    assert (found[0]["name"], found[0]["queue"], found[0]["doc"]) == ("audit.run", "audits", None)
    assert [one["name"] for one in (await api.get("/tasks")).json()["items"]] == ["invoice.send"]


@pytest.mark.parametrize(
    "name", ["Authorization", "cookie", "X-Api-Key", "X-Auth-Token", "X-Client-Secret", "Db-Password"]
)
async def test_header_with_the_name_of_a_secret_is_stored_as_one(api: Api, name: str) -> None:
    target = {"type": "http", "url": "https://a.example/run", "headers": {name: "hush", "X-Team": "a"}}
    made = await api.post("/schedules", {"name": "s", "when": {"every": "1h"}, "target": target})
    assert made.json()["target"]["headers"] == {"X-Team": "a"}
    assert made.json()["target"]["secret_headers"] == {name: "***"}
    [stored] = await api.app.store.list_schedules(ScheduleFilter("default"), 10)
    assert b"hush" not in (stored.draft.target_spec or b"")
    again = {"headers": {name: "other"}, "type": "http", "url": "https://a.example/run"}
    edited = await api.ask("PATCH", "/schedules/s", {"target": again})
    assert (edited.status_code, edited.json()["target"]["secret_headers"]) == (200, {name: "***"})
    moved = {"headers": {name: "***"}, "type": "http", "url": "https://thief.example/run"}
    refused(
        await api.ask("PATCH", "/schedules/s", {"target": moved}),
        422,
        "input_invalid",
        f"target.secret_headers.{name}",
    )


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"headers": {"Authorization": "Bearer x"}}, "target.headers.Authorization"),
        ({"secret_headers": {"X-Key": "x"}}, "target.secret_headers.X-Key"),
        ({"signing_secret": "whsec_" + "QUFB" * 11}, "target.signing_secret"),
    ],
)
async def test_secret_is_refused_without_a_key_and_the_error_names_its_field(
    fields: dict[str, Any], field: str
) -> None:
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, Settings())) as client:
        api = Api(app, client)
        target = {"type": "http", "url": "https://a.example/run", **fields}
        problem = refused(await api.post("/jobs", {"target": target}), 422, "input_invalid", field)
        assert "DUETIME_SECRET_KEYS" in problem["detail"]
    await app.close()


@pytest.mark.parametrize(
    ("url", "settings", "accepted"),
    [
        ("http://mock-agent:5678", {}, False),
        ("http://mock-agent", {}, False),
        ("https://agent.example:5678", {}, False),
        ("http://10.0.0.1", {}, False),
        ("http://127.0.0.1:5678", {}, False),
        ("http://agent.example", {"plain_http": False}, False),
        ("https://agent.example", {}, True),
        ("https://agent.example:5678", {"allow_ports": (5678,)}, True),
        ("http://mock-agent:5678", {"allow": ("mock-agent",)}, True),
        ("http://mock-agent:5678", {"allow": ("172.16.0.0/12",)}, True),
    ],
)
async def test_target_that_cannot_be_called_is_refused_when_it_is_created(
    url: str, settings: dict[str, Any], accepted: bool
) -> None:
    app = dt.App("memory://")
    await app.open()
    key = (await app.keys.create("k", ["manage"])).text
    async with client_of(build(app, replace(Settings(), auth="keys", **settings), ring=RING)) as client:
        api, authorization = Api(app, client), {"authorization": f"Bearer {key}"}
        target = {"type": "http", "url": url}
        schedule = {"name": "s", "when": {"every": "1h"}, "target": target}
        agent = {"name": "a", "cronExpression": "0 9 * * *", "agentId": "x", "agentUrl": url}
        answers = [
            (await api.post("/jobs", {"target": target}, **authorization), "target.url"),
            (await api.post("/schedules", schedule, **authorization), "target.url"),
            (await client.post("/api/schedules", json=agent, headers=authorization), "agentUrl"),
        ]
        for found, field in answers:
            if accepted:
                assert found.status_code == 201, found.text
            else:
                detail = refused(found, 422, "target_not_allowed", field)["detail"]
                assert "DUETIME_ALLOW" in detail
    await app.close()


async def test_admin_reads_the_secret_that_signs_calls_to_a_host(agent: EchoAgent) -> None:
    app = dt.App("memory://")
    app.use_target(HTTP, lambda now: HttpHandler(now, Egress.parse(local=True), RING))
    async with app.running(), client_of(build(app, replace(Settings(), auth="keys"), ring=RING)) as client:
        keys = {scope: (await app.keys.create(scope, [scope])).text for scope in ("manage", "admin")}
        api = Api(app, client)
        path = f"/targets/signing-secrets?url={agent.url}/run"
        refused(await api.get(path, authorization=f"Bearer {keys['manage']}"), 403, "scope_missing")
        found = (await api.get(path, authorization=f"Bearer {keys['admin']}")).json()
        assert found["origin"] == agent.url
        spec = HttpTarget.from_json({"url": f"{agent.url}/run"}).to_spec()
        made = await app.jobs.submit_request(JobRequest(dt.NewJob(HTTP, payload={}), spec))
        await (await app.get_job(made.id)).wait(timeout="60s")
        [call] = agent.calls
        Webhook(found["secrets"][0]).verify(call.body, {name.lower(): value for name, value in call.headers})


async def test_409_names_the_remedy_of_http(api: Api) -> None:
    body = {"name": "s", "when": {"every": "1h"}, "target": {"type": "task", "name": "t"}}
    await api.post("/schedules", body)
    problem = refused(await api.post("/schedules", {**body, "queue": "other"}), 409, "schedule_exists")
    assert "replace=True" not in problem["detail"]
    assert "PATCH" in problem["detail"]
