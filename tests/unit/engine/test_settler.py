"""The settler and a store that cannot write what one of many attempts said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from duetime.engine.settler import Settler
from duetime.errors import StoreUnavailable
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.stores.memory import MemoryStore
from duetime.testing.conformance.drafts import claim_one, death, job, joined, stored


class Picky(MemoryStore):
    """Takes no batch with an unspeakable word in it, as a database whose text cannot hold everything."""

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        if any("unspeakable" in (one.error or "") for one in settlements):
            raise ValueError("no such letters")
        return await super().settle(settlements)


class Away(MemoryStore):
    tries = 0

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        self.tries += bool(settlements)
        if settlements:
            raise StoreUnavailable("not now")
        return []


async def ended_on(store: MemoryStore, errors: Sequence[str]) -> tuple[Settler, Any]:
    """A settler with an attempt to write for each of these errors, and its worker."""
    node = await joined(store)
    worker = SimpleNamespace(done=[], ended=[], held=len(errors), hints={}, monotonic=lambda: 0)
    for error in errors:
        await store.add_jobs([job(await store.time())])
        claimed = await claim_one(store, node)
        worker.ended.append(claimed)
        worker.done.append(death(claimed, await store.time(), error=error))
    return Settler(store, cast(Any, worker), Observers(), lambda _: None), worker


@pytest.mark.parametrize("place", [0, 3, 6])
def test_one_that_cannot_be_written_holds_up_nobody(place: int) -> None:
    async def scene() -> None:
        store = Picky()
        await store.open()
        errors = ["boom"] * 7
        errors[place] = "unspeakable"
        settler, worker = await ended_on(store, errors)
        jobs = list(worker.ended)
        assert await settler.run_once() is None
        assert (worker.done, worker.ended, worker.held) == ([], [], 0)
        said = [(await stored(store, one.id)).error for one in jobs]
        assert said.count("boom") == 6
        assert said[place] == "it ended as failed, but what it said cannot be stored (ValueError('no such letters'))"

    asyncio.run(scene())


def test_a_store_that_is_away_is_not_asked_again_and_again() -> None:
    """The loop waits and repeats the turn, with everything still there."""

    async def scene() -> None:
        store = Away()
        await store.open()
        settler, worker = await ended_on(store, ["boom"] * 7)
        with pytest.raises(StoreUnavailable):
            await settler.run_once()
        assert (store.tries, len(worker.done)) == (1, 7)

    asyncio.run(scene())
