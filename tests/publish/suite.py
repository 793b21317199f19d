"""What a publisher of any broker must do, as a node runs it: from the store, through the broker, back to the
store. Each broker binds its own server to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import pytest

import duetime as dt
from duetime.engine.submit.submission import JobRequest
from duetime.invoker import Policies
from duetime.invokers.publish.handler import PublishHandler
from duetime.model import destination
from duetime.model.destination import Destination
from duetime.model.job import Job, State
from duetime.model.publish import PublishTarget
from duetime.model.retry import Retry
from tests.http.scene import RING
from tests.publish.cloudevents import validated
from tests.servers.brokers import PASSWORD
from tests.servers.proxy import Proxy

QUICK = Policies(Retry(max_attempts=100, first_delay="10ms", max_delay="200ms"))
ONCE = Policies(Retry(max_attempts=1))
PUBLIC_URL = "https://duetime.example"


class ReceivedMessage(NamedTuple):
    body: bytes
    key: str | None


class BrokerUnderTest(Protocol):
    port: int
    key: str  # one that this broker routes to the same consumer
    missing_error: (
        str | None
    )  # of a destination whose exchange, stream, subject, queue or topic does not exist

    def url(self, port: int, password: str = PASSWORD) -> str: ...

    def missing_url(self) -> str: ...

    async def received(self, count: int) -> list[ReceivedMessage]:
        """Waits for at least so many new messages, and returns all."""
        ...


def destination_of(url: str, name: str = "orders") -> Destination:
    return destination.parse({name: url})[0]


class PublishingNode:
    def __init__(self, app: dt.App) -> None:
        self.app = app

    async def submit(self, payload: Any, target: dict[str, Any] | None = None, **options: Any) -> UUID:
        wanted = PublishTarget.from_json({"type": "publish", "destination": "orders", **(target or {})})
        new = dt.NewJob(wanted.name, payload=payload, **options)
        return (await self.app.jobs.submit_request(JobRequest(new, wanted.to_spec()))).id

    async def ended(self, job_id: UUID) -> Job:
        await (await self.app.get_job(job_id)).wait(timeout="60s")
        return await self.app.read_job(job_id)

    async def run(self, payload: Any, target: dict[str, Any] | None = None, **options: Any) -> Job:
        return await self.ended(await self.submit(payload, target, **options))


@asynccontextmanager
async def publishing(
    url: str, policies: Policies = QUICK, traces: str | None = None, sampling: float = 1.0
) -> AsyncIterator[PublishingNode]:
    app = dt.App("memory://", traces=traces, trace_sampling=sampling)
    handler = PublishHandler(destination_of(url), policies, RING, PUBLIC_URL)
    app.use_target(PublishTarget("orders").name, lambda _: handler)
    async with app.running():
        yield PublishingNode(app)


class PublishSuite:
    @pytest.fixture
    async def broker(self) -> BrokerUnderTest:
        raise NotImplementedError

    async def test_payload_is_published_as_a_cloud_event(self, broker: BrokerUnderTest) -> None:
        at = datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC)
        async with publishing(f"{broker.url(broker.port)}&type=com.example.order") as node:
            job = await node.run({"order": 7, "text": "ä"}, at=at)
        [message] = await broker.received(1)
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
        assert validated(message.body) == {
            "specversion": "1.0",
            "id": str(job.id),
            "source": "/duetime/default",
            "type": "com.example.order",
            "time": "2020-02-03T04:05:06Z",
            "datacontenttype": "application/json",
            "attempt": 1,
            "idempotencykey": str(job.id),
            "data": {"order": 7, "text": "ä"},
        }
        assert message.key is None

    async def test_key_reaches_the_broker(self, broker: BrokerUnderTest) -> None:
        async with publishing(broker.url(broker.port)) as node:
            job = await node.run(["a", 1], {"key": broker.key})
        [message] = await broker.received(1)
        event = validated(message.body)
        assert (job.state, message.key, event["partitionkey"]) == (State.SUCCEEDED, broker.key, broker.key)
        assert event["data"] == ["a", 1]

    async def test_many_messages_arrive_once_each(self, broker: BrokerUnderTest) -> None:
        async with publishing(broker.url(broker.port)) as node:
            ids = [await node.submit({"n": number}) for number in range(200)]
            jobs = [await node.ended(job_id) for job_id in ids]
        received = [validated(message.body)["id"] for message in await broker.received(200)]
        assert {job.state for job in jobs} == {State.SUCCEEDED}
        assert sorted(received) == sorted(map(str, ids))

    async def test_job_is_published_once_the_broker_is_back(self, broker: BrokerUnderTest) -> None:
        async with Proxy(broker.port) as proxy:
            async with publishing(broker.url(proxy.port)) as node:
                await node.run({"n": 1})  # the connection exists, and breaks
                await proxy.refuse()
                job_id = await node.submit({"n": 2})
                await failed_once(node, job_id)
                waiting = await node.app.read_job(job_id)
                assert waiting.state in (State.PENDING, State.RUNNING)
                assert (waiting.error or "").startswith("destination orders: ")
                await proxy.pass_through()
                job = await node.ended(job_id)
            assert (job.state, job.failures > 0) == (State.SUCCEEDED, True)
            events = [validated(message.body) for message in await broker.received(2)]
            assert {event["data"]["n"] for event in events} == {1, 2}
            assert events[-1]["attempt"] == job.attempt

    async def test_missing_destination_is_named_in_the_error(self, broker: BrokerUnderTest) -> None:
        async with publishing(broker.missing_url(), ONCE) as node:
            job = await node.run({"n": 1})
        if broker.missing_error is None:  # this broker makes what does not exist
            assert job.state is State.SUCCEEDED
        else:
            assert (job.state, job.error) == (State.DEAD, f"destination orders: {broker.missing_error}")

    async def test_password_appears_in_no_error_and_no_log(
        self, broker: BrokerUnderTest, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        wrong = "not-the-pass-word"
        async with publishing(broker.url(broker.port, wrong), ONCE) as node:
            job = await node.run({"n": 1})
            shown = repr(node.app.node) + repr(destination_of(broker.url(broker.port, wrong)))
        for text in (job.error or "", caplog.text, shown, repr(job)):
            assert wrong not in text
            assert PASSWORD not in text
        self.check_refused_login(job)

    def check_refused_login(self, job: Job) -> None:
        assert (job.state, job.error) == (
            State.DEAD,
            "destination orders: the broker refused the user name or password",
        )

    async def test_message_to_report_on_has_a_token_and_the_job_waits(self, broker: BrokerUnderTest) -> None:
        async with publishing(broker.url(broker.port)) as node:
            job_id = await node.submit({"n": 1}, {"report": "required"}, timeout="10m")
            [message] = await broker.received(1)
            event = validated(message.body)
            waiting = await node.app.read_job(job_id)
        assert event["reporturl"] == f"{PUBLIC_URL}/api/v1/jobs/{job_id}"
        assert event["reporttoken"].startswith("1.")
        assert waiting.state is State.RUNNING


async def failed_once(node: PublishingNode, job_id: UUID) -> None:
    """Waits until an attempt of the job has failed."""
    async with asyncio.timeout(60):
        while (await node.app.read_job(job_id)).failures == 0:
            await asyncio.sleep(0.01)
