"""The consumer in docs/publish.md, with `duetime serve` and RabbitMQ."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import aiormq

import duetime as dt
from tests.docs.page import BLOCK
from tests.servers.brokers import RabbitServer
from tests.servers.service import Service

PAGE = Path(__file__).parents[2] / "docs" / "publish.md"


async def declare(url: str) -> None:
    connection = await aiormq.connect(url)
    channel = await connection.channel()
    await channel.exchange_declare("orders", exchange_type="topic", durable=True)
    await channel.queue_declare("orders", durable=True)
    await channel.queue_bind("orders", "orders", "new")
    await connection.close()


def test_consumer_of_the_documentation_finishes_a_job(tmp_path: Path) -> None:
    [code] = [found["text"] for found in BLOCK.finditer(PAGE.read_text()) if "# consumer.py" in found["text"]]
    program = tmp_path / "consumer.py"
    program.write_text(code)
    with RabbitServer() as broker:
        asyncio.run(declare(broker.url))
        consumer = subprocess.Popen([sys.executable, program], env={**os.environ, "BROKER": broker.url})
        settings = {"DUETIME_DESTINATIONS": f"orders={broker.url}/?exchange=orders&routing_key=new"}
        try:
            with (
                Service(f"sqlite:///{tmp_path}/kept.db", tmp_path / "log", environment=settings) as service,
                dt.Client(service.address) as client,
            ):
                target = {"type": "publish", "destination": "orders", "report": "required"}
                job = client.submit(target, {"order": 7})
                done = client.wait_for(job.id, timeout="60s")
        finally:
            consumer.kill()
            consumer.wait()
    assert (done.state, done.result) == ("succeeded", {"shipped": 7})
