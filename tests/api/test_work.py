"""The worker protocol, on a store in memory: remote workers join and claim, with keys of their scope."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from duetime.api import long_poll
from duetime.app import remote_work
from duetime.app.remote_work import RemoteWork
from duetime.app.reports import Completed
from duetime.model.instant import SECOND
from duetime.store import ClaimRequest, Claims
from tests.api.conftest import Api, refused
from tests.api.keyed_api import KeyedApi, keyed_api
from tests.api.remote_worker import TimedApi, held, job, join, named, timed

__all__ = ["keyed_api", "timed"]


# -- joining
async def test_remote_worker_is_listed_as_a_node_with_its_tasks(api: Api) -> None:
    await join(api)
    [node] = (await api.get("/nodes")).json()["items"]
    assert (node["name"], node["state"], node["roles"]) == ("mailer", "alive", ["worker"])
    assert [task["name"] for task in (await api.get("/tasks")).json()["items"]] == ["invoice.send"]


async def test_join_answers_the_lease_and_the_heartbeat_interval(api: Api) -> None:
    body = {"name": "a", "tasks": [{"name": "x"}], "lease": "6s"}
    done = await api.post("/workers", body)
    made = done.json()
    assert (made["lease_seconds"], made["heartbeat_seconds"], made["queues"]) == (6.0, 2.0, ["default"])
    assert done.headers["location"] == f"/api/v1/workers/{made['worker']}"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"lease": "1ms"}, "lease"),
        ({"lease": "11m"}, "lease"),
        ({"tasks": []}, "tasks"),
        ({"tasks": [{"name": "@http"}]}, "tasks"),
        ({"queues": ["*"]}, "queues"),
        ({"tasks": [{"name": "x", "timeout": "0s"}]}, "timeout"),
        ({"concurrency": 1_001}, "concurrency"),
    ],
)
async def test_wrong_registration_is_refused(api: Api, fields: dict[str, Any], field: str) -> None:
    refused(
        await api.post("/workers", {"name": "a", "tasks": [{"name": "x"}], **fields}),
        422,
        "input_invalid",
        field,
    )


# -- claiming
async def test_claimed_job_carries_everything_a_worker_needs(api: Api) -> None:
    worker = await join(api, task={"timeout": "1m"})
    job_id = await api.submit(payload={"customer": "c1"}, priority=7)
    [got] = await worker.claim()
    assert {name: got[name] for name in ("id", "attempt", "task", "payload", "queue", "priority")} == {
        "id": job_id,
        "attempt": 1,
        "task": "invoice.send",
        "payload": {"customer": "c1"},
        "queue": "default",
        "priority": 7,
    }
    assert (got["idempotency_key"], got["checkpoint"], got["schedule"]) == (job_id, None, None)
    assert got["deadline"] > got["due_at"]
    assert (await job(api, job_id))["node"] == worker.id


async def test_urgent_jobs_come_first_and_only_those_of_named_tasks_and_queues(api: Api) -> None:
    worker = await join(api, queues=["mail", "default"])
    low, high = await api.submit(priority=1), await api.submit(priority=9, queue="mail")
    await api.submit(target={"type": "task", "name": "other"})
    await api.submit(queue="elsewhere")
    assert [one["id"] for one in await worker.claim()] == [high, low]


async def test_claim_takes_at_most_max_in_one_store_call(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await keyed_api.key("work")
    worker = await join(keyed_api, authorization=key)
    for _ in range(5):
        await keyed_api.app.submit("invoice.send")
    keyed_api.count(monkeypatch, "claim", "due_jobs", "list_jobs", "get_job")
    assert len(await worker.claim(4)) == 4
    assert keyed_api.calls == {"claim": 1}


async def test_worker_never_holds_more_jobs_than_its_concurrency(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = api.app.store.claim

    async def slow(request: ClaimRequest) -> Claims:
        await asyncio.sleep(0)  # the other claims come meanwhile
        return await claim(request)

    monkeypatch.setattr(api.app.store, "claim", slow)
    worker = await join(api, concurrency=3)
    for _ in range(9):
        await api.submit()
    got = [job for jobs in await asyncio.gather(*(worker.claim(2) for _ in range(4))) for job in jobs]
    assert len(got) == 3
    assert await worker.claim() == []
    await worker.report("complete", *map(named, got[:2]))
    assert len(await worker.claim()) == 2


async def test_claim_of_a_full_worker_waits_until_it_reports(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_work, "LOOK_INTERVAL", 60 * SECOND)
    worker = await join(api, concurrency=1)
    first, second = await api.submit(), await api.submit()
    got = await worker.claim_one()
    assert got["id"] == first
    waiting = asyncio.create_task(worker.claim(wait="60s"))
    node = await api.app.remote_work.find("default", worker.id)
    async with asyncio.timeout(20):
        while not node.settled._waiters:
            await asyncio.sleep(0)
    await worker.report("complete", got)
    assert [one["id"] for one in await asyncio.wait_for(waiting, 20)] == [second]


async def test_processes_of_the_service_agree_on_what_a_worker_holds(timed: TimedApi) -> None:
    worker = await join(timed, concurrency=2)
    for _ in range(4):
        await timed.submit()
    got = await worker.claim()
    assert len(got) == 2
    other = RemoteWork(timed.app.store, timed.app.clock, timed.app.context.shared.reports, lambda event: None)
    node = await other.find("default", worker.id)
    assert await other.claim(node, 10) == []
    assert await other.settle(node, [(UUID(got[0]["id"]), Completed(got[0]["attempt"]))]) == []
    assert len(await worker.claim()) == 1
    other.close()


async def test_long_poll_answers_when_a_job_is_stored(api: Api) -> None:
    worker = await join(api)
    waiting = asyncio.create_task(worker.claim(wait="60s"))
    await held(api, 1)
    job_id = await api.submit()
    assert [one["id"] for one in await asyncio.wait_for(waiting, 50)] == [job_id]


async def test_long_poll_answers_when_a_job_falls_due(api: Api) -> None:
    worker = await join(api)
    job_id = await api.submit(delay="300ms")
    assert [one["id"] for one in await asyncio.wait_for(worker.claim(wait="60s"), 50)] == [job_id]


async def test_long_poll_ends_empty_after_its_wait(api: Api) -> None:
    worker = await join(api)
    assert await worker.claim(wait="50ms") == []


async def test_waiting_workers_share_the_look_at_the_store(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await keyed_api.key("work")
    workers = [await join(keyed_api, authorization=key) for _ in range(20)]
    keyed_api.count(monkeypatch, "claim")
    subscribed = len(keyed_api.app.store._notifier._listeners)  # type: ignore[attr-defined]
    assert await asyncio.gather(*(worker.claim(wait="100ms") for worker in workers)) == [[]] * 20
    assert keyed_api.calls["claim"] <= 2
    assert len(keyed_api.app.store._notifier._listeners) <= subscribed + 1  # type: ignore[attr-defined]


async def test_waiting_requests_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_poll, "MAX_PER_PROCESS", 1)
    worker = await join(api)
    waiting = asyncio.create_task(worker.claim(wait="60s"))
    await held(api, 1)
    refused(await api.post(f"/workers/{worker.id}/claim", {"wait": "30s"}), 429, "waits_exhausted")
    await api.submit()
    assert len(await asyncio.wait_for(waiting, 50)) == 1


async def test_waiting_requests_of_one_tenant_leave_places_for_the_next(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, "MAX_PER_PROCESS", 10)
    flood = await join(keyed_api, authorization=await keyed_api.key("work", tenant="flood"))
    other = await join(keyed_api, authorization=await keyed_api.key("work", tenant="other"))
    waiting = [asyncio.create_task(flood.claim(wait="60s")) for _ in range(8)]
    await held(keyed_api, 8)
    refused(
        await keyed_api.post(f"/workers/{flood.id}/claim", {"wait": "30s"}, **flood.headers),
        429,
        "waits_exhausted",
    )
    waiting.append(asyncio.create_task(other.claim(wait="60s")))
    await held(keyed_api, 9)
    keyed_api.service.state.service.long_polls.stop()
    assert await asyncio.gather(*waiting) == [[]] * 9


async def test_paused_queue_gives_nothing_until_it_is_resumed(api: Api) -> None:
    worker = await join(api)
    await api.post("/queues/default/pause")
    job_id = await api.submit()
    assert await worker.claim() == []
    waiting = asyncio.create_task(worker.claim(wait="60s"))
    await held(api, 1)
    await api.post("/queues/default/resume")
    assert [one["id"] for one in await asyncio.wait_for(waiting, 50)] == [job_id]


async def test_queue_limit_holds_and_the_next_job_follows_a_report(api: Api) -> None:
    worker = await join(api)
    await api.post("/queues/default/limit", {"max_running": 1})
    first, second = await api.submit(), await api.submit()
    got = await worker.claim_one()
    assert got["id"] == first
    waiting = asyncio.create_task(worker.claim(wait="60s"))
    await held(api, 1)
    assert await worker.report("complete", got) == []
    assert [one["id"] for one in await asyncio.wait_for(waiting, 50)] == [second]


async def test_job_that_was_cancelled_or_expired_is_not_delivered(timed: TimedApi) -> None:
    worker = await join(timed, lease="10m")
    late = await timed.submit(expires="1s")
    failed = await timed.submit(retry={"max_attempts": 3, "first_delay": "0s"})
    assert (
        await worker.report("release", *[named(one) | {"started": False} for one in await worker.claim()])
        == []
    )
    await timed.move(5)
    await timed.app.store.cancel_job("default", UUID(failed), "wrong month")
    assert await worker.claim() == []
    assert [(await job(timed, one))["state"] for one in (late, failed)] == ["skipped", "cancelled"]


# -- keys
async def test_key_with_the_scope_work_can_do_nothing_else(keyed_api: KeyedApi) -> None:
    key = await keyed_api.key("work")
    await join(keyed_api, authorization=key)
    for method, path, body in [
        ("GET", "/jobs", None),
        ("GET", "/nodes", None),
        ("POST", "/jobs", {"target": {"type": "task", "name": "x"}}),
        ("POST", "/queues/default/pause", None),
        ("GET", "/keys", None),
        ("GET", "/events", None),
    ]:
        refused(await keyed_api.ask(method, path, body, authorization=key), 403, "scope_missing")


@pytest.mark.parametrize("scope", ["read", "submit", "manage"])
async def test_other_scopes_do_not_include_work(keyed_api: KeyedApi, scope: str) -> None:
    body = {"name": "a", "tasks": [{"name": "x"}]}
    key = await keyed_api.key(scope)
    refused(await keyed_api.post("/workers", body, authorization=key), 403, "scope_missing")


async def test_key_limited_to_queues_works_on_no_other(keyed_api: KeyedApi) -> None:
    admin, mail = await keyed_api.key("admin"), await keyed_api.key("work", queues=["mail"])
    body = {"name": "a", "tasks": [{"name": "x"}], "queues": ["mail", "billing"]}
    refused(await keyed_api.post("/workers", body, authorization=mail), 403, "queue_not_allowed", "queues")
    worker = await join(keyed_api, authorization=mail)
    assert (await keyed_api.app.remote_work.find("default", worker.id)).profile.queues == ("mail",)
    billing = await join(keyed_api, queues=["billing"], authorization=admin)
    refused(
        await keyed_api.post(f"/workers/{billing.id}/claim", {}, authorization=mail),
        403,
        "queue_not_allowed",
        "queues",
    )


async def test_tenants_do_not_see_or_use_workers_of_others(keyed_api: KeyedApi) -> None:
    mine, other = await keyed_api.key("work"), await keyed_api.key("work", tenant="other")
    worker, foreign = await join(keyed_api, authorization=mine), await join(keyed_api, authorization=other)
    job_id = (await keyed_api.app.for_tenant("other").submit("invoice.send")).id
    assert await worker.claim() == []
    refused(
        await keyed_api.post(f"/workers/{foreign.id}/claim", {}, authorization=mine),
        404,
        "worker_not_found",
    )
    assert [one["id"] for one in await foreign.claim()] == [str(job_id)]
    reader = await keyed_api.key("read", tenant="other")
    listed = (await keyed_api.get("/nodes", authorization=reader)).json()["items"]
    assert [node["id"] for node in listed] == [foreign.id]


async def test_queues_of_a_key_need_the_scope_work(keyed_api: KeyedApi) -> None:
    admin = await keyed_api.key("admin")
    body = {"name": "a", "scopes": ["submit"], "queues": ["mail"]}
    refused(await keyed_api.post("/keys", body, authorization=admin), 422, "input_invalid", "queues")
    made = await keyed_api.post("/keys", {**body, "scopes": ["work", "submit"]}, authorization=admin)
    assert (made.json()["scopes"], made.json()["queues"]) == (["read", "submit", "work"], ["mail"])
