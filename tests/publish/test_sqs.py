"""Messages for an SQS queue. The server is moto, which keeps the limits of SQS."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiobotocore.session import get_session

from duetime.model.job import Job, State
from tests.publish.cloudevents import validated
from tests.publish.suite import PublishSuite, ReceivedMessage, publishing
from tests.servers.brokers import PASSWORD, USER, MotoServer

ACCOUNT = "123456789012"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[MotoServer]:
    with MotoServer() as server:
        yield server


class SqsUnderTest:
    key = "c1"
    missing_error = "the queue does not exist"

    def __init__(self, port: int, client: Any, queue: str) -> None:
        self.port = port
        self.client = client
        self._queue = queue

    def url(self, port: int, password: str = PASSWORD) -> str:
        return f"sqs://{USER}:{password}@127.0.0.1:{port}/{ACCOUNT}/{self._queue}?region=eu-central-1&tls=no"

    def missing_url(self) -> str:
        return self.url(self.port).replace(self._queue, "missing")

    async def received(self, count: int) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        queue = f"http://127.0.0.1:{self.port}/{ACCOUNT}/{self._queue}"
        async with asyncio.timeout(60):
            while True:
                reply = await self.client.receive_message(
                    QueueUrl=queue,
                    MaxNumberOfMessages=10,
                    WaitTimeSeconds=int(len(found) < count),
                    MessageAttributeNames=["All"],
                    MessageSystemAttributeNames=["MessageGroupId"],
                )
                for message in reply.get("Messages", ()):
                    kind = message["MessageAttributes"]["content-type"]["StringValue"]
                    assert kind == "application/cloudevents+json; charset=utf-8"
                    key = message.get("Attributes", {}).get("MessageGroupId")
                    found.append(ReceivedMessage(message["Body"].encode(), key))
                if len(found) >= count and not reply.get("Messages"):
                    return found


class TestSqs(PublishSuite):
    @pytest.fixture
    async def broker(self, server: MotoServer) -> AsyncIterator[SqsUnderTest]:
        async with get_session().create_client(
            "sqs",
            region_name="eu-central-1",
            endpoint_url=f"http://127.0.0.1:{server.port}",
            aws_access_key_id=USER,
            aws_secret_access_key=PASSWORD,
        ) as client:
            name = f"orders-{next(_numbers)}"  # a queue can be purged once a minute only
            await client.create_queue(QueueName=name)
            yield SqsUnderTest(server.port, client, name)

    def check_refused_login(self, job: Job) -> None:
        """moto takes any password."""
        assert job.state is State.SUCCEEDED

    async def test_large_messages_are_sent_in_smaller_groups(self, broker: SqsUnderTest) -> None:
        """A call has at most a mebibyte."""
        async with publishing(broker.url(broker.port)) as node:
            ids = [await node.submit({"text": "x" * 250_000}) for _ in range(8)]
            states = {(await node.ended(job_id)).state for job_id in ids}
        assert states == {State.SUCCEEDED}
        assert len(await broker.received(8)) == 8

    async def test_fifo_queue_gets_the_key_as_group(self, broker: SqsUnderTest) -> None:
        await broker.client.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})
        fifo = SqsUnderTest(broker.port, broker.client, "orders.fifo")
        async with publishing(fifo.url(fifo.port)) as node:
            job = await node.run({"n": 1}, {"key": "c7"})
        [message] = await fifo.received(1)
        assert (job.state, message.key) == (State.SUCCEEDED, "c7")
        assert validated(message.body)["id"] == str(job.id) == json.loads(message.body)["idempotencykey"]
