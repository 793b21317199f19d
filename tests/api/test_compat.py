"""The agent scheduler's own routes: every request its document prints, sent as printed, and what a client of
it expects back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.cli.commands.doctor import foreign_names
from duetime.config_sources import load
from duetime.errors import StoreUnavailable
from duetime.invokers.http.echo import EchoAgent
from duetime.invokers.http.handler import HttpHandler
from duetime.model.url import Egress
from tests.api.conftest import RING, Api, client_of, refused
from tests.api.documented_requests import (
    CREATE,
    CREATE_BY_CURL,
    DELETE,
    ENVIRONMENT,
    EXECUTION_FIELDS,
    EXPRESSIONS,
    HEALTH,
    HISTORY,
    LIST,
    LIST_BY_CURL,
    READ,
    SUBMIT_JOB,
    UPDATE,
    Seeds,
    parsed,
)


@pytest.fixture
async def seeds(api: Api) -> Seeds:
    return Seeds(api)


async def test_every_documented_request_of_the_agent_scheduler_is_answered(seeds: Seeds) -> None:
    created = await seeds.send(CREATE)
    assert created.status_code == 201
    made = created.json()
    assert {
        **json.loads(parsed(CREATE).body),
        "headers": {"Authorization": "***"},
        **{name: made[name] for name in ("id", "missed", "createdAt", "updatedAt")},
    } == made
    assert (await seeds.send(LIST)).json() == [made]
    assert (await seeds.send(LIST_BY_CURL)).json() == [made]
    assert (await seeds.send(READ, id=made["id"])).json() == made
    updated = await seeds.send(UPDATE, id=made["id"])
    assert (updated.status_code, updated.json()["enabled"], updated.json()["name"]) == (
        200,
        False,
        "Daily Report Agent",
    )
    history = await seeds.send(HISTORY, id=made["id"])
    assert (history.status_code, history.json()) == (200, [])
    other = await seeds.send(CREATE_BY_CURL)
    assert (other.status_code, other.json()["agentUrl"], other.json()["enabled"]) == (
        201,
        "http://mock-agent:5678",
        True,
    )
    assert len((await seeds.send(LIST)).json()) == 2
    removed = await seeds.send(DELETE, id=made["id"])
    assert (removed.status_code, removed.json()["success"]) == (200, True)
    for request in (READ, UPDATE, HISTORY, DELETE):
        refused(await seeds.send(request, id=made["id"]), 404, "schedule_not_found")


async def test_health_reports_database_and_lock_backend(
    seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (await seeds.send(HEALTH)).json()
    assert (found["status"], found["services"]["database"], found["services"]["redis"]) == (
        "healthy",
        "connected",
        "not used",
    )

    async def away(*_: Any) -> Any:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(seeds.app.store, "get_record", away)
    down = await seeds.send(HEALTH)
    assert (down.status_code, down.json()["status"]) == (503, "unhealthy")
    assert down.json()["services"] == {
        "database": "disconnected",
        "locks": "disconnected",
        "redis": "not used",
    }


@pytest.mark.parametrize("expression", EXPRESSIONS)
async def test_every_documented_expression_is_understood(seeds: Seeds, expression: str) -> None:
    assert (await seeds.create(cronExpression=expression))["cronExpression"] == expression


async def test_agent_schedule_has_documented_defaults(seeds: Seeds) -> None:
    made = await seeds.create(
        httpMethod=..., headers=..., payload=..., retryPolicy={"maxAttempts": 7}, enabled=...
    )
    assert (made["httpMethod"], made["headers"], made["payload"], made["enabled"]) == ("POST", {}, None, True)
    assert made["retryPolicy"] == {
        "maxAttempts": 7,
        "backoffMultiplier": 2,
        "initialDelayMs": 1000,
        "maxDelayMs": 30000,
    }
    stored = (await seeds.v1.get(f"/schedules/{made['id']}")).json()
    assert stored["retry"] == {
        "max_attempts": 7,
        "first_delay": "1s",
        "multiplier": 2,
        "max_delay": "30s",
        "jitter": False,
    }


async def test_agent_schedule_is_the_same_in_v1(seeds: Seeds) -> None:
    """Nothing is stored twice: what is changed on one side is seen on the other."""
    made = await seeds.create()
    found = (await seeds.v1.get(f"/schedules/{made['id']}")).json()
    assert (found["name"], found["when"]) == ("Daily Report Agent", {"cron": "0 9 * * *", "tz": "UTC"})
    assert found["target"]["headers"] == {"X-Agent-Id": "report-agent-001"}
    assert found["target"]["secret_headers"] == {"Authorization": "***"}
    await seeds.v1.ask(
        "PATCH", f"/schedules/{made['id']}", {"payload": {"reportType": "weekly"}, "paused": True}
    )
    seen = (await seeds.send(READ, id=made["id"])).json()
    assert (seen["payload"], seen["enabled"]) == ({"reportType": "weekly"}, False)
    assert (await seeds.update(made["id"], enabled=True)).json()["enabled"]
    assert not (await seeds.v1.get(f"/schedules/{made['id']}")).json()["paused"]


async def test_every_schedule_of_v1_is_shown(seeds: Seeds) -> None:
    target = {
        "type": "http",
        "url": "https://a.example/run",
        "method": "PUT",
        "secret_headers": {"X-Key": "hush"},
    }
    await seeds.v1.post("/schedules", {"name": "a", "when": {"every": "10m"}, "target": target})
    await seeds.v1.post(
        "/schedules",
        {
            "name": "b",
            "when": {"cron": "0 9 * * *", "tz": "Europe/Berlin"},
            "target": {"type": "task", "name": "t"},
        },
    )
    first, second = (await seeds.send(LIST)).json()
    assert (first["cronExpression"], first["httpMethod"], first["headers"], first["agentId"]) == (
        "@every 10m",
        "PUT",
        {"X-Key": "***"},
        "",
    )
    assert (second["agentId"], second["agentUrl"]) == ("t", "task:t")
    changed = await seeds.update(first["id"], headers={"X-Key": "***", "X-Team": "billing"}, payload={"n": 1})
    assert changed.json()["headers"] == {"X-Team": "billing", "X-Key": "***"}
    assert (await seeds.v1.get("/schedules/a")).json()["target"]["secret_headers"] == {"X-Key": "***"}
    refused(await seeds.update(second["id"], agentId="x"), 409, "conflict")
    moved = await seeds.update(second["id"], cronExpression="0 10 * * *")
    assert (moved.json()["cronExpression"], moved.json()["agentUrl"]) == ("0 10 * * *", "task:t")
    assert (await seeds.v1.get("/schedules/b")).json()["when"] == {
        "cron": "0 10 * * *",
        "tz": "Europe/Berlin",
    }
    agent = (await seeds.update(second["id"], agentUrl="https://b.example", agentId="x")).json()
    assert (agent["agentUrl"], agent["agentId"], agent["payload"]) == ("https://b.example", "x", {})


async def test_sending_back_an_answer_changes_nothing(seeds: Seeds) -> None:
    made = await seeds.create()
    same = {name: value for name, value in made.items() if name not in ("id", "createdAt", "updatedAt")}
    assert (await seeds.update(made["id"], **same)).json() == made
    assert (await seeds.v1.get(f"/schedules/{made['id']}")).json()["version"] == 1
    changed = (
        await seeds.update(made["id"], **{**same, "agentId": "other", "retryPolicy": {"maxDelayMs": 60_000}})
    ).json()
    assert (changed["agentId"], changed["headers"]) == ("other", made["headers"])
    assert changed["retryPolicy"] == {**made["retryPolicy"], "maxDelayMs": 60_000}
    assert (await seeds.update(made["id"])).json() == changed


async def test_two_schedules_may_have_one_name_and_names_may_change(seeds: Seeds) -> None:
    first, second = await seeds.create(), await seeds.create()
    assert (first["name"], second["name"]) == ("Daily Report Agent", "Daily Report Agent")
    assert first["id"] != second["id"]
    renamed = (await seeds.update(first["id"], name="Weekly")).json()
    assert (renamed["id"], renamed["name"]) == (first["id"], "Weekly")
    assert sorted(one["name"] for one in (await seeds.send(LIST)).json()) == ["Daily Report Agent", "Weekly"]


async def test_a_repeated_request_creates_one_schedule(seeds: Seeds) -> None:
    answers = [await seeds.send(CREATE, headers={"idempotency-key": "k1"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len((await seeds.send(LIST)).json()) == 1


async def test_repeated_request_finds_the_schedule_of_a_dead_process(
    seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of the answer was never written: another process does it again, and nothing is there
    twice."""
    store = seeds.app.store
    put = store.put_record

    async def dies(
        kind: str,
        tenant: str,
        key: str,
        value: bytes,
        expect: int | None = None,
        expires_at: int | None = None,
    ) -> int:
        if b'"status"' in value:
            raise StoreUnavailable("gone")
        return await put(kind, tenant, key, value, expect, expires_at)

    monkeypatch.setattr(store, "put_record", dies)
    monkeypatch.setattr("duetime.api.idempotency.TAKEOVER_TIMEOUT", 0)
    requests: list[tuple[str, Any]] = [(CREATE, None), (SUBMIT_JOB, {"task": "t", "frequency": "10m"})]
    for key, (request, body) in enumerate(requests):
        assert (await seeds.send(request, body, {"idempotency-key": f"k{key}"})).status_code == 503
    monkeypatch.undo()
    monkeypatch.setattr("duetime.api.idempotency.TAKEOVER_TIMEOUT", 0)
    for key, (request, body) in enumerate(requests):
        assert (await seeds.send(request, body, {"idempotency-key": f"k{key}"})).status_code == 201
    names = [one["name"] for one in (await seeds.v1.get("/schedules")).json()["items"]]
    assert (len(names), "Daily Report Agent" in names) == (2, True)


async def test_long_list_continues_at_its_link(seeds: Seeds) -> None:
    for number in range(3):
        await seeds.create(name=f"s{number}")
    page = await seeds.send("GET /api/schedules?limit=2")
    assert [one["name"] for one in page.json()] == ["s0", "s1"]
    following = page.headers["link"].removeprefix("<").partition(">")[0]
    last = await seeds.send(f"GET {following}")
    assert [one["name"] for one in last.json()] == ["s2"]
    assert "link" not in last.headers


async def test_list_without_a_limit_has_all_schedules(seeds: Seeds) -> None:
    assert (await seeds.send(LIST)).json() == []
    for number in range(1_001):
        await seeds.app.schedule(f"s{number}", "t", dt.Every("1h"))
    assert len({one["id"] for one in (await seeds.send(LIST)).json()}) == 1_001


async def test_name_may_have_255_characters(seeds: Seeds) -> None:
    made, other = await seeds.create(name="n" * 255), await seeds.create(name="n" * 255)
    assert made["id"] != other["id"]
    assert (await seeds.send(READ, id=made["id"])).json()["name"] == "n" * 255
    assert (await seeds.update(made["id"], name="m" * 255)).json()["name"] == "m" * 255
    body = {**json.loads(parsed(CREATE).body), "name": "n" * 256}
    refused(await seeds.send("POST /api/schedules", body), 422, "input_invalid", "name")


async def test_policy_for_missed_fires_can_be_chosen(seeds: Seeds) -> None:
    made = await seeds.create(missed="all")
    assert made["missed"] == "all"
    assert (await seeds.v1.get(f"/schedules/{made['id']}")).json()["missed"]["policy"] == "all"
    assert (await seeds.update(made["id"], missed="skip")).json()["missed"] == "skip"
    periodic = {"task": "t", "frequency": "10m", "missed": "skip"}
    job = (await seeds.send(SUBMIT_JOB, periodic)).json()
    assert (await seeds.v1.get(f"/schedules/{job['job_id']}")).json()["missed"]["policy"] == "skip"
    refused(await seeds.send(SUBMIT_JOB, {"task": "t", "missed": "skip"}), 422, "input_invalid", "missed")


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"cronExpression": "61 * * * *"}, "when_invalid", "cronExpression"),
        ({"cronExpression": "0 0 30 2 *"}, "when_never_fires", "cronExpression"),
        ({"cronExpression": 5}, "input_invalid", "cronExpression"),
        ({"agentUrl": "not-a-url"}, "input_invalid", "agentUrl"),
        ({"agentUrl": ...}, "input_invalid", "agentUrl"),
        ({"agentId": "a\nb"}, "input_invalid", "agentId"),
        ({"agentId": ""}, "input_invalid", "agentId"),
        ({"httpMethod": "STEAL"}, "input_invalid", "httpMethod"),
        ({"headers": {"Host": "x"}}, "input_invalid", "headers.Host"),
        ({"headers": {"x-agent-id": "x"}}, "input_invalid", "headers.X-Agent-Id"),
        ({"headers": {"A": 1}}, "input_invalid", "headers.A"),
        ({"retryPolicy": {"maxAttempts": 0}}, "input_invalid", "retryPolicy.maxAttempts"),
        ({"retryPolicy": {"maxAttempts": True}}, "input_invalid", "retryPolicy.maxAttempts"),
        ({"retryPolicy": {"retries": 3}}, "input_invalid", "retryPolicy.retries"),
        ({"enabled": "yes"}, "input_invalid", "enabled"),
        ({"name": " x"}, "input_invalid", "name"),
        ({"timezone": "UTC"}, "input_invalid", "timezone"),
        ({"cron_expression": "0 9 * * *"}, "input_invalid", "cron_expression"),
    ],
)
async def test_error_names_the_field_of_the_caller(
    seeds: Seeds, fields: dict[str, Any], code: str, field: str
) -> None:
    wanted = {**json.loads(parsed(CREATE).body), **fields}
    body = {name: value for name, value in wanted.items() if value is not ...}
    refused(await seeds.send("POST /api/schedules", body), 422, code, field)
    if ... not in fields.values():
        made = await seeds.create()
        refused(await seeds.update(made["id"], **fields), 422, code, field)


@pytest.fixture
async def agent() -> AsyncIterator[EchoAgent]:
    async with EchoAgent() as found:
        yield found


async def run_now(seeds: Seeds, schedule_id: str) -> dict[str, Any]:
    """The execution of a schedule that was triggered, once it has ended."""
    seeds.app.use_target("@http", lambda now: HttpHandler(now, Egress.parse(local=True), RING))
    job = (await seeds.v1.post(f"/schedules/{schedule_id}/trigger")).json()
    async with seeds.app.running(name="w001"):
        await (await seeds.app.get_job(job["id"])).wait(timeout="60s")
    [found] = (await seeds.send(HISTORY, id=schedule_id)).json()
    assert list(found) == EXECUTION_FIELDS
    assert (found["id"], found["scheduleId"], found["fireTime"]) == (job["id"], schedule_id, job["fire_time"])
    return dict(found)


async def test_the_agent_is_called_and_its_answer_is_in_the_history(seeds: Seeds, agent: EchoAgent) -> None:
    made = await seeds.create(agentUrl=f"{agent.url}/run")
    found = await run_now(seeds, made["id"])
    assert (found["status"], found["attempts"], found["error"]) == ("SUCCESS", 1, None)
    assert found["fireTime"] <= found["startedAt"] <= found["completedAt"]
    assert json.loads(found["response"]["body"]) == {"reportType": "daily"}
    [call] = agent.calls
    assert (call.method, call.path, json.loads(call.body)) == ("POST", "/run", {"reportType": "daily"})
    assert (call.header("Authorization"), call.header("X-Agent-Id")) == (
        "Bearer token123",
        "report-agent-001",
    )


async def test_failing_agent_is_retried_by_its_policy(seeds: Seeds, agent: EchoAgent) -> None:
    policy = {"maxAttempts": 3, "backoffMultiplier": 2, "initialDelayMs": 1, "maxDelayMs": 5}
    made = await seeds.create(agentUrl=f"{agent.url}/status/503", retryPolicy=policy, payload=...)
    found = await run_now(seeds, made["id"])
    assert (found["status"], found["attempts"]) == ("FAILED", 3)
    assert "HTTP 503" in found["error"]
    assert [call.body for call in agent.calls] == [b"", b"", b""]
    rejected = await seeds.create(agentUrl=f"{agent.url}/status/400", retryPolicy=policy)
    assert (await run_now(seeds, rejected["id"]))["attempts"] == 1


async def test_planned_jobs_are_not_executions(seeds: Seeds) -> None:
    made = await seeds.create(cronExpression="* * * * * *")
    async with seeds.app.running(roles=["planner"], lookahead="1m"):
        while not (await seeds.v1.get(f"/jobs?schedule={made['id']}")).json()["items"]:
            await seeds.app.store.time()
    ahead = (await seeds.v1.get(f"/jobs?schedule={made['id']}&limit=1")).json()["items"][0]
    shown = (await seeds.send("GET /api/schedules/{id}/executions?limit=3", id=made["id"])).json()
    assert len(shown) <= 3
    assert ahead["id"] not in [one["id"] for one in shown]


def environment() -> dict[str, str]:
    lines = [line.partition("#")[0].strip() for line in ENVIRONMENT.splitlines()]
    return dict(line.split("=", 1) for line in lines if line)


def test_environment_of_the_agent_scheduler_is_read() -> None:
    found = load({}, environment())
    assert found.store == "postgresql://scheduler:scheduler123@localhost:5432/scheduler"
    assert (found.port, found.lease, found.retry_attempts, found.retry_delay) == (
        3000,
        "30000ms",
        3,
        "1000ms",
    )
    assert found.sources["port"] == "PORT"
    told = "\n".join(found.remarks)
    for name in ("SCHEDULER_TICK_INTERVAL", "REDIS_HOST", "REDIS_PORT", "NODE_ENV"):
        assert f"{name} has no effect: " in told
    assert load({}, {}).remarks == ()


def test_doctor_lists_values_from_the_environment() -> None:
    [told] = foreign_names(load({}, environment()))
    assert told.level == "ok"
    for words in (
        "port from PORT",
        "store from POSTGRES_HOST",
        "lease from LOCK_TTL",
        "REDIS_HOST has no effect",
    ):
        assert words in told.text
    assert list(foreign_names(load({}, {}))) == []


def test_own_settings_take_precedence() -> None:
    own = {
        "DUETIME_PORT": "9000",
        "DUETIME_STORE": "sqlite:///a.db",
        "DUETIME_LEASE": "20s",
        "DUETIME_RETRY_ATTEMPTS": "9",
    }
    found = load({"retry_delay": "7s"}, {**environment(), **own})
    assert (found.port, found.store, found.lease, found.retry_attempts, found.retry_delay) == (
        9000,
        "sqlite:///a.db",
        "20s",
        9,
        "7s",
    )


def test_store_of_an_app_is_not_replaced() -> None:
    found = load({"app": "tasks:app"}, environment())
    assert not found.given("store")
    assert "POSTGRES_HOST" in "\n".join(found.remarks)
    alone = load({}, {"POSTGRES_PASSWORD": "x"})
    assert not alone.given("store")
    assert alone.remarks == ("POSTGRES_PASSWORD has no effect without POSTGRES_HOST",)


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("PORT", "tcp://10.0.0.1:80", "PORT"),
        ("LOCK_TTL", "30s", "LOCK_TTL"),
        ("LOCK_TTL", "10", "lease"),
        ("MAX_RETRY_ATTEMPTS", "0", "from 1"),
    ],
)
def test_invalid_environment_values_are_refused(name: str, value: str, word: str) -> None:
    with pytest.raises(dt.ConfigError, match=word):
        load({}, {name: value})


async def test_retry_defaults_come_from_the_environment() -> None:
    app = dt.App("memory://")
    await app.open()
    settings = load({"store": "memory://"}, {"MAX_RETRY_ATTEMPTS": "8", "RETRY_BACKOFF_BASE": "250"})
    async with client_of(build(app, settings, ring=RING)) as client:
        made = (await Seeds(Api(app, client)).create(retryPolicy=...))["retryPolicy"]
        assert (made["maxAttempts"], made["initialDelayMs"]) == (8, 250)
    await app.close()


async def test_an_answer_can_be_changed_and_sent_back_whole(seeds: Seeds) -> None:
    made = await seeds.create(headers={"Authorization": "Bearer token123"})
    same = await seeds.update(made["id"], **made)
    assert (same.status_code, same.json()) == (200, made)
    changed = await seeds.update(made["id"], **(made | {"enabled": False, "createdAt": "", "id": "other"}))
    expected = made | {"enabled": False, "updatedAt": changed.json()["updatedAt"]}
    assert (changed.status_code, changed.json()) == (200, expected)
    refused(await seeds.send("POST /api/schedules", made), 422, "input_invalid", "id")


NO_AGENT = {"type": "http", "url": "https://agent.example/run"}
AGENT = {**NO_AGENT, "headers": {"X-Agent-Id": "a"}}
OTHER_SCHEDULES: dict[str, dict[str, Any]] = {
    "no id": {"target": NO_AGENT},
    "an empty id": {"target": {**AGENT, "headers": {"X-Agent-Id": ""}}},
    "a long id": {"target": {**AGENT, "headers": {"X-Agent-Id": "a" * 300}}},
    "an id in lower case": {"target": {**AGENT, "headers": {"x-agent-id": "a"}}},
    "a hidden id": {"target": {**NO_AGENT, "secret_headers": {"X-Agent-Id": "a"}}},
    "a raw body": {"target": {**AGENT, "body": "raw"}, "payload": "text"},
    "a task": {"target": {"type": "task", "name": "report"}},
    "a message": {"target": {"type": "publish", "destination": "orders"}},
    "a shadow": {"target": {"type": "shadow", "target": {"type": "task", "name": "report"}}},
    "long delays": {"target": AGENT, "retry": {"first_delay": "40d", "max_delay": "365d"}},
    "listed delays": {"target": AGENT, "retry": {"delays": ["1s"]}},
    "an empty title": {"target": AGENT, "labels": {"title": ""}},
    "an odd title": {"target": AGENT, "labels": {"title": " \n@" + "t" * 200}},
    "a rule": {"target": AGENT, "when": {"rrule": "FREQ=DAILY"}},
    "an instant": {"target": AGENT, "when": {"at": "2040-01-01T00:00:00Z"}},
}


@pytest.mark.parametrize("kind", OTHER_SCHEDULES)
async def test_answer_for_any_schedule_of_v1_can_be_sent_back_whole(seeds: Seeds, kind: str) -> None:
    fields = {"name": "other", "when": {"every": "10m"}, **OTHER_SCHEDULES[kind]}
    made = await seeds.v1.post("/schedules", fields)
    assert made.status_code == 201, made.text
    shown = (await seeds.send("GET /api/schedules/other")).json()
    same = await seeds.update(shown["id"], **shown)
    assert (same.status_code, same.json()) == (200, shown)
    assert (await seeds.v1.get("/schedules/other")).json()["version"] == 1
    paused = await seeds.update(shown["id"], **(shown | {"enabled": False}))
    assert (paused.status_code, paused.json()["enabled"]) == (200, False)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"agentId": ""}, "agentId"),
        ({"agentId": "a" * 256}, "agentId"),
        ({"name": ""}, "name"),
        ({"retryPolicy": {"initialDelayMs": 30 * 86_400_000 + 1}}, "retryPolicy.initialDelayMs"),
        ({"retryPolicy": {"maxDelayMs": 30 * 86_400_000 + 1}}, "retryPolicy.maxDelayMs"),
        ({"retryPolicy": {"maxDelayMs": -1}}, "retryPolicy.maxDelayMs"),
    ],
)
async def test_new_values_of_an_agent_schedule_are_checked(
    seeds: Seeds, change: dict[str, Any], field: str
) -> None:
    made = await seeds.create()
    refused(await seeds.update(made["id"], **change), 422, "input_invalid", field)
    assert (await seeds.send(READ, id=made["id"])).json() == made
    created = await seeds.send("POST /api/schedules", {**json.loads(parsed(CREATE).body), **change})
    refused(created, 422, "input_invalid", field)
