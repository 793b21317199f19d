"""Publishes to a Redis stream, in groups: one pipeline is on the way while the next is collected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError

from duetime.invokers.publish.publisher import CONNECT_TIMEOUT, MessageGroups, NotPublished, OutgoingMessage
from duetime.model.destination import Destination
from duetime.model.publish import CONTENT_TYPE

MAX_MESSAGES, MAX_BYTES = 500, 4 * 1024 * 1024  # in one pipeline
REPLY_TIMEOUT = 30.0  # seconds


class RedisPublisher:
    def __init__(self, destination: Destination) -> None:
        self._stream = destination.options["stream"]
        self._max_length = int(destination.options["maxlen"]) if "maxlen" in destination.options else None
        # Without its own retries: the retry policy of the job decides.
        self._client: Redis = Redis.from_url(
            destination.url,
            socket_connect_timeout=CONNECT_TIMEOUT,
            socket_timeout=REPLY_TIMEOUT,
            retry=Retry(NoBackoff(), 0),
        )
        self._groups = MessageGroups(self._send, MAX_MESSAGES, MAX_BYTES)

    async def publish(self, message: OutgoingMessage) -> None:
        try:
            await self._groups.add(message)
        except AuthenticationError:
            raise NotPublished("the broker refused the user name or password") from None
        except ResponseError as problem:
            raise NotPublished(f"the broker refused the message: {problem}") from None

    async def close(self) -> None:
        await self._client.aclose()

    async def _send(self, group: Sequence[OutgoingMessage]) -> Sequence[Exception | None]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for message in group:
                fields: dict[Any, Any] = {
                    "id": message.id,
                    "content-type": CONTENT_TYPE,
                    "event": message.body,
                }
                if message.key is not None:
                    fields["key"] = message.key
                pipeline.xadd(self._stream, fields, maxlen=self._max_length)
            replies = await pipeline.execute(raise_on_error=False)
        return [reply if isinstance(reply, Exception) else None for reply in replies]
