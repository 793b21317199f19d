"""Publishes to an SQS queue, in groups of ten. A FIFO queue drops a message whose id it has seen within five
minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError

from duetime.invokers.publish.publisher import (
    CONNECT_TIMEOUT,
    MessageGroups,
    NotPublished,
    OutgoingMessage,
    SharedConnection,
)
from duetime.model.destination import Destination
from duetime.model.publish import CONTENT_TYPE

MAX_MESSAGES, MAX_BYTES = 10, 1_000_000  # in one call
MAX_CALLS = 8  # at the same time
REPLY_TIMEOUT = 20.0  # seconds
TYPE_ATTRIBUTE = {"content-type": {"DataType": "String", "StringValue": CONTENT_TYPE}}


class SqsPublisher:
    def __init__(self, destination: Destination) -> None:
        parts = destination.parts
        scheme = "http" if destination.options.get("tls") == "no" else "https"
        self._endpoint = f"{scheme}://{parts.netloc.rpartition('@')[2]}"
        self._queue = f"{self._endpoint}{parts.path}"
        self._fifo = parts.path.endswith(".fifo")
        # As in sqs.eu-central-1.amazonaws.com.
        self._region = destination.options.get("region") or (parts.hostname or "").split(".")[1]
        self._login = (destination.user, destination.password)
        self._groups = MessageGroups(self._send, MAX_MESSAGES, MAX_BYTES, MAX_CALLS)
        self._client: SharedConnection[Any] = SharedConnection(
            self._connect, lambda made: True, lambda made: made.__aexit__(None, None, None)
        )

    async def publish(self, message: OutgoingMessage) -> None:
        try:
            await self._groups.add(message)
        except ClientError as problem:
            code = problem.response.get("Error", {}).get("Code", "")
            if code.endswith(("NonExistentQueue", "QueueDoesNotExist")):
                raise NotPublished("the queue does not exist") from None
            raise NotPublished(f"the broker refused the message: {code}") from None
        except BotoCoreError as problem:
            raise NotPublished(f"no answer of the broker ({type(problem).__name__})") from None

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, group: Sequence[OutgoingMessage]) -> Sequence[Exception | None]:
        client = await self._client.get()
        entries = [self._entry(number, message) for number, message in enumerate(group)]
        reply = await client.send_message_batch(QueueUrl=self._queue, Entries=entries)
        failed = {int(entry["Id"]): entry for entry in reply.get("Failed", ())}
        return [_problem(failed[number]) if number in failed else None for number in range(len(group))]

    def _entry(self, number: int, message: OutgoingMessage) -> dict[str, Any]:
        entry = {
            "Id": str(number),
            "MessageBody": message.body.decode(),
            "MessageAttributes": TYPE_ATTRIBUTE,
        }
        if self._fifo:
            entry["MessageDeduplicationId"] = message.id
            entry["MessageGroupId"] = message.key or message.id
        elif message.key is not None:
            entry["MessageGroupId"] = message.key
        return entry

    async def _connect(self) -> Any:
        """Without its own retries: the retry policy of the job decides."""
        user, password = self._login
        config = AioConfig(
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=REPLY_TIMEOUT,
            retries={"total_max_attempts": 1},
            max_pool_connections=MAX_CALLS,
        )
        return (
            await get_session()
            .create_client(
                "sqs",
                region_name=self._region,
                endpoint_url=self._endpoint,
                aws_access_key_id=user,
                aws_secret_access_key=password,
                config=config,
            )
            .__aenter__()
        )


def _problem(entry: dict[str, Any]) -> NotPublished:
    return NotPublished(
        f"the broker refused the message: {entry.get('Code')}", permanent=bool(entry.get("SenderFault"))
    )
