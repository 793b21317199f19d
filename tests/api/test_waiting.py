"""GET /jobs/{id}?wait=: what is refused, what a wait costs, and a key that ends while its holder waits."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.api.state import ServiceState
from duetime.clock import monotonic_micros
from duetime.config import Settings
from duetime.invoker import Context, Policies
from duetime.model.job import Delivery
from duetime.model.limit import Limit
from duetime.model.settle import HandOver
from tests.api.conftest import RING, Api, client_of, refused
from tests.api.keyed_api import KeyedApi, Time, keyed_api, time
from tests.api.test_jobs import claimed

__all__ = ["keyed_api", "time"]

MISSING = "01935c2e-7b3a-7000-8000-000000000000"


async def held(state: ServiceState, count: int) -> None:
    async with asyncio.timeout(60):
        while len(state.long_polls) != count:
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("wait", ["61s", "2m", "-1s", "soon", "5", "", "1s" * 20])
async def test_invalid_wait_is_refused(api: Api, wait: str) -> None:
    refused(await api.get(f"/jobs/{await api.submit()}?wait={wait}"), 422, "input_invalid", "wait")


async def test_wait_for_an_unknown_job_is_refused_immediately(api: Api) -> None:
    refused(await api.get(f"/jobs/{MISSING}?wait=60s"), 404, "job_not_found")
    refused(await api.get(f"/jobs/{await api.submit()}?patience=1s"), 422, "input_invalid", "patience")


async def test_long_poll_answers_at_its_timeout_or_when_the_job_is_final() -> None:
    app = dt.App("memory://")
    await app.open()
    service = build(app, Settings(), ring=RING)
    async with client_of(service) as client:
        api, state = Api(app, client), service.state.service
        job_id = await api.submit(delay="1h")
        began = monotonic_micros()
        assert (await api.get(f"/jobs/{job_id}?wait=400ms")).json()["state"] == "pending"
        took = monotonic_micros() - began
        total = state.meter.durations()["/api/v1/jobs/{job_id}"].total
        assert total <= took - 400_000, "the time it was held is not time we took"
        waiting = asyncio.ensure_future(api.get(f"/jobs/{job_id}?wait=60s"))
        await held(state, 1)
        await api.ask("DELETE", f"/jobs/{job_id}")
        assert (await asyncio.wait_for(waiting, 50)).json()["state"] == "cancelled"
        assert (await api.get(f"/jobs/{job_id}?wait=60s")).json()["state"] == "cancelled"
        assert len(state.long_polls) == 0
    await app.close()


async def test_long_poll_of_a_revoked_key_is_refused(keyed_api: KeyedApi, time: Time) -> None:
    key = await keyed_api.key("read", "submit")
    asked = {"authorization": key}
    submitted = await keyed_api.post(
        "/jobs", {"target": {"type": "task", "name": "t"}, "delay": "1h"}, **asked
    )
    waiting = asyncio.ensure_future(keyed_api.get(f"/jobs/{submitted.json()['id']}?wait=500ms", **asked))
    await held(keyed_api.service.state.service, 1)
    await keyed_api.app.keys.revoke(key[7:])
    time.move(60)
    refused(await waiting, 401, "key_revoked")


async def test_long_poll_for_the_job_of_another_tenant_is_refused(keyed_api: KeyedApi) -> None:
    job = await keyed_api.app.for_tenant("other").submit("t", delay=timedelta(hours=1))
    refused(
        await keyed_api.get(f"/jobs/{job.id}?wait=60s", authorization=await keyed_api.key("read")),
        404,
        "job_not_found",
    )


# -- attempts that were handed over: tried again as the settings say ---------------------------------------
class Agent:
    """Answers 202 and is not heard of again."""

    limit: Limit | None = None
    policies = Policies(dt.Retry(max_attempts=1), None, Delivery.AT_LEAST_ONCE)

    async def invoke(self, context: Context, payload: bytes) -> Any:
        return HandOver("10ms")

    async def close(self) -> None:
        return


@pytest.mark.slow
async def test_missing_report_follows_the_policies_of_the_target() -> None:
    app = dt.App("memory://")
    app.use_target("@http", lambda now: Agent())
    async with app.running(), client_of(build(app, Settings(), ring=RING)) as client:
        target = {"type": "http", "url": "https://agent.example/run", "async": True}
        job_id = (await Api(app, client).post("/jobs", {"target": target})).json()["id"]
        job = (await client.get(f"/api/v1/jobs/{job_id}?wait=20s")).json()
    assert (job["state"], job["error"]) == ("dead", "no report came before the deadline")


@pytest.mark.parametrize(("attempts", "state"), [(1, "dead"), (2, "pending")])
async def test_reported_failure_follows_the_settings(attempts: int, state: str) -> None:
    app = dt.App("memory://")
    await app.open()
    async with client_of(
        build(app, Settings(retry_attempts=attempts, retry_delay="7m"), ring=RING)
    ) as client:
        api = Api(app, client)
        job_id = await api.submit()
        failed = await api.post(
            f"/jobs/{job_id}/fail", {"token": await claimed(api, job_id), "error": "busy"}
        )
        assert failed.json()["state"] == state
    await app.close()
