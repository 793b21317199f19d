"""Publishes to a NATS subject that a JetStream stream stores, which confirms each message."""

from __future__ import annotations

import re

from nats.aio.client import Client
from nats.errors import Error, MaxPayloadError
from nats.js.errors import APIError, NoStreamResponseError

from duetime.invokers.publish.publisher import (
    CONNECT_TIMEOUT,
    NotPublished,
    OutgoingMessage,
    SharedConnection,
)
from duetime.model.destination import Destination
from duetime.model.publish import CONTENT_TYPE

CONFIRM_TIMEOUT = 5.0  # seconds; calls do not notice that the connection is lost
_TOKENS = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")  # of a subject, without wildcards


class NatsPublisher:
    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._subject = destination.options["subject"]
        self._client: SharedConnection[Client] = SharedConnection(
            self._connect, lambda made: made.is_connected, lambda made: made.close()
        )

    async def publish(self, message: OutgoingMessage) -> None:
        subject = self._subject
        if message.key is not None:
            if not _TOKENS.fullmatch(message.key):
                raise NotPublished("the key must not contain blanks, * or >, or empty parts", permanent=True)
            subject = f"{subject}.{message.key}"
        client = await self._connected()
        headers = {"Nats-Msg-Id": message.id, "content-type": CONTENT_TYPE}
        try:
            await client.jetstream().publish(subject, message.body, CONFIRM_TIMEOUT, headers=headers)
        except NoStreamResponseError:
            raise NotPublished("no JetStream stream stores this subject") from None
        except MaxPayloadError:
            raise NotPublished("the message is larger than the broker allows", permanent=True) from None
        except APIError as problem:
            raise NotPublished(f"the broker refused the message: {problem.description}") from None

    async def close(self) -> None:
        await self._client.close()

    async def _connected(self) -> Client:
        try:
            return await self._client.get()
        except Error as problem:
            refused = "authorization" in str(problem).lower()
            raise NotPublished(
                "the broker refused the user name or password" if refused else "cannot connect to the broker"
            ) from None

    async def _connect(self) -> Client:
        """It does not reconnect by itself: a message must fail in time for the retry policy of its job."""
        client = Client()
        try:
            await client.connect(
                self._destination.url,
                name="duetime",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=int(CONNECT_TIMEOUT),
                error_cb=_ignore,
            )
        except BaseException:
            await client.close()
            raise
        return client


async def _ignore(problem: Exception) -> None:
    """The calls that fail report it."""
