"""Amazon SQS: a standard queue for each queue and group of priorities, created when it is first used."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import create_loader

from duetime.errors import ConfigError
from duetime.model.instant import SECOND, Micros
from duetime.queue import Message, Received
from duetime.queues.address import parse, safe_name
from duetime.queues.reconnecting import CALL_TIMEOUT, WakeUp
from duetime.queues.wire import GROUPS, from_bytes, group_of, to_bytes

MAX_NAME = 80  # all of it
MAX_BATCH = 10  # messages of one request
MAX_WAIT = 20  # seconds
MAX_CONNECTIONS = 50
# A worker acknowledges within milliseconds: what is older belongs to a worker that has died.
REDELIVERY_TIMEOUT = 30  # seconds
RETENTION = 14 * 24 * 3600  # seconds, the longest; the store pushes again what is lost
OPTIONS = frozenset({"endpoint"})
_MISSING = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})


class _Receipt(NamedTuple):
    name: str
    handle: str


class SqsQueue:
    """URL: `sqs://region`, with the usual credentials of AWS (environment, file or role), or
    `sqs://key:secret@region`. Option: `endpoint` (the URL of another server)."""

    def __init__(self, url: str) -> None:
        self._address = parse(url, OPTIONS)
        parts = urlsplit(self._address.url)
        if not parts.hostname:
            raise ConfigError("queue: sqs:// needs a region, for example sqs://eu-west-1")
        self._options = {
            "region_name": parts.hostname,
            "endpoint_url": self._address.options.get("endpoint"),
            "aws_access_key_id": unquote(parts.username) if parts.username else None,
            "aws_secret_access_key": unquote(parts.password) if parts.password else None,
        }
        self._maker: Any = None
        self._client: Any = None
        self._urls: dict[str, str] = {}
        self._buffers: defaultdict[str, deque[Received]] = defaultdict(deque)
        self._polls: dict[str, asyncio.Task[None]] = {}
        self._failure: Exception | None = None  # of a poll
        self._unacknowledged: set[_Receipt] = set()
        self._change = WakeUp()

    async def open(self) -> None:
        async with self._guarded():
            await self._client.list_queues(QueueNamePrefix=self._address.prefix, MaxResults=1)

    async def close(self) -> None:
        """Give back what is not acknowledged, with what the last polls bring."""
        if self._polls:
            await asyncio.wait(self._polls.values(), timeout=CALL_TIMEOUT)
        for poll in self._polls.values():
            poll.cancel()
        with suppress(BotoCoreError, ClientError, OSError):
            await self._batches("change_message_visibility_batch", self._unacknowledged, VisibilityTimeout=0)
        self._polls.clear()
        self._buffers.clear()
        self._unacknowledged.clear()
        maker, self._maker, self._client = self._maker, None, None
        if maker:
            await maker.__aexit__(None, None, None)

    async def push(self, messages: Sequence[Message]) -> None:
        bodies: defaultdict[str, list[str]] = defaultdict(list)
        for message in messages:
            bodies[self._name(message.queue, group_of(message.priority))].append(to_bytes(message).decode())
        async with self._guarded():
            await asyncio.gather(
                *(
                    self._send(name, some[start : start + MAX_BATCH])
                    for name, some in bodies.items()
                    for start in range(0, len(some), MAX_BATCH)
                )
            )

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        names = [self._name(queue, group) for group in GROUPS for queue in queues]
        now = asyncio.get_running_loop().time
        give_up_at = now() + timeout / SECOND
        async with self._guarded():
            while True:
                if not any(self._buffers[name] for name in names):
                    idle = [name for name in names if name not in self._polls]
                    await asyncio.gather(*(self._poll(name, min(limit, MAX_BATCH), 0) for name in idle))
                taken = self._take(names, limit)
                remaining = give_up_at - now()
                if taken or remaining <= 0:
                    return taken
                for name in names:
                    if name not in self._polls:
                        self._polls[name] = asyncio.create_task(self._long_poll(name, remaining))
                await self._change.wait(give_up_at)
                if self._failure:
                    failure, self._failure = self._failure, None
                    raise failure

    async def acknowledge(self, deliveries: Sequence[Received]) -> None:
        receipts = [delivery.receipt for delivery in deliveries]
        async with self._guarded():
            await self._batches("delete_message_batch", receipts)
        self._unacknowledged.difference_update(receipts)

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        wanted = [(queue, group) for queue in queues for group in GROUPS]
        async with self._guarded():
            counts = await asyncio.gather(*(self._count(self._name(*each)) for each in wanted))
        return dict(zip(wanted, counts, strict=True))

    def _name(self, queue: str, group: int) -> str:
        prefix = self._address.prefix
        return f"{prefix}-{safe_name(queue, MAX_NAME - len(prefix) - 3)}-{group}"

    def _take(self, names: Sequence[str], limit: int) -> list[Received]:
        taken: list[Received] = []
        for name in names:
            while self._buffers[name] and len(taken) < limit:
                taken.append(self._buffers[name].popleft())
        return taken

    async def _poll(self, name: str, limit: int, wait: int) -> None:
        reply = await self._call("receive_message", name, MaxNumberOfMessages=limit, WaitTimeSeconds=wait)
        for each in reply.get("Messages", ()):
            receipt = _Receipt(name, each["ReceiptHandle"])
            self._unacknowledged.add(receipt)
            self._buffers[name].append(Received(from_bytes(each["Body"].encode()), receipt))

    async def _long_poll(self, name: str, timeout: float) -> None:
        """In the background: an interrupted poll could take a message away from all workers for a while."""
        try:
            await self._poll(name, 1, max(1, min(MAX_WAIT, math.ceil(timeout))))
        except (BotoCoreError, ClientError, OSError) as error:
            self._failure = error
        finally:
            self._polls.pop(name, None)
            self._change.announce()

    async def _send(self, name: str, bodies: Sequence[str]) -> None:
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        reply = await self._call("send_message_batch", name, Entries=entries)
        failed = {each["Id"] for each in reply.get("Failed", ())}
        if failed:  # the answer is a success, although some were refused
            again = [entry for entry in entries if entry["Id"] in failed]
            reply = await self._call("send_message_batch", name, Entries=again)
        for each in reply.get("Failed", ()):
            raise ConnectionError(f"a message was refused: {each.get('Message') or each['Code']}")

    async def _batches(self, verb: str, receipts: Iterable[_Receipt], **options: Any) -> None:
        by_name: defaultdict[str, list[str]] = defaultdict(list)
        for receipt in receipts:
            by_name[receipt.name].append(receipt.handle)
        # A refused entry needs nothing: the message is delivered again.
        await asyncio.gather(
            *(
                self._call(
                    verb,
                    name,
                    Entries=[
                        {"Id": str(number), "ReceiptHandle": handle, **options}
                        for number, handle in enumerate(handles[start : start + MAX_BATCH])
                    ],
                )
                for name, handles in by_name.items()
                for start in range(0, len(handles), MAX_BATCH)
            )
        )

    async def _count(self, name: str) -> int:
        counted = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        reply = await self._call("get_queue_attributes", name, AttributeNames=counted)
        return sum(int(reply["Attributes"][each]) for each in counted)

    async def _call(self, verb: str, name: str, **arguments: Any) -> Any:
        try:
            return await getattr(self._client, verb)(QueueUrl=await self._url(name), **arguments)
        except ClientError as error:
            if _code(error) not in _MISSING:
                raise
            self._urls.pop(name, None)  # it was deleted
            return await getattr(self._client, verb)(QueueUrl=await self._url(name), **arguments)

    async def _url(self, name: str) -> str:
        if name not in self._urls:
            try:
                found = await self._client.get_queue_url(QueueName=name)
            except ClientError as error:
                if _code(error) not in _MISSING:
                    raise
                attributes = {
                    "VisibilityTimeout": str(REDELIVERY_TIMEOUT),
                    "MessageRetentionPeriod": str(RETENTION),
                }
                found = await self._client.create_queue(QueueName=name, Attributes=attributes)
            self._urls[name] = found["QueueUrl"]
        return self._urls[name]

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        try:
            if self._client is None:
                config = AioConfig(
                    connect_timeout=CALL_TIMEOUT,
                    read_timeout=MAX_WAIT + CALL_TIMEOUT,
                    max_pool_connections=MAX_CONNECTIONS,
                    retries={"mode": "standard", "total_max_attempts": 2},
                )
                session = get_session()
                session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
                self._maker = session.create_client("sqs", config=config, **self._options)
                self._client = await self._maker.__aenter__()
            yield
        except (BotoCoreError, ClientError, OSError) as error:
            raise self._address.unavailable(error) from error


@cache
def _loader(path: str | None) -> Any:
    """One for the process, with all that it has read: to read the files of AWS blocks the loop for 100 ms."""
    return create_loader(path)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
