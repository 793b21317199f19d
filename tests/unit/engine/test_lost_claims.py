"""Replies to claims that are lost, the claimer's and the sweeper's at the same time."""

from __future__ import annotations

import asyncio

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.job import Claimed, Ending
from duetime.store import ClaimRequest, Claims, OfDeadNodes, OfNode, PastDeadline
from tests.unit.engine.backlog import Backlog, Bench
from tests.unit.engine.fake_store import job, play


class Forgetful(Backlog):
    """Loses its replies to claims when told to; `held` is what it says that the node has."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = True
        self.held_jobs: list[Claimed] = []
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()

    async def claim(self, request: ClaimRequest) -> Claims:
        if self.lost:
            raise StoreUnavailable("the reply was lost")
        return await super().claim(request)

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        held = list(self.held_jobs)
        self.asked.set()
        await self.answers.wait()
        return held


def test_a_sweep_whose_reply_is_lost_while_the_store_is_asked_is_asked_for_again() -> None:
    async def scene() -> None:
        store = Forgetful()
        bench = Bench(store)
        bench.capacity.lost_reply_at = bench.capacity.monotonic()
        store.answers.clear()
        turn = asyncio.create_task(bench.claimer.run_once())
        await store.asked.wait()
        store.held_jobs = [job()]  # claimed by the sweep, after the store has looked
        with pytest.raises(StoreUnavailable):
            await bench.sweeper("default").run_once()
        store.lost = False
        store.answers.set()
        await turn
        assert len(bench.outbox) == 0
        await bench.claimer.run_once()
        assert [settled.ending for settled in bench.outbox.batch(100)[0]] == [Ending.RELEASED]

    play(scene)
