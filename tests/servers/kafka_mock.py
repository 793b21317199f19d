"""A program: librdkafka's mock broker, until it is ended."""

import signal
import sys

from confluent_kafka import Producer

holder = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1})
[broker] = holder.list_topics(timeout=30).brokers.values()
sys.stdout.write(f"listening on {broker.host}:{broker.port}\n")
sys.stdout.flush()
signal.sigwait({signal.SIGTERM, signal.SIGINT})
