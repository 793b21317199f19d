"""Bulk routes, dead letters and their filters."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from duetime.app import bulk
from duetime.model.lease import NodeDraft
from duetime.store import ClaimRequest, Lane
from duetime.testing.conformance.drafts import death
from tests.api.conftest import TASK, Api, refused

SCHEDULE = {"when": {"every": "1h"}, "target": TASK}


async def letter(api: Api, error: str, **fields: Any) -> str:
    """A dead letter."""
    job_id = await api.submit(**fields)
    store = api.app.store
    node = await store.join(NodeDraft("n", ("worker",), "0"), 60_000_000)
    [claimed], _ = await store.claim(ClaimRequest(node, (Lane("default", 5, 0),), ("invoice.send",), 1, 0))
    await store.settle([death(claimed, await store.time(), error=error)])
    return job_id


async def test_bulk_acts_on_matching_jobs(api: Api) -> None:
    for number in range(3):
        await api.submit(delay="1h", queue="a", labels={"n": str(number)})
    await api.submit(delay="1h", queue="b")
    body = {"action": "cancel", "filter": {"queue": "a", "state": "pending", "label": None}}
    counted = (await api.post("/jobs/bulk", {**body, "dry_run": True})).json()
    assert counted == {"matched": 3, "at_least": False, "done": 0, "failed": [], "next_cursor": None}
    assert (await api.post("/jobs/bulk", body)).json() == {**counted, "done": 3}
    jobs = (await api.get("/jobs?queue=a")).json()["items"]
    assert {(job["state"], job["error"]) for job in jobs} == {("cancelled", "cancelled over the API")}
    missing = "01935c2e-7b3a-7000-8000-000000000000"
    done = (await api.post("/jobs/bulk", {"action": "run", "ids": [missing, jobs[0]["id"]]})).json()
    assert [(one["id"], one["code"]) for one in done["failed"]] == [
        (missing, "job_not_found"),
        (jobs[0]["id"], "job_finished"),
    ]


async def test_bulk_cursor_is_valid_for_the_same_request_only(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_ITEMS", 2)
    for _ in range(5):
        await api.submit(delay="1h")
    body = {"action": "cancel", "filter": {"queue": "default"}}
    cursor = (await api.post("/jobs/bulk", body)).json()["next_cursor"]
    for other in ({**body, "action": "run"}, {**body, "filter": {}}, {"action": "cancel", "ids": ["a"]}):
        refused(await api.post("/jobs/bulk", {**other, "cursor": cursor}), 400, "cursor_invalid", "cursor")
    refused(
        await api.post("/schedules/bulk", {"action": "pause", "filter": {}, "cursor": cursor}),
        400,
        "cursor_invalid",
        "cursor",
    )
    calls = 1
    while cursor:
        cursor = (await api.post("/jobs/bulk", {**body, "cursor": cursor})).json()["next_cursor"]
        calls += 1
    assert calls == 3
    assert {job["state"] for job in (await api.get("/jobs")).json()["items"]} == {"cancelled"}


async def test_bulk_acts_on_matching_schedules(api: Api) -> None:
    ids = [
        (await api.post("/schedules", {**SCHEDULE, "name": f"s{n}", "owner": "ann" if n else "bob"})).json()[
            "id"
        ]
        for n in range(3)
    ]
    done = await api.post(
        "/schedules/bulk", {"action": "pause", "filter": {"owner": "ann", "paused": False}, "note": "night"}
    )
    assert (done.json()["matched"], done.json()["done"]) == (2, 2)
    shown = (await api.get(f"/schedules/{ids[1]}")).json()
    assert (shown["paused"], shown["pause_note"]) == (True, "night")
    done = await api.post("/schedules/bulk", {"action": "resume", "ids": ["s1", "unknown"]})
    assert (done.json()["done"], [one["code"] for one in done.json()["failed"]]) == (
        1,
        ["schedule_not_found"],
    )
    done = await api.post("/schedules/bulk", {"action": "remove", "filter": {}})
    assert done.json()["done"] == 3
    assert (await api.get("/schedules")).json()["items"] == []


async def test_bulk_trigger_with_a_key_happens_once(api: Api) -> None:
    for number in range(3):
        await api.post("/schedules", {**SCHEDULE, "name": f"s{number}"})
    body = {"action": "trigger", "filter": {}}
    first = await api.post("/schedules/bulk", body, idempotency_key="k")
    again = await api.post("/schedules/bulk", body, idempotency_key="k")
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert len((await api.get("/jobs")).json()["items"]) == 3


async def test_bulk_trigger_finished_by_another_process_is_not_doubled(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first one stored has the same ids, although a schedule more is there by now."""
    for number in (1, 2):
        await api.post("/schedules", {**SCHEDULE, "name": f"s{number}"})
    body, store = {"action": "trigger", "filter": {}}, api.app.store
    put, calls = store.put_record, 0

    async def dies(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise RuntimeError("killed before the answer was kept")
        return await put(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(store, "put_record", dies)
        refused(await api.post("/schedules/bulk", body, idempotency_key="k"), 500, "internal")
    await api.post("/schedules", {**SCHEDULE, "name": "s0"})
    monkeypatch.setattr("duetime.api.idempotency.TAKEOVER_TIMEOUT", 0)
    assert (await api.post("/schedules/bulk", body, idempotency_key="k")).json()["done"] == 3
    assert sorted(job["schedule"] for job in (await api.get("/jobs")).json()["items"]) == ["s0", "s1", "s2"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "cancel"}, "filter"),
        ({"action": "cancel", "filter": {}, "ids": ["a"]}, "filter"),
        ({"action": "eat", "filter": {}}, "action"),
        ({"action": "cancel", "ids": []}, "ids"),
        ({"action": "cancel", "ids": ["a"] * 1_001}, "ids"),
        ({"action": "cancel", "filter": {"colour": "red"}}, "filter.colour"),
        ({"action": "cancel", "filter": {"label": "no colon"}}, "filter.label"),
        ({"action": "cancel", "filter": {"state": "lost"}}, "filter.state"),
        ({"action": "cancel", "filter": {}, "dry_run": 1}, "dry_run"),
        ({"action": "cancel", "filter": {"due_after": "2030-02-30T00:00:00Z"}}, "filter.due_after"),
    ],
)
async def test_invalid_bulk_request_is_refused(api: Api, body: Any, field: str) -> None:
    refused(await api.post("/jobs/bulk", body), 422, "input_invalid", field)


async def test_dead_letters_are_grouped_by_error(api: Api) -> None:
    first = await letter(api, "Traceback\nKeyError: 'a b'")
    second = await letter(api, "KeyError: 'c'")
    third = await letter(api, "no answer")
    groups = (await api.get("/dead")).json()
    assert [(one["error"], one["target"], one["count"]) for one in groups["items"]] == [
        ("KeyError: N", "invoice.send", 2),
        ("no answer", "invoice.send", 1),
    ]
    assert groups["complete"] is True
    assert UUID(groups["items"][0]["sample"]) in {UUID(first), UUID(second)}
    found = await api.client.get(
        "/api/v1/jobs", params={"state": "dead", "target": "invoice.send", "error_group": "KeyError: N"}
    )
    assert {job["id"] for job in found.json()["items"]} == {first, second}
    assert (await api.get("/jobs?target=@http")).json()["items"] == []
    for query, ids in (("error=keyerror: 'C", [second]), ("error_group=KeyError", []), ("payload=x:1", [])):
        found = await api.get(f"/jobs?state=dead&{query}")
        assert [job["id"] for job in found.json()["items"]] == ids, query
    assert [one["count"] for one in (await api.get("/dead?error=answer")).json()["items"]] == [1]
    assert (await api.post(f"/jobs/{third}/discard")).status_code == 204
    refused(await api.post(f"/jobs/{third}/discard"), 409, "job_finished")
    refused(await api.post("/jobs/01935c2e-7b3a-7000-8000-000000000000/discard"), 404, "job_not_found")
    done = await api.post("/jobs/bulk", {"action": "retry", "filter": {"error_group": "KeyError: N"}})
    assert done.json()["done"] == 2
    assert (await api.get("/dead")).json()["items"] == []
