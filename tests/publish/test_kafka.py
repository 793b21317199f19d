"""Messages for a Kafka topic. The server is the mock broker of librdkafka, which knows no logins."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from duetime.invokers.publish import kafka
from duetime.model.job import Job, State
from tests.publish.cloudevents import validated
from tests.publish.suite import (
    BrokerUnderTest,
    PublishSuite,
    ReceivedMessage,
    destination_of,
    failed_once,
    publishing,
)
from tests.servers.brokers import PASSWORD, USER, KafkaMock
from tests.servers.proxy import Proxy

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaMock]:
    with KafkaMock() as server:
        yield server


class KafkaUnderTest:
    key = "c1"
    missing_error = None  # the mock broker makes topics that do not exist

    def __init__(self, port: int, topic: str) -> None:
        self.port = port
        self._topic = topic

    def url(self, port: int, password: str = PASSWORD) -> str:
        login = "" if password == PASSWORD else f"{USER}:{password}@"
        return f"kafka://{login}127.0.0.1:{port}?topic={self._topic}"

    def missing_url(self) -> str:
        return self.url(self.port)

    async def received(self, count: int) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        consumer = AIOKafkaConsumer(
            bootstrap_servers=f"127.0.0.1:{self.port}", auto_offset_reset="earliest", enable_auto_commit=False
        )
        async with consumer, asyncio.timeout(60):
            await consumer._client._wait_on_metadata(self._topic)
            partitions = consumer.partitions_for_topic(self._topic) or set()
            consumer.assign([TopicPartition(self._topic, number) for number in partitions])
            while len(found) < count:
                for records in (await consumer.getmany(timeout_ms=1_000)).values():
                    for record in records:
                        assert dict(record.headers)["content-type"].startswith(
                            b"application/cloudevents+json"
                        )
                        key = None if record.key is None else record.key.decode()
                        found.append(ReceivedMessage(record.value or b"", key))
        return found


class TestKafka(PublishSuite):
    @pytest.fixture
    async def broker(self, server: KafkaMock) -> KafkaUnderTest:
        return KafkaUnderTest(server.port, f"orders-{next(_numbers)}")

    async def test_job_is_published_once_the_broker_is_back(self, broker: BrokerUnderTest) -> None:
        """Only the first connection goes through the proxy: the broker tells its own address."""
        async with Proxy(broker.port) as proxy:
            await proxy.refuse()
            async with publishing(broker.url(proxy.port)) as node:
                job_id = await node.submit({"n": 2})
                await failed_once(node, job_id)
                await proxy.pass_through()
                job = await node.ended(job_id)
            assert (job.state, job.failures > 0) == (State.SUCCEEDED, True)
            [message] = await broker.received(1)
            assert validated(message.body)["attempt"] == job.attempt

    def check_refused_login(self, job: Job) -> None:
        assert job.state is State.DEAD


def test_login_and_tls_come_from_the_url() -> None:
    url = "kafka://anna:p%40ss@a.example,b.example:9093?topic=orders&tls=yes&sasl=scram-sha-512"
    found = kafka.security_of(destination_of(url))
    assert found.pop("ssl_context") is not None
    assert found == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "anna",
        "sasl_plain_password": "p@ss",
    }
    assert kafka.servers_of(destination_of(url)) == ["a.example:9092", "b.example:9093"]
