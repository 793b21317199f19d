"""Messages to report on: the consumer takes the message from a Redis stream and reports over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

import duetime as dt
from duetime.api.service import build
from duetime.app.reports import Alive, Completed
from duetime.config import Settings
from duetime.config_sources import load
from duetime.engine.submit.submission import JobRequest
from duetime.invoker import Context, Policies, await_report
from duetime.invokers.publish.handler import NO_TOKEN, PublishHandler
from duetime.model.job import State
from duetime.model.keyring import KeyRing
from duetime.model.limit import Limit
from duetime.model.publish import PublishTarget
from duetime.model.retry import Retry
from duetime.model.settle import NOT_HERE, HandOver
from tests.api.conftest import Api, client_of, refused
from tests.app.waiting import eventually
from tests.http.scene import RING
from tests.publish.cloudevents import validated
from tests.publish.test_redis import RedisUnderTest
from tests.servers.brokers import RedisServer

TARGET = {"type": "publish", "destination": "orders", "report": "required"}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
async def broker(server: RedisServer) -> AsyncIterator[RedisUnderTest]:
    client: Redis = Redis.from_url(server.url)
    await client.flushall()
    yield RedisUnderTest(server.port, client)
    await client.aclose()


@pytest.fixture
def settings(broker: RedisUnderTest) -> Settings:
    return load(
        {}, {"DUETIME_DESTINATIONS": f"orders={broker.url(broker.port)}", "DUETIME_RETRY_DELAY": "0s"}
    )


async def node_and_api(settings: Settings, ring: KeyRing) -> AsyncIterator[Api]:
    app = dt.App("memory://")
    policies = Policies(Retry(settings.retry_attempts, settings.retry_delay))
    handler = PublishHandler(settings.destinations[0], policies, ring, "http://localhost")
    app.use_target(PublishTarget("orders").name, lambda _: handler)
    async with app.running(), client_of(build(app, settings, ring=ring)) as client:
        yield Api(app, client)


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[Api]:
    async for api in node_and_api(settings, RING):
        yield api


async def report(api: Api, event: dict[str, Any], verb: str, **fields: Any) -> dict[str, Any]:
    """As a consumer reports: with the address and the token of the message."""
    path = event["reporturl"].removeprefix("http://localhost/api/v1")
    done = await api.post(f"{path}/{verb}", {"token": event["reporttoken"], **fields})
    assert done.status_code == 200, done.text
    found: dict[str, Any] = done.json()
    return found


async def test_job_succeeds_with_the_report_of_the_consumer(api: Api, broker: RedisUnderTest) -> None:
    job_id = await api.submit(target=TARGET, payload={"order": 7})
    event = validated((await broker.received(1))[0].body)
    assert (await api.get(f"/jobs/{job_id}")).json()["state"] == "running"
    await report(api, event, "heartbeat", progress={"done": 1})
    done = await report(api, event, "complete", result={"invoice": "i1"})
    assert (done["id"], done["state"], done["result"]) == (job_id, "succeeded", {"invoice": "i1"})
    assert done["target"] == TARGET


async def test_reported_failure_is_retried_with_a_new_token(api: Api, broker: RedisUnderTest) -> None:
    job_id = await api.submit(target=TARGET, payload={"order": 7})
    first = validated((await broker.received(1))[0].body)
    assert (await report(api, first, "fail", error="no stock"))["error"] == "no stock"
    second = validated((await broker.received(2))[1].body)
    assert (second["id"], second["attempt"]) == (first["id"], 2)
    late = await api.post(f"/jobs/{job_id}/complete", {"token": first["reporttoken"]})
    refused(late, 409, "fenced")
    assert (await report(api, second, "complete"))["state"] == "succeeded"


async def test_message_without_a_report_in_time_is_published_again(api: Api, broker: RedisUnderTest) -> None:
    retry = {"max_attempts": 2, "first_delay": "0s"}
    job_id = await api.submit(target=TARGET, timeout="50ms", retry=retry)
    found = await api.get(f"/jobs/{job_id}?wait=50s")
    assert (found.json()["state"], found.json()["attempt"]) == ("dead", 2)
    assert [validated(one.body)["attempt"] for one in await broker.received(2)] == [1, 2]


async def _was_tried(api: Api, job_id: str) -> bool:
    return bool((await api.get(f"/jobs/{job_id}")).json()["attempts"])


async def test_report_needs_a_secret_key(settings: Settings) -> None:
    async for api in node_and_api(settings, KeyRing()):
        job_id = await api.submit(target=TARGET, retry={"max_attempts": 1})
        await eventually(partial(_was_tried, api, job_id))
        found = (await api.get(f"/jobs/{job_id}")).json()
        assert (found["state"], found["failures"]) == ("pending", 0), "a node with a key can run it"
        assert found["attempts"][0]["error"] == f"{NOT_HERE}: {NO_TOKEN}"


async def test_waiting_job_can_be_cancelled(api: Api, broker: RedisUnderTest) -> None:
    job_id = await api.submit(target=TARGET)
    await broker.received(1)
    assert (await api.ask("DELETE", f"/jobs/{job_id}")).is_success
    assert (await api.get(f"/jobs/{job_id}?wait=50s")).json()["state"] == "cancelled"


async def test_fire_of_a_schedule_names_it_as_the_subject(api: Api, broker: RedisUnderTest) -> None:
    target = {"type": "publish", "destination": "orders", "key": "c1"}
    made = await api.post("/schedules", {"name": "nightly", "when": {"every": "1s"}, "target": target})
    assert (made.status_code, made.json()["target"]) == (201, target), made.text
    event = validated((await broker.received(1))[0].body)
    assert event["subject"] == "nightly"
    assert event["data"] == {}


async def test_unknown_destination_is_refused_with_the_names_that_exist(api: Api) -> None:
    wrong = await api.post("/jobs", {"target": {"type": "publish", "destination": "ordres"}})
    problem = refused(wrong, 422, "input_invalid", "target.destination")
    assert "there is no destination 'ordres' here: use orders" in problem["detail"]


async def test_job_of_an_unknown_destination_waits_where_the_api_knows_none() -> None:
    app = dt.App("memory://")
    async with app.running(), client_of(build(app, Settings(), ring=RING)) as client:
        api = Api(app, client)
        job_id = await api.submit(target={"type": "publish", "destination": "audit"})
        why = (await api.get(f"/jobs/{job_id}/why")).json()
    assert why["code"] == "task_unknown"
    assert why["remedy"] == "start a worker that has the destination audit in its settings"


async def test_destination_of_another_tenant_is_not_named(broker: RedisUnderTest) -> None:
    url = f"{broker.url(broker.port)}&tenants=shop,crm"
    settings = load({}, {"DUETIME_DESTINATIONS": f"orders={url}"})
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, settings, ring=RING)) as client:
        wrong = await Api(app, client).post("/jobs", {"target": {"type": "publish", "destination": "orders"}})
    await app.close()
    problem = refused(wrong, 422, "input_invalid", "target.destination")
    assert "none that you may use" in problem["detail"]


class SlowHandOver:
    """The consumer has the message, and the node has not handed the job over yet."""

    limit: Limit | None = None

    def __init__(self) -> None:
        self.policies = Policies()
        self.published, self.go_on = asyncio.Event(), asyncio.Event()

    async def invoke(self, context: Context, payload: bytes) -> HandOver:
        self.published.set()
        await self.go_on.wait()
        return await_report(context.job)

    async def close(self) -> None:
        return


@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}/duetime.db"])
async def test_heartbeat_before_the_hand_over_is_accepted(store: str, tmp_path: Path) -> None:
    app, handler = dt.App(store.format(tmp_path)), SlowHandOver()
    app.use_target(PublishTarget("orders").name, lambda _: handler)
    async with app.running():
        target = PublishTarget("orders", reports=True)
        request = JobRequest(dt.NewJob(target.name), target.to_spec())
        job_id = (await app.jobs.submit_request(request)).id
        await handler.published.wait()
        await app.jobs.report(job_id, Alive(1, {"done": 1}), Policies())
        assert (await app.read_job(job_id)).progress == b'{"done":1}'
        handler.go_on.set()
        await app.jobs.report(job_id, Completed(1, "done"), Policies())
        assert (await app.read_job(job_id)).state is State.SUCCEEDED
