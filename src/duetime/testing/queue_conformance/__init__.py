"""The conformance suite for drivers of brokers: what the contract in `duetime.queue` says, as tests.

A driver binds to it by giving one fixture, the broker behind it, with queues that no other test uses:

    class TestMyQueue(ServerConformance):
        @pytest.fixture
        async def broker(self) -> RealBroker: ...

`RepairConformance` and `QueueConformance` are for stand-ins that cannot do all of it. The tests are
coroutines: run them with pytest-asyncio in its auto mode."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(f"{__name__}.suite")

# pytest must know this module before it is imported: hence E402.
from duetime.testing.queue_conformance.suite import (  # noqa: E402
    Broker,
    QueueConformance,
    RealBroker,
    RepairableBroker,
    RepairConformance,
    ServerConformance,
    message,
    numbers,
    opened,
    receive_until,
)

__all__ = [
    "Broker",
    "QueueConformance",
    "RealBroker",
    "RepairConformance",
    "RepairableBroker",
    "ServerConformance",
    "message",
    "numbers",
    "opened",
    "receive_until",
]
