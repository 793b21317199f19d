"""Claims whose reply was lost: what the node holds without knowing is given back, however late the store
carried out the claim."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from duetime.engine.fetch.claimer import DOUBT_TIMEOUT
from duetime.engine.run.settler import Settler
from duetime.errors import StoreUnavailable
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Ending
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.store import (
    ClaimRequest,
    Claims,
    OfDeadNodes,
    OfNode,
    PastDeadline,
    Settled,
    Store,
    Successors,
)
from duetime.testing.conformance.drafts import death
from tests.unit.engine.backlog import NODE, Backlog, Bench
from tests.unit.engine.fake_store import job, play

LOST = job(7)


class Losing(Backlog):
    """The reply to the first claim is lost. The claim itself may be carried out much later."""

    def __init__(self, on_held: list[Claimed] | None = None) -> None:
        super().__init__()
        self.on_held = [] if on_held is None else on_held
        self.replies = 0
        self.recalls = 0
        self.on_answer: Callable[[], object] = lambda: None

    async def claim(self, request: ClaimRequest) -> Claims:
        self.replies += 1
        if self.replies == 1:
            raise StoreUnavailable("the reply was lost")
        return await super().claim(request)

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        self.recalls += 1
        self.on_answer()
        return list(self.on_held)


async def turn(bench: Bench) -> None:
    wait = await bench.claimer.run_once()
    assert wait is not None
    assert wait <= SECOND
    await asyncio.sleep(wait / SECOND)


def given_back(bench: Bench) -> list[tuple[int, Ending]]:
    return [(settlement.id.int, settlement.ending) for settlement in bench.outbox.batch(100)[0]]


@pytest.mark.parametrize("late", [0, 3, 60])
def test_a_claim_that_is_carried_out_late_is_noticed(late: int) -> None:
    """It waited for a lock, for the disk or for a standby, while its node asked what it holds and heard:
    nothing."""

    async def scene() -> None:
        await asyncio.sleep(1)
        bench = Bench(store := Losing())
        with pytest.raises(StoreUnavailable):
            await bench.claimer.run_once()
        for _ in range(late):
            await turn(bench)
        assert given_back(bench) == []
        store.on_held.append(LOST)
        for _ in range(late + 2):
            await turn(bench)
        assert given_back(bench) == [(7, Ending.RELEASED)]

    play(scene)


def test_the_store_is_asked_more_and_more_rarely_and_then_no_more() -> None:
    async def scene() -> None:
        await asyncio.sleep(1)
        bench = Bench(store := Losing())
        with pytest.raises(StoreUnavailable):
            await bench.claimer.run_once()
        for _ in range(3 * DOUBT_TIMEOUT // SECOND):
            await turn(bench)
        assert 5 < store.recalls < 15
        assert bench.capacity.lost_reply_at is None

    play(scene)


def test_another_lost_reply_is_asked_about_at_once() -> None:
    async def scene() -> None:
        await asyncio.sleep(1)
        bench = Bench(store := Losing())
        with pytest.raises(StoreUnavailable):
            await bench.claimer.run_once()
        for _ in range(40):
            await turn(bench)
        store.replies = 0
        with pytest.raises(StoreUnavailable):
            await turn(bench)
        store.on_held.append(LOST)
        await turn(bench)
        assert given_back(bench) == [(7, Ending.RELEASED)]

    play(scene)


def test_what_was_settled_while_the_store_answered_is_no_stranger() -> None:
    async def scene() -> None:
        bench = Bench(store := Losing([LOST]))
        with pytest.raises(StoreUnavailable):
            await bench.claimer.run_once()
        bench.worker.take([LOST])
        store.on_answer = lambda: bench.worker._withdraw(lambda _: True)  # it ran, and was settled
        await bench.claimer.run_once()
        assert given_back(bench) == []

    play(scene)


class Passing(Losing):
    """Answers a settlement when it is told to, with a successor."""

    def __init__(self) -> None:
        super().__init__([LOST])
        self.settling, self.answers = asyncio.Event(), asyncio.Event()
        self.asked_for: list[int] = []

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        if settlements:
            assert successors is not None
            self.asked_for.append(successors.room)
            self.settling.set()
            await self.answers.wait()
        return Settled([], [LOST] if len(self.asked_for) == 1 else [])


def test_successor_whose_reply_is_on_its_way_is_not_given_back() -> None:
    """It would run here, and again where it is claimed next."""

    async def scene() -> None:
        bench = Bench(store := Passing())
        takes = Successors(NODE, 0, ("default",), ("task",))
        settler = Settler(
            cast(Store, store), bench.worker, bench.outbox, Observers(), lambda _: None, lambda: takes
        )
        with pytest.raises(StoreUnavailable):
            await bench.claimer.run_once()
        settle_one(bench, 1)
        settling = asyncio.create_task(settler.run_once())
        await store.settling.wait()
        await bench.claimer.run_once()
        assert given_back(bench) == [(1, Ending.FAILED)], "being written"
        assert bench.capacity.recalling
        store.answers.set()
        await settling
        assert bench.worker.known() == {(LOST.id, 1)}
        settle_one(bench, 2)
        await settler.run_once()
        assert store.asked_for == [1, 0], "while the store is asked, other nodes take the successors"
        await bench.claimer.run_once()
        assert given_back(bench) == []
        assert not bench.capacity.recalling

    play(scene)


def settle_one(bench: Bench, number: int) -> None:
    limited = job(number)._replace(limit_key="task")
    bench.capacity.claimed([limited])
    bench.outbox.add(limited, death(limited, 0))
