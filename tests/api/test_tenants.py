"""What one tenant does must not cost the others: many queues, many pending jobs."""

from __future__ import annotations

import pytest

import duetime as dt
from duetime.engine.plan.queue_depth import DepthSampler
from tests.api.conftest import refused
from tests.api.keyed_api import KeyedApi, keyed_api

__all__ = ["keyed_api"]

JOB = {"target": {"type": "task", "name": "invoice.send"}}
STORE_CALLS = ("queues", "count_jobs", "list_jobs")


async def cost(keyed_api: KeyedApi, key: str) -> int:
    """Calls of the store for one listing of queues."""
    keyed_api.calls.clear()
    assert (await keyed_api.get("/queues", authorization=key)).status_code == 200
    return sum(keyed_api.calls[name] for name in STORE_CALLS)


async def test_listing_queues_costs_the_same_with_many_queues_of_another_tenant(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = await keyed_api.key("read", tenant="acme")
    await keyed_api.app.for_tenant("acme").submit("work", queue="mine")
    keyed_api.count(monkeypatch, *STORE_CALLS)
    alone = await cost(keyed_api, acme)
    other = keyed_api.app.for_tenant("other")
    await other.submit_many([dt.NewJob("work", queue=f"q{number}") for number in range(900)])
    assert await cost(keyed_api, acme) == alone
    [mine] = (await keyed_api.get("/queues", authorization=acme)).json()["items"]
    assert (mine["name"], mine["pending"]) == ("mine", 1)


async def test_queues_are_listed_by_page(keyed_api: KeyedApi) -> None:
    operator = await keyed_api.key()
    await keyed_api.app.submit_many([dt.NewJob("work", queue=name) for name in "cab"])
    first = (await keyed_api.get("/queues?limit=2", authorization=operator)).json()
    following = f"/queues?limit=2&cursor={first['next_cursor']}"
    second = (await keyed_api.get(following, authorization=operator)).json()
    assert [one["name"] for one in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["next_cursor"] is None


async def test_too_many_pending_jobs_of_a_tenant_are_refused(keyed_api: KeyedApi) -> None:
    keyed_api.app.quotas = dt.Quotas(pending=2)
    acme = await keyed_api.key("submit", tenant="acme")
    assert (await keyed_api.post("/jobs", JOB, authorization=acme)).status_code == 201
    assert (await keyed_api.post("/jobs", JOB, authorization=acme)).status_code == 201
    answer = await keyed_api.post("/jobs", JOB, authorization=acme)
    refused(answer, 429, "quota_exceeded")
    assert answer.headers["retry-after"]
    other = await keyed_api.key("submit", tenant="other")
    assert (await keyed_api.post("/jobs", JOB, authorization=other)).status_code == 201


async def test_too_many_queues_of_a_tenant_are_refused(keyed_api: KeyedApi) -> None:
    acme = await keyed_api.key("submit", tenant="acme")
    jobs = [{**JOB, "queue": f"q{number}"} for number in range(1_001)]
    refused(
        await keyed_api.post("/jobs/batch", {"jobs": jobs}, authorization=acme), 422, "input_invalid", "queue"
    )


async def test_queue_depth_is_for_the_operator_only(keyed_api: KeyedApi) -> None:
    await keyed_api.app.for_tenant("acme").submit("work", queue="secret-plan")
    await DepthSampler(keyed_api.app.store, keyed_api.app.clock, lambda: True).run_once()
    operator = await keyed_api.key("read")
    found = (await keyed_api.get("/stats/queues?since=5m", authorization=operator)).json()
    assert len(found["times"]) == 6
    [queue] = found["queues"]
    assert (queue["name"], queue["pending"][-1], queue["due"][-1], queue["running"][-1]) == (
        "secret-plan",
        1,
        1,
        0,
    )
    for tenant in ("acme", "other"):
        key = await keyed_api.key("admin", tenant=tenant)
        refused(await keyed_api.get("/stats/queues", authorization=key), 403, "tenant_not_allowed")
    refused(
        await keyed_api.get("/stats/queues?since=25h", authorization=operator), 422, "input_invalid", "since"
    )
