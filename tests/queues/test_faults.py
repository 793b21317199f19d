"""What brokers and networks do to messages costs time only, on real servers. No job is lost, none runs twice.

| fault | tests |
|---|---|
| a hint of PostgreSQL is lost, its session ends | `stores/test_postgres_faults.py` `test_listening_resumes_after_a_lost_session` |
| the session that listens is half open | the same, `test_silent_listening_session_is_replaced` |
| a storm of hints | `stores/test_postgres_offline.py` `test_storm_of_hints_is_few_statements` |
| the longest names in a hint | the same, `test_job_hint_is_decoded_as_it_was` |
| messages doubled, reordered, hours late | `test_doubled_reordered_and_late_messages_start_nothing_twice`; `simulation/test_broker.py` |
| messages lost | `test_lost_messages_cost_time_only`; `unit/engine/test_dispatcher.py`; `simulation/test_broker.py` |
| Redis: FLUSHALL | `faults/test_broker.py`; the conformance suite: `test_deleted_queues_are_declared_again` |
| Redis: restart without its log | `test_restart_of_a_broker_that_forgets_everything` |
| RabbitMQ: restart | the conformance suite, for Redis and NATS, too |
| RabbitMQ: channel closed by the server | `test_channel_that_the_server_closed_is_replaced` |
| a confirmation does not come | `test_connection_that_went_silent_is_replaced`, for Redis and NATS, too |
| RabbitMQ: consumer timeout; NATS: AckWait; SQS: visibility | `test_message_is_acknowledged_while_its_job_runs` |
| SQS: 15 minutes of delay at most | `test_job_that_is_due_later_is_not_in_the_broker` |
| poison messages | `test_poison_message_does_not_stop_the_good_ones` |
| the broker is down | `test_worker_claims_from_the_store_while_the_broker_is_down`; `faults/test_broker.py`; `api/test_health.py` |
| Redis: stream trimmed with pending entries | `test_trimmed_stream_loses_no_job` |
| more due than workers take | `test_no_more_tickets_in_the_broker_than_configured` |
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest

import duetime as dt
from duetime.engine.fetch import broker as link
from duetime.errors import QueueUnavailable
from duetime.model.events import BrokerBack, BrokerDepth, BrokerLost
from duetime.model.instant import SECOND
from duetime.queue import Message, TicketQueue
from duetime.queues import nats as nats_driver
from duetime.queues import queue_for
from duetime.queues import redis as redis_driver
from duetime.queues import sqs as sqs_driver
from duetime.queues.wire import VERSION
from duetime.testing.queue_conformance import Broker, message, numbers, opened
from tests.queues.scene import PATIENCE, FaultyQueue, Scene, until
from tests.queues.server_broker import ServerBroker
from tests.queues.test_nats import NatsBroker
from tests.queues.test_rabbitmq import RabbitBroker
from tests.queues.test_redis import RedisBroker
from tests.queues.test_sqs import SqsBroker
from tests.servers.brokers import BrokerServer, RabbitServer, RedisServer
from tests.servers.proxy import Proxy

JOBS = 100
GOOD = 1_000
POISON = [
    b"not json",
    b"\xff\xfe",
    b"[]",
    b"{" * 100_000,
    b'{"v": 99, "queue": "default", "priority": 5, "jobs": [["00000000000000000000000000000001", 0]]}',
    b'{"v": %d, "queue": "default", "priority": 5, "jobs": [["not-an-id", 0]]}' % VERSION,
    # A number that no store can compare
    b'{"v": %d, "queue": "default", "priority": 5, "jobs": [["%s", %d]]}'
    % (VERSION, uuid4().hex.encode(), 2**63),
]

BROKERS = {"redis": RedisBroker, "rabbit": RabbitBroker, "nats": NatsBroker}


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest, prefix: str) -> ServerBroker:
    server: BrokerServer = request.getfixturevalue(f"{request.param}_server")
    return BROKERS[request.param](server, prefix)


@pytest.fixture
async def scene(broker: ServerBroker, tmp_path: Path) -> AsyncIterator[Scene]:
    async with opened_scene(Scene(tmp_path, broker.queue)) as made:
        yield made


@asynccontextmanager
async def opened_scene(scene: Scene) -> AsyncIterator[Scene]:
    await scene.app.migrate()
    await scene.app.open()
    try:
        yield scene
    finally:
        await scene.app.close()


async def test_doubled_reordered_and_late_messages_start_nothing_twice(
    scene: Scene, broker: ServerBroker
) -> None:
    sent: list[Message] = []

    def disturb(messages: Sequence[Message]) -> list[Message]:
        sent.extend(messages)
        copies = [each for each in messages for _ in range(5)]
        random.Random(7).shuffle(copies)
        return copies

    scene.connect = lambda: FaultyQueue(broker.queue(), disturb)
    async with scene.running():
        await scene.finish(await scene.submit(JOBS))
        received = scene.received
        async with opened(broker.queue()) as late:
            await late.push(sent)
        await until(lambda: scene.received > received)
        await scene.until_depth(lambda depth: depth == 0)
        await scene.finish(await scene.submit(1))


async def test_lost_messages_cost_time_only(scene: Scene, broker: ServerBroker) -> None:
    count = itertools.count()

    def lose_some(messages: Sequence[Message]) -> list[Message]:
        return [each for each in messages if next(count) % 3]

    scene.connect = lambda: FaultyQueue(broker.queue(), lose_some)
    async with scene.running():
        for _ in range(2):
            await scene.finish(await scene.submit(JOBS // 2))


async def test_poison_message_does_not_stop_the_good_ones(
    scene: Scene, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is removed, counted and logged, also one in front of all others."""
    async with opened(scene.connect()) as queue:
        await queue.push([message(1)])  # declares it
        await queue.receive(["default"], 1, SECOND)
    for body in POISON:
        await broker.push_foreign("default", body)
    with caplog.at_level(logging.WARNING, "duetime"):
        async with scene.running():
            await scene.finish(await scene.submit(GOOD))
            await until(lambda: scene.dropped == len(POISON))
    await scene.until_depth(lambda depth: depth == 0)
    assert "messages of the broker that are not tickets" in caplog.text


async def test_worker_claims_from_the_store_while_the_broker_is_down(
    scene: Scene, broker: ServerBroker
) -> None:
    async with scene.running() as node:
        await scene.work_through_the_broker()
        await asyncio.to_thread(broker.server.stop, signal.SIGKILL)
        try:
            await scene.finish(await scene.submit(JOBS))
            await until(lambda: node.broker_up is False and BrokerLost in scene.outages("dispatcher"))
            assert scene.outages("worker") == scene.outages("dispatcher") == [BrokerLost]
        finally:
            await asyncio.to_thread(broker.server.start)
        await until(lambda: node.broker_up is True)
        await scene.work_through_the_broker()
    assert scene.outages("worker") == scene.outages("dispatcher") == [BrokerLost, BrokerBack]


async def test_connection_that_went_silent_is_replaced(
    scene: Scene, broker: ServerBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No confirmation comes, and nothing says that the connection is lost: a firewall forgot it."""
    monkeypatch.setattr(link, "CALL_TIMEOUT", SECOND)
    async with Proxy(broker.server.port) as proxy:
        url = broker.server.url.replace(str(broker.server.port), str(proxy.port))
        scene.connect = lambda: queue_for(f"{url}?prefix={broker.prefix}")
        async with scene.running() as node:
            await scene.work_through_the_broker()
            proxy.silence()
            jobs = await scene.submit(JOBS)

            def is_noticed(part: str) -> bool:
                """A connection that a pool was opening is silenced, too."""
                if BrokerLost not in scene.outages(part):
                    proxy.silence()
                return BrokerLost in scene.outages(part)

            await until(lambda: is_noticed("worker") and is_noticed("dispatcher"))
            await scene.finish(jobs)
            await until(lambda: node.broker_up is True)
            await scene.work_through_the_broker()


async def test_no_more_tickets_in_the_broker_than_configured(scene: Scene) -> None:
    depth, count = 40, 400
    async with scene.running(roles=["dispatcher"], queue_depth=depth):
        jobs = await scene.submit(count)
        await until(lambda: scene.pushed > 0)
        looks = sum(isinstance(event, BrokerDepth) for event in scene.events)
        await until(lambda: sum(isinstance(event, BrokerDepth) for event in scene.events) >= looks + 3)
        assert scene.pushed <= depth
        async with scene.running(roles=["worker"]):
            await scene.finish(jobs)


@pytest.fixture
async def on_redis(redis_server: RedisServer, prefix: str, tmp_path: Path) -> AsyncIterator[Scene]:
    broker = RedisBroker(redis_server, prefix)
    async with opened_scene(Scene(tmp_path, broker.queue)) as made:
        yield made


async def test_trimmed_stream_loses_no_job(
    on_redis: Scene, redis_server: RedisServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries that a dead worker had are gone from the stream; nothing of them stays behind."""
    stream = f"{{{prefix}}}:6:default"
    async with on_redis.running(roles=["dispatcher"]):
        jobs = await on_redis.submit(JOBS)
        dead = on_redis.connect()
        await until(lambda: on_redis.pushed == JOBS)
        assert await dead.receive(["default"], 5, SECOND)
        async with RedisBroker(redis_server, prefix).client as client:
            await client.xtrim(stream, maxlen=0, approximate=False)
            monkeypatch.setattr(redis_driver, "REDELIVERY_TIMEOUT", 0)
            async with on_redis.running(roles=["worker"]):
                await on_redis.finish(jobs)
            assert (await client.xpending(stream, redis_driver.CONSUMERS))["pending"] == 0
        await dead.close()


@pytest.fixture
def forgetful() -> Iterator[RedisServer]:
    with RedisServer(durable=False) as server:
        yield server


async def test_restart_of_a_broker_that_forgets_everything(
    forgetful: RedisServer, prefix: str, tmp_path: Path
) -> None:
    """Messages, streams and groups are gone."""
    made = Scene(tmp_path, RedisBroker(forgetful, prefix).queue)
    async with opened_scene(made) as scene, scene.running(roles=["dispatcher"]):
        jobs = await scene.submit(JOBS)
        await until(lambda: scene.pushed == JOBS)
        await asyncio.to_thread(forgetful.restart)
        async with scene.running(roles=["worker"]):
            await scene.finish(jobs)
            await scene.work_through_the_broker()


async def test_channel_that_the_server_closed_is_replaced(rabbit_server: RabbitServer, prefix: str) -> None:
    """It closes the channel of a client that acknowledges twice."""
    broker = RabbitBroker(rabbit_server, prefix)
    async with opened(broker.queue()) as queue:
        await queue.push([message(1), message(2)])
        [first] = await queue.receive(["default"], 1, SECOND)
        await queue.acknowledge([first])
        with suppress(QueueUnavailable):
            await queue.acknowledge([first])
        found: list[int] = []
        async with asyncio.timeout(PATIENCE):
            while not found:
                with suppress(QueueUnavailable):
                    found += numbers(await queue.receive(["default"], 10, SECOND))
        assert found == [2]


@pytest.fixture
def impatient_rabbit() -> Iterator[RabbitServer]:
    """Closes the channel of a consumer that does not acknowledge within a second."""
    with RabbitServer(consumer_timeout=1_000, channel_tick_interval=100) as server:
        yield server


@pytest.fixture
def impatient(request: pytest.FixtureRequest, prefix: str, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """Delivers a message again after a second."""
    match request.param:
        case "redis":
            monkeypatch.setattr(redis_driver, "REDELIVERY_TIMEOUT", SECOND)
            return RedisBroker(request.getfixturevalue("redis_server"), prefix)
        case "nats":
            monkeypatch.setattr(nats_driver, "REDELIVERY_TIMEOUT", 1.0)
            return NatsBroker(request.getfixturevalue("nats_server"), prefix)
        case "sqs":
            monkeypatch.setattr(sqs_driver, "REDELIVERY_TIMEOUT", 1)
            return SqsBroker(request.getfixturevalue("moto_server"), prefix)
        case _:
            return RabbitBroker(request.getfixturevalue("impatient_rabbit"), prefix)


@pytest.mark.parametrize("impatient", ["redis", "nats", "sqs", "rabbit"], indirect=True)
async def test_message_is_acknowledged_while_its_job_runs(impatient: Broker, tmp_path: Path) -> None:
    """A job may take longer than the broker waits for an acknowledgement. A message that a receiver keeps is
    delivered again meanwhile: so the broker is known to have lost its patience."""
    async with opened_scene(Scene(tmp_path, impatient.queue)) as scene, scene.running() as node:
        jobs: list[dt.JobHandle] = []

        def all_run() -> bool:
            return len(scene.effects) == len(jobs)

        async with asyncio.timeout(PATIENCE):
            while scene.received == 0:  # on a busy machine the sweep may find a job before its message comes
                jobs.extend(await scene.submit(1, "hold"))
                await until(all_run)
        await scene.until_depth(lambda depth: depth == 0)
        received = scene.received
        await until_delivered_twice(impatient.queue())
        assert (scene.received, node.broker_up) == (received, True)
        assert set(scene.effects.values()) == {1}
        scene.go_on.set()
        await scene.finish(jobs)


async def until_delivered_twice(queue: TicketQueue) -> None:
    deliveries = 0
    async with opened(queue), asyncio.timeout(PATIENCE):
        await queue.push([message(1, "kept")])
        while deliveries < 2:
            with suppress(QueueUnavailable):  # RabbitMQ closes the channel
                deliveries += len(await queue.receive(["kept"], 1, SECOND))


async def test_job_that_is_due_later_is_not_in_the_broker(
    request: pytest.FixtureRequest, prefix: str, tmp_path: Path
) -> None:
    """It stays in the store, however little delay a broker allows."""
    broker = SqsBroker(request.getfixturevalue("moto_server"), prefix)
    async with opened_scene(Scene(tmp_path, broker.queue)) as scene, scene.running():
        later = await scene.app.submit("work", number=7, delay="20m")
        await scene.finish(await scene.submit(1))
        assert (scene.pushed, str((await later.refresh()).state)) == (1, "pending")
        await scene.until_depth(lambda depth: depth == 0)
