"""The driver for SQS, on moto's server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
from aiobotocore.session import get_session

from duetime.queue import TicketQueue
from duetime.queues import queue_for
from duetime.queues.address import safe_name
from duetime.testing.queue_conformance import RepairableBroker, RepairConformance
from tests.servers.brokers import MotoServer
from tests.servers.process import free_port

PLACE = {"region_name": "eu-west-1", "aws_access_key_id": "worker", "aws_secret_access_key": "s3cret"}


class SqsBroker:
    password = "s3cret"
    repeats = False
    keeps_order = False

    def __init__(self, server: MotoServer, prefix: str) -> None:
        self._server = server
        self._prefix = prefix

    def queue(self) -> TicketQueue:
        return self._queue(self._server.endpoint)

    def unreachable_queue(self) -> TicketQueue:
        return self._queue(f"http://127.0.0.1:{free_port()}")

    async def push_foreign(self, queue: str, body: bytes) -> None:
        async with self._client() as client:
            url = (await client.get_queue_url(QueueName=self._name(queue, 6)))["QueueUrl"]
            await client.send_message(QueueUrl=url, MessageBody=body.decode("latin-1"))

    async def restart(self) -> None:
        """It forgets everything."""
        await asyncio.to_thread(self._server.restart)

    async def delete(self, queues: Collection[str]) -> None:
        async with self._client() as client:
            for name in (self._name(queue, group) for queue in queues for group in (9, 6, 3)):
                url = (await client.get_queue_url(QueueName=name))["QueueUrl"]
                await client.delete_queue(QueueUrl=url)

    def _name(self, queue: str, group: int) -> str:
        return f"{self._prefix}-{safe_name(queue, 77 - len(self._prefix))}-{group}"

    def _queue(self, endpoint: str) -> TicketQueue:
        options = f"prefix={self._prefix}&endpoint={quote(endpoint, safe='')}"
        return queue_for(f"sqs://worker:{self.password}@eu-west-1?{options}")

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        made = get_session().create_client("sqs", endpoint_url=self._server.endpoint, **PLACE)
        async with made as client:
            yield client


class TestSqs(RepairConformance):
    many = 300

    @pytest.fixture
    async def broker(self, moto_server: MotoServer, prefix: str) -> RepairableBroker:
        return SqsBroker(moto_server, prefix)
