"""The heart before its first beat: it trusts itself no longer than the store does, and one that cannot join
leaves nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from duetime.engine.node.heartbeat import Heartbeat
from duetime.engine.node.loop import LoopThread
from duetime.engine.node.timer import NodeClock
from duetime.errors import StoreFull
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Beat, NodeDraft, NodeId
from duetime.observer import Observers
from duetime.store import Store
from tests.unit.engine.fake_store import play, virtual_clock

TTL = 15 * SECOND
DRAFT = NodeDraft("node", ("worker",), "1")


class Deaf:
    def fenced(self, reason: str) -> None: ...

    def cancels(self, job_ids: Sequence[UUID]) -> None: ...


class SlowStore:
    """Whose answer to a join is long on its way, and whose answer to a beat never comes."""

    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        await asyncio.sleep(4)
        return NodeId(1)

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        return await asyncio.Future()


class FullStore:
    """Opens, and takes nothing."""

    def __init__(self) -> None:
        self.open_handles = 0

    def clone(self) -> Any:
        return self

    async def open(self) -> None:
        self.open_handles += 1

    async def close(self) -> None:
        self.open_handles -= 1

    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        raise StoreFull("no room left")


def test_a_lease_counts_from_before_it_was_asked_for() -> None:
    async def scene() -> None:
        clock = virtual_clock()
        asked_at = clock.monotonic()
        heartbeat = Heartbeat(cast(Store, SlowStore()), clock, Observers())
        await heartbeat.start(DRAFT, TTL, Deaf())
        await asyncio.sleep((asked_at + TTL - clock.monotonic()) / SECOND)
        assert not heartbeat.trusted()

    play(scene)


async def test_one_that_cannot_join_closes_what_it_opened() -> None:
    store = FullStore()
    with pytest.raises(StoreFull):
        await Heartbeat(cast(Store, store), NodeClock(), Observers(), LoopThread("test")).start(
            DRAFT, TTL, Deaf()
        )
    assert store.open_handles == 0
