"""The settler and a store that cannot write what one of many attempts said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from duetime.engine.node.timer import NodeClock
from duetime.engine.run.outbox import Outbox
from duetime.engine.run.settler import Settler
from duetime.errors import StoreUnavailable
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.store import Settled, Successors
from duetime.stores.memory import MemoryStore
from duetime.testing.conformance.drafts import claim_one, death, job, joined, stored
from tests.unit.engine.backlog import make_worker


class Picky(MemoryStore):
    """Takes no batch with an unspeakable word in it, as a database whose text cannot hold everything."""

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        if any("unspeakable" in (one.error or "") for one in settlements):
            raise ValueError("no such letters")
        return await super().settle(settlements, successors)


class Away(MemoryStore):
    tries = 0

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        self.tries += bool(settlements)
        if settlements:
            raise StoreUnavailable("not now")
        return Settled([], [])


async def ended_on(store: MemoryStore, errors: Sequence[str]) -> tuple[Settler, Outbox]:
    """A settler with an attempt to write for each of these errors, and its outbox."""
    node = await joined(store)
    worker, outbox = make_worker(NodeClock())
    for error in errors:
        await store.add_jobs([job(await store.time())])
        claimed = await claim_one(store, node)
        worker.capacity.claimed([claimed])
        outbox.add(claimed, death(claimed, await store.time(), error=error))
    takes = Successors(node, 0, ("default",), ("task",))
    return Settler(store, worker, outbox, Observers(), lambda _: None, lambda: takes), outbox


@pytest.mark.parametrize("place", [0, 3, 6])
def test_settlement_that_cannot_be_written_delays_no_other(place: int) -> None:
    async def scene() -> None:
        store = Picky()
        await store.open()
        errors = ["boom"] * 7
        errors[place] = "unspeakable"
        settler, outbox = await ended_on(store, errors)
        _, jobs = outbox.batch(100)
        assert await settler.run_once() is None
        assert len(outbox) == 0
        said = [(await stored(store, one.id)).error for one in jobs]
        assert said.count("boom") == 6
        assert (
            said[place]
            == "it ended as failed, but its result cannot be stored (ValueError('no such letters'))"
        )

    asyncio.run(scene())


def test_a_store_that_is_away_is_not_asked_again_and_again() -> None:
    """The loop waits and repeats the turn, with everything still there."""

    async def scene() -> None:
        store = Away()
        await store.open()
        settler, outbox = await ended_on(store, ["boom"] * 7)
        with pytest.raises(StoreUnavailable):
            await settler.run_once()
        assert (store.tries, len(outbox)) == (1, 7)

    asyncio.run(scene())
