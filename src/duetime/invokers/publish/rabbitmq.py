"""Publishes to a RabbitMQ exchange, in groups. The broker confirms each message."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urlencode

import aiormq
from aiormq.abc import AbstractConnection
from aiormq.channel import Channel
from aiormq.exceptions import (
    AMQPChannelError,
    ChannelNotFoundEntity,
    DeliveryError,
    ProbableAuthenticationError,
    PublishError,
)
from pamqp.commands import Basic

from duetime.invokers.publish.publisher import MessageGroups, NotPublished, OutgoingMessage, SharedConnection
from duetime.model.destination import Destination
from duetime.model.publish import CONTENT_TYPE

PERSISTENT = 2
MAX_MESSAGES, MAX_BYTES, MAX_GROUPS = 500, 4 * 1024 * 1024, 2


class GroupConnection(aiormq.Connection):
    FRAME_BUFFER_SIZE = 2 * MAX_MESSAGES  # else each message of a group waits for the socket


class RabbitmqPublisher:
    def __init__(self, destination: Destination) -> None:
        self._url = f"{destination.url}?{urlencode({'name': 'duetime', 'heartbeat': 20})}"
        self._exchange = destination.options.get("exchange", "")
        self._routing_key = destination.options.get("routing_key", "")
        # The confirmations of a group come together, and so the store gets the ends of its jobs together.
        self._groups = MessageGroups(self._send, MAX_MESSAGES, MAX_BYTES, MAX_GROUPS)
        self._connection: SharedConnection[AbstractConnection] = SharedConnection(
            self._connect, lambda made: not made.is_closed, lambda made: made.close()
        )
        self._channel: SharedConnection[Channel] = SharedConnection(
            self._open_channel, lambda made: not made.is_closed, lambda made: made.close()
        )

    async def publish(self, message: OutgoingMessage) -> None:
        if message.key is not None and not self._exchange:
            # The default exchange would deliver to any queue of the broker.
            raise NotPublished("takes no key, because it has no exchange", permanent=True)
        try:
            await self._groups.add(message)
        except PublishError:
            raise NotPublished("no queue is bound to the exchange for this routing key") from None
        except DeliveryError:
            raise NotPublished("the broker did not accept the message (nack)") from None
        except ChannelNotFoundEntity:
            raise NotPublished(f"the exchange {self._exchange!r} does not exist") from None
        except AMQPChannelError as problem:
            raise NotPublished(f"the broker refused the message: {problem}") from None
        except ProbableAuthenticationError:
            raise NotPublished("the broker refused the user name or password") from None

    async def _send(self, group: Sequence[OutgoingMessage]) -> Sequence[BaseException | None]:
        channel = await self._channel.get()
        calls = (self._publish(channel, message) for message in group)
        results = await asyncio.gather(*calls, return_exceptions=True)
        return [one if isinstance(one, BaseException) else None for one in results]

    async def _publish(self, channel: Channel, message: OutgoingMessage) -> None:
        """`mandatory`: a message that reaches no queue comes back. `wait` is for the socket, not for the
        confirmation."""
        await channel.basic_publish(
            message.body,
            exchange=self._exchange,
            routing_key=self._routing_key if message.key is None else message.key,
            properties=Basic.Properties(
                content_type=CONTENT_TYPE, delivery_mode=PERSISTENT, message_id=message.id
            ),
            mandatory=True,
            wait=False,
        )

    async def close(self) -> None:
        await self._channel.close()
        await self._connection.close()

    async def _connect(self) -> AbstractConnection:
        connection = GroupConnection(self._url)
        await connection.connect()
        return connection

    async def _open_channel(self) -> Channel:
        channel = await (await self._connection.get()).channel(publisher_confirms=True)
        assert isinstance(channel, Channel)
        return channel
