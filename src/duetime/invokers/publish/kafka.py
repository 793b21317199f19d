"""Publishes to a Kafka topic. All replicas in sync confirm each message; the client groups them."""

from __future__ import annotations

import ssl
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    UnknownTopicOrPartitionError,
)

from duetime.invokers.publish.publisher import NotPublished, OutgoingMessage, SharedConnection
from duetime.model.destination import Destination
from duetime.model.publish import CONTENT_TYPE

DEFAULT_PORT = 9092
REPLY_TIMEOUT = 20_000  # milliseconds


class KafkaPublisher:
    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._topic = destination.options["topic"]
        self._producer: SharedConnection[AIOKafkaProducer] = SharedConnection(
            self._connect, lambda made: True, lambda made: made.stop()
        )

    async def publish(self, message: OutgoingMessage) -> None:
        try:
            producer = await self._producer.get()
            await producer.send_and_wait(
                self._topic,
                message.body,
                None if message.key is None else message.key.encode(),
                headers=[("content-type", CONTENT_TYPE.encode())],
            )
        except MessageSizeTooLargeError:
            raise NotPublished("the message is larger than the broker allows", permanent=True) from None
        except UnknownTopicOrPartitionError:
            raise NotPublished(f"the topic {self._topic!r} does not exist") from None
        except (KafkaConnectionError, KafkaTimeoutError):
            raise NotPublished("cannot connect to the broker, or it does not respond") from None

    async def close(self) -> None:
        await self._producer.close()

    async def _connect(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=servers_of(self._destination),
            client_id="duetime",
            acks="all",
            request_timeout_ms=REPLY_TIMEOUT,
            **security_of(self._destination),
        )
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return producer


def servers_of(destination: Destination) -> list[str]:
    hosts = destination.parts.netloc.rpartition("@")[2].split(",")
    return [host if ":" in host else f"{host}:{DEFAULT_PORT}" for host in hosts]


def security_of(destination: Destination) -> dict[str, Any]:
    tls, login = destination.options.get("tls") == "yes", destination.user is not None
    protocol = ("SASL_" if login else "") + ("SSL" if tls else "PLAINTEXT")
    found: dict[str, Any] = {"security_protocol": protocol}
    if tls:
        found["ssl_context"] = ssl.create_default_context()
    if login:
        found["sasl_mechanism"] = destination.options.get("sasl", "PLAIN").upper()
        found |= {"sasl_plain_username": destination.user, "sasl_plain_password": destination.password or ""}
    return found
