"""The task scheduler's own routes, as its document prints them (T1); and the guards that hold for both
sets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.config import Settings
from tests.api.conftest import RING, Api, client_of, refused
from tests.api.documented_requests import (
    CANCEL_JOB,
    CREATE,
    DELETE,
    HEALTH,
    HISTORY,
    LIST,
    LIST_EXECUTIONS,
    LIST_JOBS,
    READ,
    READ_JOB,
    SUBMIT_JOB,
    UPDATE,
    Seeds,
)

JOB = {"user_id": "u003", "task": "report.build", "payload": {"customer": "c1"}}


@pytest.fixture
async def seeds(api: Api) -> Seeds:
    return Seeds(api)


async def submit(seeds: Seeds, **fields: Any) -> dict[str, Any]:
    done = await seeds.send(SUBMIT_JOB, {**JOB, **fields})
    assert done.status_code == 201, done.text
    made: dict[str, Any] = done.json()
    return made


async def test_every_documented_request_of_the_task_scheduler_is_answered(seeds: Seeds) -> None:
    made = await submit(seeds, next_run_time="2040-01-01T00:00:00Z")
    assert (made["status"], made["user_id"], made["frequency"]) == ("pending", "u003", "once")
    assert made["next_run_time"] == "2040-01-01T00:00:00Z"
    assert (await seeds.send(READ_JOB, job_id=made["job_id"])).json() == made
    assert (await seeds.send(LIST_JOBS)).json() == {"jobs": [made], "next_cursor": None}
    assert (await seeds.send(LIST_EXECUTIONS)).json() == {"executions": [], "next_cursor": None}
    gone = await seeds.send(CANCEL_JOB, job_id=made["job_id"])
    assert (gone.status_code, gone.json()["status"], gone.json()["next_run_time"]) == (200, "cancelled", None)
    assert (await seeds.send(READ_JOB, job_id=made["job_id"])).json()["status"] == "cancelled"
    assert (await seeds.send(LIST_JOBS)).json()["jobs"] == []
    refused(await seeds.send(CANCEL_JOB, job_id=made["job_id"]), 409, "job_finished")
    refused(await seeds.send(READ_JOB, job_id="01935c2e-7b3a-7000-8000-000000000000"), 404, "job_not_found")


@pytest.mark.parametrize(
    ("frequency", "when"),
    [
        ("10m", {"every": "10m"}),
        ("0 9 * * *", {"cron": "0 9 * * *", "tz": "UTC"}),
        ("daily", {"cron": "@daily", "tz": "UTC"}),
    ],
)
async def test_a_periodic_job_is_a_schedule(seeds: Seeds, frequency: str, when: dict[str, str]) -> None:
    made = await submit(seeds, frequency=frequency)
    assert (made["status"], made["frequency"]) == ("pending", frequency)
    stored = (await seeds.v1.get(f"/schedules/{made['job_id']}")).json()
    assert (stored["when"], stored["owner"], stored["overlap"], stored["next_fire_time"]) == (
        when,
        "u003",
        "skip",
        made["next_run_time"],
    )
    assert (await seeds.send(READ_JOB, job_id=made["job_id"])).json() == made
    assert [one["job_id"] for one in (await seeds.send(LIST_JOBS)).json()["jobs"]] == [made["job_id"]]
    gone = await seeds.send(CANCEL_JOB, job_id=made["job_id"])
    assert (gone.status_code, gone.json()["status"]) == (200, "cancelled")
    again = (await seeds.send(READ_JOB, job_id=made["job_id"])).json()
    assert again == gone.json()
    assert again["created_at"] == made["created_at"]
    refused(await seeds.v1.get(f"/schedules/{made['job_id']}"), 404, "schedule_not_found")


async def test_executions_of_a_periodic_job_are_not_listed_as_jobs(seeds: Seeds) -> None:
    made = await submit(seeds, frequency="1h")
    await seeds.v1.post(f"/schedules/{made['job_id']}/trigger")
    assert [one["job_id"] for one in (await seeds.send("GET /jobs")).json()["jobs"]] == [made["job_id"]]


async def test_plain_listings_are_paged(seeds: Seeds) -> None:
    periodic = {(await submit(seeds, frequency="1h"))["job_id"] for _ in range(3)}
    once = {(await submit(seeds))["job_id"] for _ in range(3)}
    await submit(seeds, user_id="another")
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = (await seeds.send(f"GET /jobs?user_id=u003&limit=2{cursor and f'&cursor={cursor}'}")).json()
        seen += [one["job_id"] for one in page["jobs"]]
        cursor = page["next_cursor"]
    assert (len(seen), set(seen)) == (6, periodic | once)
    for status, count in (("pending", 7), ("paused", 0), ("completed", 0), ("running", 0)):
        assert len((await seeds.send(f"GET /jobs?status={status}")).json()["jobs"]) == count
    first = (await seeds.send("GET /jobs?limit=1")).json()["next_cursor"]
    refused(await seeds.send(f"GET /jobs?limit=1&user_id=u003&cursor={first}"), 400, "cursor_invalid")


async def test_running_executions_of_a_worker_are_listed(seeds: Seeds) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    @seeds.app.task("report.build", retry=dt.Retry(max_attempts=1))
    async def build_report(customer: str) -> dict[str, str]:
        entered.set()
        await leave.wait()
        if customer == "bad":
            raise ValueError("no such customer")
        return {"for": customer}

    async with seeds.app.running(name="w001"):
        made = await submit(seeds)
        await entered.wait()
        [running] = (await seeds.send(LIST_EXECUTIONS)).json()["executions"]
        assert (running["job_id"], running["worker_id"], running["status"], running["attempt"]) == (
            made["job_id"],
            "w001",
            "running",
            1,
        )
        assert running["started_at"] >= made["created_at"]
        shown = (await seeds.send(READ_JOB, job_id=made["job_id"])).json()
        assert (shown["status"], shown["worker_id"], shown["next_run_time"]) == ("running", "w001", None)
        assert running["scheduled_time"] <= shown["started_at"]
        assert running["started_at"] == shown["started_at"]
        assert (await seeds.send("GET /job/executions?worker_id=w002")).json()["executions"] == []
        leave.set()
        await (await seeds.app.get_job(made["job_id"])).wait(timeout="60s")
        bad = await submit(seeds, payload={"customer": "bad"})
        await (await seeds.app.get_job(bad["job_id"])).wait(timeout="60s")
    done = (await seeds.send(READ_JOB, job_id=made["job_id"])).json()
    assert (done["status"], done["output"], done["error"]) == ("completed", {"for": "c1"}, None)
    failed = (await seeds.send(READ_JOB, job_id=bad["job_id"])).json()
    assert (failed["status"], failed["retry_count"]) == ("failed", 0)
    assert "no such customer" in failed["error"]
    assert [one["job_id"] for one in (await seeds.send("GET /jobs?status=failed")).json()["jobs"]] == [
        bad["job_id"]
    ]


async def test_a_job_may_call_a_url(seeds: Seeds) -> None:
    done = await seeds.send(
        SUBMIT_JOB,
        {"url": "https://a.example/run", "method": "PUT", "headers": {"X-A": "1"}, "max_retries": 0},
    )
    job = (await seeds.v1.get(f"/jobs/{done.json()['job_id']}")).json()
    assert (job["target"]["url"], job["target"]["method"], job["retry"]["max_attempts"]) == (
        "https://a.example/run",
        "PUT",
        1,
    )
    assert job["payload"] is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"task": ...}, "task"),
        ({"url": "https://a.example/run"}, "task"),
        ({"task": ..., "url": "ftp://a"}, "url"),
        ({"method": "GET"}, "method"),
        ({"task": "@x"}, "task"),
        ({"frequency": "sometimes"}, "frequency"),
        ({"frequency": ""}, "frequency"),
        ({"next_run_time": "tomorrow"}, "next_run_time"),
        ({"user_id": " x"}, "user_id"),
        ({"payload": [1]}, "payload"),
        ({"max_retries": -1}, "max_retries"),
        ({"cron": "* * * * *"}, "cron"),
    ],
)
async def test_error_of_a_plain_job_names_the_field_of_the_caller(
    seeds: Seeds, fields: dict[str, Any], field: str
) -> None:
    body = {name: value for name, value in {**JOB, **fields}.items() if value is not ...}
    answer = await seeds.send(SUBMIT_JOB, body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_missing_body_is_explained(seeds: Seeds) -> None:
    assert (await seeds.send(SUBMIT_JOB)).status_code in (415, 422)


async def test_compatible_routes_check_keys_scopes_and_tenants() -> None:
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, replace(Settings(), auth="keys"), ring=RING)) as client:
        seeds = Seeds(Api(app, client))

        async def key(tenant: str, scope: str) -> dict[str, str]:
            return {
                "authorization": f"Bearer {(await app.for_tenant(tenant).keys.create('k', [scope])).text}"
            }

        mine, theirs = await key("a", "manage"), await key("b", "manage")
        made = (await seeds.send(CREATE, headers=mine)).json()
        job = (await seeds.send(SUBMIT_JOB, JOB, mine)).json()
        periodic = (await seeds.send(SUBMIT_JOB, {**JOB, "frequency": "1h"}, mine)).json()
        for request in (
            CREATE,
            LIST,
            READ,
            UPDATE,
            DELETE,
            HISTORY,
            HEALTH,
            READ_JOB,
            CANCEL_JOB,
            LIST_JOBS,
            LIST_EXECUTIONS,
        ):
            assert (await seeds.send(request, id=made["id"], job_id=job["job_id"])).status_code == 401, (
                request
            )
        for request in (READ, UPDATE, DELETE, HISTORY):
            refused(await seeds.send(request, headers=theirs, id=made["id"]), 404, "schedule_not_found")
        for job_id in (job["job_id"], periodic["job_id"]):
            for request in (READ_JOB, CANCEL_JOB):
                refused(await seeds.send(request, headers=theirs, job_id=job_id), 404, "job_not_found")
        assert (await seeds.send(LIST, headers=theirs)).json() == []
        assert (await seeds.send(LIST_JOBS, headers=theirs)).json()["jobs"] == []
        submitter, reader = await key("a", "submit"), await key("a", "read")
        assert (await seeds.send(SUBMIT_JOB, JOB, submitter)).status_code == 201
        for request in (CREATE, UPDATE, DELETE):
            refused(await seeds.send(request, headers=submitter, id=made["id"]), 403, "scope_missing")
        refused(await seeds.send(SUBMIT_JOB, {**JOB, "frequency": "1h"}, submitter), 403, "scope_missing")
        refused(await seeds.send(SUBMIT_JOB, JOB, reader), 403, "scope_missing")
        assert (await seeds.send(LIST, headers=reader)).status_code == 200
    await app.close()
