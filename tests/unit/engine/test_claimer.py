"""What a node asks the store for: urgent lanes first, now and then the patient ones, never more than its room and its brake allow."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from uuid import UUID

import pytest

from duetime.engine.brake import Brake
from duetime.engine.claimer import (
    BATCH,
    FETCHED,
    HURRY,
    LEAD,
    ON_THE_WAY,
    PATIENT_EVERY,
    PREFETCH,
    SMALL_BATCH,
    SMALLEST_PORTION,
    SWEPT,
    Claimer,
    Sweeper,
)
from duetime.engine.lanes import Lanes
from duetime.engine.loop import AT_ONCE, Loop
from duetime.engine.worker import Worker
from duetime.invoker import Context
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed
from duetime.model.limit import Rate
from duetime.observer import Observers
from duetime.store import ClaimRequest, Lane, Store
from tests.unit.engine.backlog import ASKED, SLOTS, Backlog, Bench, Never, accept
from tests.unit.engine.paper import PaperStore, job, make_desk, play, virtual_clock


def test_under_a_flood_the_low_ones_have_a_part_of_every_eighth_claim() -> None:
    async def scene() -> None:
        brought = await Bench(Backlog(p9=10_000, p0=3)).turns(PATIENT_EVERY)
        assert [set(priorities) for priorities in brought] == [{9}] * (PATIENT_EVERY - 1) + [{0}]
        assert len(brought[-1]) == SLOTS // 4

    play(scene)


@pytest.mark.parametrize("takes", [0.0, 0.003, 0.15, 1.0])
def test_no_instant_is_left_out_between_a_claim_and_the_question_what_follows(takes: float) -> None:
    """A job due in between would start when somebody looks by chance: most of a second late."""
    horizons: list[int] = []

    class Slow(Backlog):
        async def claim(self, request: ClaimRequest) -> list[Claimed]:
            horizons.append(round(asyncio.get_running_loop().time() * SECOND) + request.prefetch)
            await asyncio.sleep(takes)
            return await super().claim(request)

        async def next_due(self, request: ClaimRequest) -> int | None:
            horizons.append(round(asyncio.get_running_loop().time() * SECOND) + request.prefetch)
            assert request.prefetch >= 0
            return await super().next_due(request)

    async def scene() -> None:
        await Bench(Slow()).turns(1)
        [claimed_until, asked_from] = horizons
        assert asked_from < claimed_until or takes >= PREFETCH / SECOND  # so slow a store is late anyway

    play(scene)


def test_while_there_is_more_and_room_for_it_the_next_claim_does_not_wait_for_those_just_taken_to_run() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p5=10_000))
        assert await bench.claimer.run_once() == 0  # no room: something must run first
        bench.worker.held = 0
        bench.worker.pace.begin(0)
        bench.worker.pace.starts = 1_000
        bench.worker.pace.end(1_000)
        assert await bench.claimer.run_once() == AT_ONCE
        bench.worker._places.part = 0.5  # of what comes has a gate
        bench.worker.held = 0
        assert await bench.claimer.run_once() == 0

    play(scene)


@pytest.mark.parametrize(("slots", "claims_first"), [(3 * BATCH, 3), (BATCH, 1)])
def test_jobs_just_taken_run_while_the_store_is_asked_for_more(slots: int, claims_first: int) -> None:
    """In the loop it lives in, and with a worker that starts them: as many claims as there is room for come before the first start."""
    seen: list[str] = []

    class Telling(Backlog):
        async def claim(self, request: ClaimRequest) -> list[Claimed]:
            seen.append("claim")
            return await super().claim(request)

    class Running(Never):
        async def invoke(self, context: Context, payload: bytes) -> Any:
            seen.append("start")

    async def scene() -> None:
        clock, store = virtual_clock(), Telling(p5=5 * BATCH)
        worker = Worker({"task": Running()}, clock, slots, lambda: None, accept, make_desk(PaperStore(), clock=clock))
        brake = Brake(lambda: 0, lambda: 0.0, 1.0)
        claimer = Claimer(cast(Store, store), clock, worker, Lanes(["default"]), brake, ASKED._replace(bounds=()), lambda: 0)
        loop = Loop(claimer, clock, Observers([]))
        running = asyncio.create_task(loop.run())
        while "start" not in seen:
            await asyncio.sleep(0)
        assert seen.index("start") == claims_first
        loop.stop()
        await running
        worker.dismiss()

    asyncio.run(scene())


def test_between_two_floods_the_one_in_the_middle_has_its_turn() -> None:
    async def scene() -> None:
        brought = await Bench(Backlog(p9=10_000, p5=1, p0=10_000)).turns(4 * PATIENT_EVERY)
        assert any(5 in priorities for priorities in brought)

    play(scene)


def test_without_a_flood_the_urgent_ones_are_always_first() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p9=4, p0=2))
        for _ in range(3 * PATIENT_EVERY):
            bench.store.waiting = {9: 4, 0: 2}
            [brought] = await bench.turns(1)
            assert brought == [9, 9, 9, 9, 0, 0]

    play(scene)


def test_an_urgent_job_behind_a_flood_comes_with_the_next_claim() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p0=100_000))
        await bench.turns(3)
        bench.store.waiting[9] = 1
        [brought] = await bench.turns(1)
        assert brought[0] == 9

    play(scene)


def test_every_request_tells_the_bounds() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p0=20))
        await bench.turns(4)
        await bench.sweeper("default").run_once()
        assert len(bench.store.requests) >= 4
        assert {request.bounds for request in bench.store.requests} == {ASKED.bounds}

    play(scene)


@pytest.mark.parametrize("rate", [Rate(5, 1_000), None])
def test_what_a_rate_holds_up_is_never_left_behind_a_bound(rate: Rate | None) -> None:
    async def scene() -> None:
        await asyncio.sleep(1_000)
        bench = Bench(Backlog(), rate=rate)
        await bench.turns(2)
        assert {lane.low == 0 for lane in bench.lanes.bounded()} == {rate is not None}

    play(scene)


SEEN = PREFETCH - ON_THE_WAY  # so far ahead, a claim has certainly looked


@pytest.mark.parametrize(
    ("due_in", "wait"),
    [(None, SECOND), (SECOND // 2, SECOND // 2 - LEAD), (SEEN + 1, SEEN + 1 - LEAD), (SEEN, SEEN), (LEAD // 2, LEAD // 2)],
)
def test_when_to_look_again(due_in: int | None, wait: int) -> None:
    """A little before a job falls due; but exactly when a rate allows the next start: before that, it would be asked in vain and again."""

    async def scene() -> None:
        bench = Bench(Backlog())
        bench.store.following = None if due_in is None else bench.clock.now() + due_in
        assert await bench.claimer.run_once() == wait

    play(scene)


@pytest.mark.parametrize("takes", [0.001, 0.01, 0.15])
def test_what_a_claim_just_missed_is_claimed_ahead_of_its_time(takes: float) -> None:
    """Near as it is when the claim has come back: taken at its time, it would start late by a round trip."""

    class Slow(Backlog):
        async def claim(self, request: ClaimRequest) -> list[Claimed]:
            self.following = round(asyncio.get_running_loop().time() * SECOND) + request.prefetch + 1
            await asyncio.sleep(takes)
            return await super().claim(request)

    async def scene() -> None:
        bench = Bench(Slow())
        wait = await bench.claimer.run_once()
        assert bench.store.following is not None
        assert wait == max(0, bench.store.following - LEAD - bench.clock.now())

    play(scene)


def test_a_busy_machine_claims_nothing() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p5=10), load=1.5)
        assert await bench.turns(3) == [[], [], []]
        await bench.sweeper().run_once()
        assert bench.store.requests == []

    play(scene)


def test_a_sweep_takes_a_few_and_lets_the_next_claim_find_the_others() -> None:
    """So that an urgent job need not wait long for its connection."""

    async def scene() -> None:
        await asyncio.sleep(1_000)
        bench = Bench(Backlog(p5=SWEPT))
        bench.worker.may_start = lambda: True
        bench.worker.pace.soon = lambda: 10 * SWEPT  # type: ignore[method-assign]  # measured elsewhere
        bench.lanes.exhausted(bench.clock.now(), bench.lanes.bounded())
        await bench.sweeper("default").run_once()
        [request] = bench.store.requests
        assert (request.room, request.sweep, request.urgent) == (SWEPT, True, False)
        assert {lane.priority for lane in bench.lanes.bounded() if lane.low == 0} == {5}
        assert bench.called == 1

    play(scene)


def test_a_sweep_that_took_all_there_was_calls_nobody() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p5=SLOTS - 1))
        bench.worker.may_start = lambda: True
        await bench.sweeper("default").run_once()
        assert (len(bench.store.requests), bench.called) == (1, 0)

    play(scene)


def test_queues_that_are_new_are_met_by_name_and_left_to_the_claimer() -> None:
    """It takes more at once than a sweep does."""

    async def scene() -> None:
        await asyncio.sleep(1_000)
        bench = Bench(Backlog())
        bench.worker.may_start = lambda: True
        bench.lanes.exhausted(bench.clock.now(), bench.lanes.bounded())
        sweeper = bench.sweeper()
        await sweeper.run_once()
        assert "mail" in bench.lanes
        assert (bench.store.requests, bench.called) == ([], 1)
        assert {lane.low for lane in bench.lanes.bounded()} == {0}
        await asyncio.sleep(2)
        await sweeper.run_once()
        assert (len(bench.store.requests), bench.called) == (1, 1)

    play(scene)


def test_a_sweep_without_room_calls_the_claimer() -> None:
    """What is on its way may bring nothing, and then the claimer would sleep."""

    async def scene() -> None:
        bench = Bench(Backlog())
        bench.worker.reserved = SLOTS
        await bench.sweeper("default").run_once()
        assert (bench.store.requests, bench.called) == ([], 1)

    play(scene)


@pytest.mark.parametrize("only", [(), ("bulk", "slow")])
def test_the_worker_and_the_lanes_learn_which_queues_are_limited(only: tuple[str, ...]) -> None:
    async def scene() -> None:
        bench = Bench(Backlog())
        await bench.sweeper(*only).run_once()
        assert bench.worker.limited == bench.lanes.limited == {"bulk", "slow"}

    play(scene)


async def crowded(slots_taken: int, pace: int = 0) -> tuple[Bench, Sweeper]:
    """A worker with jobs of priority 0 waiting, right after a sweep; `pace`: how many start in a tenth of a second."""
    bench = Bench(Backlog())
    bench.worker.may_start = lambda: False  # nothing starts: what is taken stays
    bench.worker.take([job()._replace(id=UUID(int=number), priority=0) for number in range(slots_taken)])
    bench.worker.may_start = lambda: True
    sweeper = bench.sweeper("default")
    await sweeper.run_once()
    bench.worker.pace.soon = lambda: pace  # type: ignore[method-assign]  # measured elsewhere
    bench.store.requests.clear()
    bench.store.waiting = {9: 40, 0: 40}
    return bench, sweeper


def test_an_urgent_job_is_fetched_past_the_crowd() -> None:
    async def scene() -> None:
        bench, sweeper = await crowded(SLOTS, pace=100)
        assert sweeper.heard(JobHint("default", 9, 0))
        wait = await sweeper.run_once()
        [request] = bench.store.requests
        assert request.lanes == (Lane("default", 9, 0),)
        assert (request.sweep, request.urgent, request.room) == (True, True, FETCHED)
        assert bench.worker._ready[0].priority == 9
        assert 0 < wait <= SECOND, "and the next look at everything is not put off"

    play(scene)


def test_where_tasks_are_long_an_urgent_job_is_left_to_whoever_has_a_slot() -> None:
    async def scene() -> None:
        bench, sweeper = await crowded(SLOTS, pace=0)
        sweeper.heard(JobHint("default", 9, 0))
        await sweeper.run_once()
        assert bench.store.requests == []

    play(scene)


def test_who_is_not_more_urgent_than_the_crowd_is_not_fetched() -> None:
    async def scene() -> None:
        bench, sweeper = await crowded(SLOTS, pace=100)
        assert not sweeper.heard(JobHint("default", 0, 0))
        assert not sweeper.heard(JobHint("*", 9, 0))
        assert not sweeper.heard(JobHint("default", 9, bench.clock.now() + SECOND))

    play(scene)


def test_without_a_crowd_nobody_needs_fetching() -> None:
    async def scene() -> None:
        _, sweeper = await crowded(0, pace=100)
        assert not sweeper.heard(JobHint("default", 9, 0))

    play(scene)


def test_what_is_heard_of_is_looked_for_in_its_lane_alone_until_everything_is_looked_at_again() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(), rate=None)
        await bench.turns(1)  # everything was looked at
        bench.store.requests.clear()
        assert bench.claimer.heard(JobHint("default", 7, bench.clock.now()))
        bench.store.waiting = {7: 1, 9: 1}  # of the other one nothing was heard
        assert await bench.turns(1) == [[7]]
        assert [[lane.priority for lane in request.lanes] for request in bench.store.requests] == [[7], [7]]  # the claim, and what follows
        assert await bench.turns(1) == [[9]]

    play(scene)


@pytest.mark.parametrize("trouble", ["lost hints", "full"])
def test_a_hint_does_not_narrow_the_look_when_more_may_be_due(trouble: str) -> None:
    async def scene() -> None:
        bench = Bench(Backlog(), rate=None)
        if trouble == "full":
            bench.store.waiting = {9: SLOTS}
        await bench.turns(1)
        if trouble == "lost hints":
            bench.claimer.heard(JobHint("*", 0, 0))
        bench.claimer.heard(JobHint("default", 1, bench.clock.now()))
        bench.store.waiting = {1: 1, 9: 1}
        assert await bench.turns(1) == [[9, 1]]

    play(scene)


def test_while_urgent_jobs_keep_coming_a_claim_is_small() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p0=100_000), rate=None)
        bench.worker.pace.soon = lambda: 10 * BATCH  # type: ignore[method-assign]  # measured elsewhere
        [first] = await bench.turns(1)
        assert len(first) == BATCH
        bench.claimer.heard(JobHint("default", 0, bench.clock.now()))
        [same] = await bench.turns(1)
        assert len(same) == BATCH  # no more urgent than what is claimed anyway
        bench.claimer.heard(JobHint("default", 9, bench.clock.now()))
        [small] = await bench.turns(1)
        assert len(small) == SMALL_BATCH
        await bench.clock.sleep(HURRY)
        [again] = await bench.turns(1)
        assert len(again) == BATCH

    play(scene)


@pytest.mark.parametrize(("peers", "portion"), [(0, 600), (1, 100), (4, SMALLEST_PORTION)])
def test_before_their_time_jobs_are_taken_in_portions_where_others_come_for_them_too(peers: int, portion: int) -> None:
    async def scene() -> None:
        bench = Bench(Backlog(), rate=None)
        bench.worker.pace.soon = lambda: 600 - SLOTS  # type: ignore[method-assign]  # measured elsewhere
        bench.peers = peers
        bench.store.following = bench.clock.now() + SECOND // 2
        await bench.clock.sleep(await bench.claimer.run_once() or 0)
        bench.store.waiting = {5: 100_000}
        [ahead] = await bench.turns(1)
        assert len(ahead) == portion
        await bench.clock.sleep(LEAD)
        [due] = await bench.turns(1)
        assert len(due) == 600  # nobody waits for company when it is time

    play(scene)


def test_one_urgent_job_after_the_other_passes_the_crowd() -> None:
    """What was fetched past the others says nothing of how urgent these are."""

    async def scene() -> None:
        bench = Bench(Backlog(p0=SLOTS))
        await bench.claimer.run_once()
        sweeper = bench.sweeper("default")
        await sweeper.run_once()
        for _ in range(2):
            bench.worker.held = 0
            bench.store.waiting = {9: 1}
            assert sweeper.heard(JobHint("default", 9, bench.clock.now()))
            await sweeper.run_once()

    play(scene)


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_lane_with_news_is_asked_alone_and_for_what_the_news_was(exclusive: bool) -> None:
    async def scene() -> None:
        bench = Bench(Backlog(), rate=None)
        await bench.claimer.run_once()
        assert all(len(request.lanes) == 10 and request.exclusive for request in bench.store.requests)
        bench.store.requests.clear()
        bench.claimer.heard(JobHint("default", 5, 0, exclusive))
        await bench.claimer.run_once()
        asked = [([lane[:2] for lane in request.lanes], request.exclusive) for request in bench.store.requests]
        assert asked == [([("default", 5)], exclusive)] * 2  # what to claim, and what is due next

    play(scene)
