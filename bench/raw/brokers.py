"""The bare client of each broker: one process publishes a message for each job, another consumes and
acknowledges them. Prints one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

import aiormq
import nats
import uvloop
from nats.js.api import ConsumerConfig, RetentionPolicy, StreamConfig
from pamqp.commands import Basic
from redis.asyncio import Redis

NAME = "bare"
SIZE = 41  # bytes of a message, unless told
GROUP = 500  # messages that are sent, or wait for their acknowledgement, together
PERSISTENT = 2

Took = Callable[[int], None]


def groups(count: int) -> list[int]:
    return [min(GROUP, count - sent) for sent in range(0, count, GROUP)]


async def redis_publish(url: str, count: int, body: bytes) -> None:
    client = Redis.from_url(url, protocol=2)
    for size in groups(count):
        async with client.pipeline(transaction=False) as pipeline:
            for _ in range(size):
                pipeline.xadd(NAME, {b"message": body})
            await pipeline.execute()
    await client.aclose()


async def redis_consume(url: str, took: Took) -> None:
    client = Redis.from_url(url, protocol=2)
    await client.delete(NAME)
    await client.xgroup_create(NAME, NAME, mkstream=True)
    took(0)
    while True:
        read: Any = await client.xreadgroup(NAME, NAME, {NAME: ">"}, count=GROUP, block=1_000)
        for _, entries in read:
            ids = [entry_id for entry_id, _ in entries]
            async with client.pipeline() as pipeline:
                pipeline.xack(NAME, NAME, *ids)
                pipeline.xdel(NAME, *ids)
                await pipeline.execute()
            took(len(ids))


async def rabbitmq_publish(url: str, count: int, body: bytes) -> None:
    connection = await aiormq.connect(url)
    channel = cast(aiormq.Channel, await connection.channel(publisher_confirms=True))
    await channel.queue_declare(NAME, durable=True)
    properties = Basic.Properties(delivery_mode=PERSISTENT)
    for size in groups(count):
        await asyncio.gather(
            *(
                channel.basic_publish(body, routing_key=NAME, properties=properties, wait=False)
                for _ in range(size)
            )
        )
    await connection.close()


async def rabbitmq_consume(url: str, took: Took) -> None:
    connection = await aiormq.connect(url)
    channel = await connection.channel()
    await channel.queue_declare(NAME, durable=True)
    await channel.queue_purge(NAME)
    await channel.basic_qos(prefetch_count=GROUP)

    async def consume(message: Any) -> None:
        await channel.basic_ack(message.delivery_tag, wait=False)
        took(1)

    await channel.basic_consume(NAME, consume)
    took(0)
    await asyncio.Future()


async def nats_publish(url: str, count: int, body: bytes) -> None:
    client = await nats.connect(url)
    stream = client.jetstream()
    for size in groups(count):
        await asyncio.gather(*[await stream.publish_async(NAME, body) for _ in range(size)])
    await client.close()


async def nats_consume(url: str, took: Took) -> None:
    client = await nats.connect(url)
    stream = client.jetstream()
    kept = StreamConfig(name=NAME, subjects=[NAME], retention=RetentionPolicy.WORK_QUEUE)
    await stream.add_stream(kept)
    await stream.purge_stream(NAME)
    config = ConsumerConfig(max_ack_pending=100_000)
    consumer = await stream.pull_subscribe(NAME, durable=NAME, config=config)
    took(0)
    while True:
        try:
            messages = await consumer.fetch(GROUP, timeout=1)
        except TimeoutError:
            continue
        for message in messages:
            await message.ack()
        await client.flush()
        took(len(messages))


Publish = Callable[[str, int, bytes], Awaitable[None]]
Consume = Callable[[str, Took], Awaitable[None]]
CLIENTS: dict[str, tuple[Publish, Consume]] = {
    "redis": (redis_publish, redis_consume),
    "rabbitmq": (rabbitmq_publish, rabbitmq_consume),
    "nats": (nats_publish, nats_consume),
}


async def publish(broker: str, url: str, count: int, size: int = SIZE) -> dict[str, float]:
    began = time.time()
    await CLIENTS[broker][0](url, count, b"x" * size)
    return {"began": began, "ended": time.time(), "cpu": time.process_time()}


async def consume(broker: str, url: str, count: int) -> dict[str, float]:
    over = asyncio.get_running_loop().create_future()
    left = count

    def took(number: int) -> None:
        nonlocal left
        if number == 0:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
        left -= number
        if left <= 0 and not over.done():
            over.set_result(time.time())

    consuming = asyncio.ensure_future(CLIENTS[broker][1](url, took))
    await asyncio.wait({over, consuming}, return_when=asyncio.FIRST_COMPLETED)
    if consuming.done():
        consuming.result()
    return {"ended": over.result(), "cpu": time.process_time()}


def main(command: str, broker: str, url: str, *numbers: str) -> None:
    action = (publish if command == "publish" else consume)(broker, url, *map(int, numbers))
    sys.stdout.write(json.dumps(uvloop.run(action)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
