"""POST /targets/test calls as a job would, and no further; GET /tasks knows what can be submitted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.config import Settings
from duetime.invokers.http.echo import EchoAgent
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

    assert (await api.get("/tasks")).json()["items"] == [
        {"name": "invoice.send", "queue": "billing", "doc": "Send an invoice."}
    ]
    other = dt.App(api.app.store)

    @other.task("audit.run", queue="audits")
    async def run_audit() -> None: ...

    async with other.running():
        while (found := (await api.get("/tasks")).json()["items"])[0][
            "queue"
        ] != "audits":  # its node says so in its own time
            await api.app.store.time()
    assert found[0] == {"name": "audit.run", "queue": "audits", "doc": None}
    assert [one["name"] for one in (await api.get("/tasks")).json()["items"]] == ["invoice.send"]
