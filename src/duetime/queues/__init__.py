"""Drivers for brokers, found by the scheme of the URL. Each is imported only when asked for, because it needs
its extra: `pip install 'duetime[rabbitmq]'`."""

from __future__ import annotations

from urllib.parse import urlsplit

from duetime.errors import ConfigError
from duetime.queue import TicketQueue

EXTRAS = {
    "redis": "redis",
    "rediss": "redis",
    "amqp": "rabbitmq",
    "amqps": "rabbitmq",
    "nats": "nats",
    "tls": "nats",
    "sqs": "sqs",
    "kafka": "kafka",
}


def queue_for(url: str) -> TicketQueue:
    """The driver for this URL, not connected yet."""
    scheme = urlsplit(url).scheme.lower()
    if scheme not in EXTRAS:
        known = ", ".join(f"{name}://" for name in EXTRAS)
        raise ConfigError(f"queue: {scheme or url!r} is not a broker: use one of {known} (docs/brokers.md)")
    extra = EXTRAS[scheme]
    try:
        return _driver(extra, url)
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.startswith("duetime"):
            raise
        raise ConfigError(
            f"queue: {scheme}:// needs the package {missing.name}: pip install 'duetime[{extra}]'"
        ) from None


def _driver(extra: str, url: str) -> TicketQueue:
    match extra:
        case "redis":
            from duetime.queues.redis import RedisQueue

            return RedisQueue(url)
        case "rabbitmq":
            from duetime.queues.rabbitmq import RabbitQueue

            return RabbitQueue(url)
        case "nats":
            from duetime.queues.nats import NatsQueue

            return NatsQueue(url)
        case "sqs":
            from duetime.queues.sqs import SqsQueue

            return SqsQueue(url)
        case _:
            from duetime.queues.kafka import KafkaQueue

            return KafkaQueue(url)
