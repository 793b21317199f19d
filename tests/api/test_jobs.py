"""Jobs over HTTP: every route of the design, and what each refuses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from duetime.model.lease import NodeDraft
from duetime.model.signing import report_token
from duetime.store import ClaimRequest, Lane
from tests.api.conftest import RING, TASK, Api, refused

MISSING = "01935c2e-7b3a-7000-8000-000000000000"
HTTP = {"type": "http", "url": "https://agent.example/run"}


async def test_a_submitted_job_can_be_read_where_location_says(api: Api) -> None:
    body = {
        "target": TASK,
        "payload": {"n": 1},
        "at": "2030-01-01T09:00:00+01:00",
        "queue": "billing",
        "priority": 8,
        "labels": {"a": "b"},
        "owner": "me",
        "timeout": "10m",
        "delivery": "at_most_once",
        "retry": {"max_attempts": 3},
        "unique_key": "k",
    }
    done = await api.post("/jobs", body)
    assert done.status_code == 201
    assert (done.json()["fire_time"], done.json()["created"]) == ("2030-01-01T08:00:00Z", True)
    assert done.headers["location"] == f"/api/v1/jobs/{done.json()['id']}"
    job = (await api.client.get(done.headers["location"])).json()
    assert job["target"] == TASK
    assert (job["payload"], job["queue"], job["priority"], job["labels"], job["owner"]) == (
        {"n": 1},
        "billing",
        8,
        {"a": "b"},
        "me",
    )
    assert (job["timeout"], job["delivery"], job["retry"]["max_attempts"], job["unique_key"]) == (
        "10m",
        "at_most_once",
        3,
        "k",
    )
    assert (job["state"], job["attempts"], job["result"]) == ("pending", [], None)


async def test_a_taken_unique_key_answers_with_the_job_that_has_it(api: Api) -> None:
    first = await api.submit(unique_key="k", delay="1h", priority=9)
    again = await api.post("/jobs", {"target": TASK, "unique_key": "k"})
    assert (again.status_code, again.json()["id"], again.json()["created"], again.json()["priority"]) == (
        200,
        first,
        False,
        9,
    )


async def test_an_http_target_is_stored_and_its_secrets_are_never_shown(api: Api) -> None:
    target = {**HTTP, "headers": {"X-Team": "a"}, "secret_headers": {"Authorization": "Bearer canary"}}
    job_id = await api.submit(target=target, payload=[1])
    row = (await api.app.get_job(job_id)).record
    assert (row.target, row.payload) == ("@http", b"[1]")
    assert b"canary" not in (row.target_spec or b"")
    shown = await api.get(f"/jobs/{job_id}")
    assert shown.json()["target"]["secret_headers"] == {"Authorization": "***"}
    assert "canary" not in shown.text + (await api.get("/jobs")).text


async def test_a_batch_is_stored_whole_or_not_at_all(api: Api) -> None:
    done = await api.post(
        "/jobs/batch",
        {"jobs": [{"target": TASK}, {"target": HTTP, "payload": 1}, {"target": TASK, "unique_key": "k"}]},
    )
    assert (done.status_code, len(done.json()["ids"]), done.json()["created"]) == (201, 3, 3)
    bad = await api.post(
        "/jobs/batch", {"jobs": [{"target": TASK}, {"target": TASK, "at": "2030-02-30T00:00:00Z"}]}
    )
    refused(bad, 422, "input_invalid", "jobs[1].at")
    bad = await api.post("/jobs/batch", {"jobs": [{"target": TASK}, {"target": TASK, "queue": "@x"}]})
    refused(bad, 422, "input_invalid")
    assert len((await api.get("/jobs")).json()["items"]) == 3
    refused(await api.post("/jobs/batch", {"jobs": []}), 422, "input_invalid", "jobs")


async def test_a_batch_has_room_for_ten_thousand_and_no_more(api: Api) -> None:
    one = b'{"target":{"type":"task","name":"a"},"payload":{"n":1},"labels":{"a":"b"}}'
    done = await api.post("/jobs/batch", b'{"jobs":[' + b",".join([one] * 10_000) + b"]}")
    assert (done.status_code, done.json()["created"]) == (201, 10_000)
    refused(
        await api.post("/jobs/batch", b'{"jobs":[' + b",".join([one] * 10_001) + b"]}"),
        422,
        "input_invalid",
        "jobs",
    )


async def test_jobs_are_paged_and_filtered(api: Api) -> None:
    for number in range(5):
        await api.submit(
            at=f"2030-01-0{number + 1}T00:00:00Z",
            queue="a" if number % 2 else "b",
            owner="me",
            labels={"n": str(number)},
        )
    seen: list[str] = []
    path = "/jobs?limit=2"
    while path:
        page = (await api.get(path)).json()
        seen += [item["labels"]["n"] for item in page["items"]]
        path = f"/jobs?limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert seen == ["4", "3", "2", "1", "0"]

    async def chosen(query: str) -> list[str]:
        answer = await api.get(f"/jobs?{query}")
        return [item["labels"]["n"] for item in answer.json()["items"]]

    assert await chosen("queue=a") == ["3", "1"]
    assert await chosen("state=pending&owner=me&label=n:2") == ["2"]
    assert await chosen("label=n:7") == []
    assert await chosen("state=dead") == []
    assert await chosen("due_after=2030-01-04T00:00:00Z&due_before=2030-01-05T00:00:00Z") == ["3"]
    assert await chosen("worker=unknown") == []
    assert await chosen("schedule=none") == []


async def test_cursor_is_valid_for_its_filter_and_listing_only(api: Api) -> None:
    for _ in range(3):
        await api.submit()
    cursor = (await api.get("/jobs?limit=1")).json()["next_cursor"]
    refused(await api.get(f"/jobs?limit=1&queue=x&cursor={cursor}"), 400, "cursor_invalid", "cursor")
    refused(await api.get(f"/schedules?cursor={cursor}"), 400, "cursor_invalid", "cursor")
    for other in (cursor[:-2] + "AA", "A", "ÿ", "%00", cursor + "A"):
        refused(await api.get(f"/jobs?limit=1&cursor={other}"), 400, "cursor_invalid", "cursor")
    assert (await api.get(f"/jobs?limit=2&cursor={cursor}")).status_code == 200


async def test_pending_job_is_rescheduled_run_and_cancelled_but_not_a_final_one(api: Api) -> None:
    job_id = await api.submit(delay="1h")
    moved = await api.ask("PATCH", f"/jobs/{job_id}", {"at": "2030-01-01T00:00:00Z", "priority": 9})
    assert (moved.json()["due_at"], moved.json()["priority"]) == ("2030-01-01T00:00:00Z", 9)
    assert (await api.post(f"/jobs/{job_id}/run")).json()["due_at"] < "2030"
    cancelled = await api.ask("DELETE", f"/jobs/{job_id}")
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    refused(await api.ask("DELETE", f"/jobs/{job_id}"), 409, "job_finished")
    refused(await api.ask("PATCH", f"/jobs/{job_id}", {"delay": "1s"}), 409, "job_finished")
    refused(await api.post(f"/jobs/{job_id}/run"), 409, "job_finished")
    refused(await api.post(f"/jobs/{job_id}/retry"), 409, "job_finished")
    refused(await api.ask("PATCH", f"/jobs/{job_id}", {}), 422, "input_invalid")


@pytest.mark.parametrize(
    "route",
    [
        "GET ",
        "DELETE ",
        "PATCH ",
        "POST /run",
        "POST /retry",
        "POST /complete",
        "POST /fail",
        "POST /heartbeat",
    ],
)
async def test_unknown_job_is_not_found(api: Api, route: str) -> None:
    method, _, rest = route.partition(" ")
    bodies: dict[str, Any] = {
        "": {"delay": "1s"} if method == "PATCH" else None,
        "/complete": {"token": "x"},
        "/heartbeat": {"token": "x"},
        "/fail": {"token": "x", "error": "e"},
    }
    refused(await api.ask(method, f"/jobs/{MISSING}{rest}", bodies.get(rest)), 404, "job_not_found")
    refused(await api.ask(method, f"/jobs/no-id{rest}", bodies.get(rest)), 404, "job_not_found")


async def test_a_dead_letter_is_retried_as_a_new_job(api: Api) -> None:
    job_id = await api.submit()
    token = await claimed(api, job_id)
    failed = await api.post(
        f"/jobs/{job_id}/fail", {"token": token, "error": "no such customer", "retry": False}
    )
    assert (failed.json()["state"], failed.json()["error"]) == ("dead", "no such customer")
    again = await api.post(f"/jobs/{job_id}/retry", {"payload": {"customer": "c2"}})
    assert (again.status_code, again.json()["retry_of"], again.json()["payload"]) == (
        201,
        job_id,
        {"customer": "c2"},
    )
    assert again.headers["location"].endswith(again.json()["id"])


async def test_a_report_needs_the_token_of_the_attempt_that_runs(api: Api) -> None:
    job_id = await api.submit(retry={"max_attempts": 3, "first_delay": "0s"})
    first = await claimed(api, job_id)
    other = report_token(RING, "default", UUID(MISSING), 1)
    for wrong in ("x", "1.00", other):
        refused(await api.post(f"/jobs/{job_id}/complete", {"token": wrong}), 403, "token_invalid", "token")
    assert (await api.post(f"/jobs/{job_id}/fail", {"token": first, "error": "later"})).json()[
        "state"
    ] == "pending"
    refused(await api.post(f"/jobs/{job_id}/complete", {"token": first}), 409, "fenced")
    second = await claimed(api, job_id)
    refused(await api.post(f"/jobs/{job_id}/complete", {"token": first}), 409, "fenced")
    done = await api.post(f"/jobs/{job_id}/complete", {"token": second, "result": {"sent": True}})
    assert (done.json()["state"], done.json()["result"], len(done.json()["attempts"])) == (
        "succeeded",
        {"sent": True},
        1,
    )
    refused(await api.post(f"/jobs/{job_id}/complete", {"token": second}), 409, "job_finished")


async def claimed(api: Api, job_id: str, tenant: str = "default") -> str:
    """Have a node take the job; answers the token of the attempt."""
    store = api.app.store
    node = await store.join(NodeDraft("n", ("worker",), "0"), 60_000_000)
    [job], _ = await store.claim(
        ClaimRequest(node, (Lane("default", 5, 0, tenant),), ("invoice.send",), 1, 0)
    )
    assert str(job.id) == job_id
    token = report_token(RING, job.tenant, job.id, job.attempt)
    assert token is not None
    return token


async def test_answer_warns_of_a_task_that_no_node_has_had(api: Api) -> None:
    unknown = {"type": "task", "name": "report.biuld"}
    warning = "no node has had the task 'report.biuld' so far: its jobs wait until one has"
    assert (await api.post("/jobs", {"target": unknown, "delay": "1h"})).json()["warning"] == warning
    assert (await api.post("/jobs", {"target": HTTP, "delay": "1h"})).json()["warning"] is None
    batch = {"jobs": [{"target": unknown, "delay": "1h"}, {"target": HTTP, "delay": "1h"}] * 2}
    assert (await api.post("/jobs/batch", batch)).json()["warnings"] == [warning]
    schedule = {"name": "daily", "when": {"every": "1d"}, "target": unknown}
    assert (await api.post("/schedules/plan", schedule)).json()["warnings"][-1] == warning
    assert (await api.post("/schedules", schedule)).json()["warning"] == warning


async def test_strict_service_refuses_a_task_that_no_node_has_had(api: Api) -> None:
    api.app.use_strict_tasks(True)
    body = {"target": {"type": "task", "name": "report.biuld"}}
    refused(await api.post("/jobs", body), 422, "task_unknown", "task")
    refused(await api.post("/jobs/batch", {"jobs": [body]}), 422, "task_unknown", "task")
    refused(
        await api.post("/schedules", {**body, "name": "daily", "when": {"every": "1d"}}), 422, "task_unknown"
    )
