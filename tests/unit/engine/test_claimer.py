"""What a node asks the store for: urgent lanes first, now and then the patient ones, never more than its room
and its brake allow."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from duetime.engine.fetch.claimer import (
    BATCH,
    LEAD,
    MIN_PORTION,
    NEXT_DUE_MARGIN,
    OUT_OF_ORDER_EVERY,
    PREFETCH,
    SMALL_BATCH,
    URGENT_FOR,
    Backpressure,
    Claimer,
    Fetch,
)
from duetime.engine.fetch.cursors import ClaimCursors
from duetime.engine.fetch.sweeper import MAX_SWEPT, MAX_URGENT, Sweeper
from duetime.engine.node.loop import IMMEDIATELY, Loop
from duetime.engine.run.worker import GIVE_WAY_INTERVAL
from duetime.invoker import Context
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND
from duetime.observer import Observers
from duetime.store import ClaimRequest, Claims, Due, Lane, Store
from tests.unit.engine.backlog import NODE, SLOTS, Backlog, Bench, Never, make_worker
from tests.unit.engine.fake_store import job, play, virtual_clock


def test_under_a_flood_the_low_ones_have_a_part_of_every_eighth_claim() -> None:
    async def scene() -> None:
        brought = await Bench(Backlog(p9=10_000, p0=3)).turns(OUT_OF_ORDER_EVERY)
        assert [set(priorities) for priorities in brought] == [{9}] * (OUT_OF_ORDER_EVERY - 1) + [{0}]
        assert len(brought[-1]) == SLOTS // 4

    play(scene)


@pytest.mark.parametrize("takes", [0.0, 0.003, 0.15, 1.0])
def test_no_instant_is_left_out_between_a_claim_and_the_question_what_follows(takes: float) -> None:
    """A job due in between would start at the next chance poll: most of a second late."""
    horizons: list[int] = []

    class Slow(Backlog):
        async def claim(self, request: ClaimRequest) -> Claims:
            horizons.append(round(asyncio.get_running_loop().time() * SECOND) + request.prefetch)
            await asyncio.sleep(takes)
            return await super().claim(request)

        async def due_jobs(self, request: ClaimRequest) -> Due:
            horizons.append(round(asyncio.get_running_loop().time() * SECOND) + request.prefetch)
            assert request.prefetch >= 0
            return await super().due_jobs(request)

    async def scene() -> None:
        await Bench(Slow()).turns(1)
        [claimed_until, asked_from] = horizons
        assert asked_from < claimed_until or takes >= PREFETCH / SECOND  # so slow a store is late anyway

    play(scene)


def test_while_there_is_more_and_room_for_it_the_next_claim_does_not_wait_for_those_just_taken_to_run() -> (
    None
):
    async def scene() -> None:
        bench = Bench(Backlog(p5=10_000))
        assert await bench.claimer.run_once() == 0  # no room: something must run first
        bench.empty([job()] * SLOTS)
        bench.starts_soon(10 * BATCH)
        assert await bench.claimer.run_once() == IMMEDIATELY

    play(scene)


@pytest.mark.parametrize(("slots", "claims_first"), [(3 * BATCH, 3), (BATCH, 1)])
def test_jobs_just_taken_run_while_the_store_is_asked_for_more(slots: int, claims_first: int) -> None:
    """In the loop it lives in, and with a worker that starts them: as many claims as there is room for come
    before the first start."""
    seen: list[str] = []

    class Telling(Backlog):
        async def claim(self, request: ClaimRequest) -> Claims:
            seen.append("claim")
            return await super().claim(request)

    class Running(Never):
        async def invoke(self, context: Context, payload: bytes) -> Any:
            seen.append("start")

    async def scene() -> None:
        clock, store = virtual_clock(), Telling(p5=5 * BATCH)
        worker, _ = make_worker(clock, slots, Running())
        fetch = Fetch(cast(Store, store), worker, Backpressure(lambda: 0, lambda: 0.0, 1.0), NODE, ("task",))
        claimer = Claimer(fetch, clock, ClaimCursors(["default"]), lambda: 0)
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
        brought = await Bench(Backlog(p9=10_000, p5=1, p0=10_000)).turns(4 * OUT_OF_ORDER_EVERY)
        assert any(5 in priorities for priorities in brought)

    play(scene)


def test_without_a_flood_the_urgent_ones_are_always_first() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p9=4, p0=2))
        for _ in range(3 * OUT_OF_ORDER_EVERY):
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


def test_a_claim_asks_for_no_more_permits_than_there_are_slots() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p0=20))
        await bench.turns(4)
        await bench.sweeper("default").run_once()
        assert len(bench.store.requests) >= 4
        assert {request.permits for request in bench.store.requests} == {SLOTS}

    play(scene)


def test_jobs_with_and_without_a_limit_key_go_first_in_turns() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p0=10_000))
        await bench.turns(4)
        assert [request.keyed_first for request in bench.store.requests] == [True, False, True, False]

    play(scene)


def test_jobs_that_were_set_aside_are_followed_by_another_claim() -> None:
    class SettingAside(Backlog):
        async def claim(self, request: ClaimRequest) -> Claims:
            return (await super().claim(request))._replace(more=len(self.requests) == 1)

    async def scene() -> None:
        bench = Bench(SettingAside(p5=1))
        assert await bench.claimer.run_once() == IMMEDIATELY
        assert await bench.claimer.run_once() != IMMEDIATELY
        assert {lane.low for lane in bench.store.requests[1].lanes} == {0}

    play(scene)


SEEN = PREFETCH - NEXT_DUE_MARGIN  # so far ahead, a claim has certainly looked


@pytest.mark.parametrize(
    ("due_in", "wait"),
    [
        (None, SECOND),
        (SECOND // 2, SECOND // 2 - LEAD),
        (SEEN + 1, SEEN + 1 - LEAD),
        (SEEN, SEEN),
        (LEAD // 2, LEAD // 2),
    ],
)
def test_when_to_look_again(due_in: int | None, wait: int) -> None:
    """A little before a job falls due; but exactly when a rate allows the next start: before that, it would
    be asked in vain and again."""

    async def scene() -> None:
        bench = Bench(Backlog())
        bench.store.following = None if due_in is None else bench.clock.now() + due_in
        assert await bench.claimer.run_once() == wait

    play(scene)


@pytest.mark.parametrize("takes", [0.001, 0.01, 0.15])
def test_what_a_claim_just_missed_is_claimed_ahead_of_its_time(takes: float) -> None:
    """Near as it is when the claim has come back: taken at its time, it would start late by a round trip."""

    class Slow(Backlog):
        async def claim(self, request: ClaimRequest) -> Claims:
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
        bench = Bench(Backlog(p5=MAX_SWEPT))
        bench.starts_soon(10 * MAX_SWEPT)
        bench.cursors.exhausted(bench.clock.now(), bench.cursors.from_cursors())
        await bench.sweeper("default").run_once()
        [request] = bench.store.requests
        assert (request.room, request.sweep, request.urgent) == (MAX_SWEPT, True, False)
        assert {lane.priority for lane in bench.cursors.from_cursors() if lane.low == 0} == {5}
        assert bench.called == 1

    play(scene)


def test_sweep_that_took_all_jobs_wakes_no_other_node() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p5=SLOTS - 1))
        await bench.sweeper("default").run_once()
        assert (len(bench.store.requests), bench.called) == (1, 0)

    play(scene)


def test_lanes_that_are_new_are_left_to_the_claimer() -> None:
    """It takes more at once than a sweep does."""

    async def scene() -> None:
        await asyncio.sleep(1_000)
        bench = Bench(Backlog())
        bench.cursors.exhausted(bench.clock.now(), bench.cursors.from_cursors())
        sweeper = bench.sweeper()
        await sweeper.run_once()
        assert ("mail", 5, "default") in bench.cursors
        assert (bench.store.requests, bench.called) == ([], 1)
        assert {lane.low for lane in bench.cursors.from_cursors()} == {0}
        await asyncio.sleep(2)
        await sweeper.run_once()
        assert (len(bench.store.requests), bench.called) == (1, 1)

    play(scene)


def test_a_sweep_without_room_calls_the_claimer() -> None:
    """What is on its way may bring nothing, and then the claimer would sleep."""

    async def scene() -> None:
        bench = Bench(Backlog())
        with bench.capacity.reserve(SLOTS, sweep=False):
            await bench.sweeper("default").run_once()
        assert (bench.store.requests, bench.called) == ([], 1)

    play(scene)


@pytest.mark.parametrize("only", [(), ("bulk", "slow")])
def test_the_worker_and_the_lanes_learn_which_queues_are_limited(only: tuple[str, ...]) -> None:
    async def scene() -> None:
        bench = Bench(Backlog())
        await bench.sweeper(*only).run_once()
        assert bench.outbox.limited_queues == bench.cursors.limited == {"bulk", "slow"}

    play(scene)


async def crowded(slots_taken: int, pace: int = 0) -> tuple[Bench, Sweeper]:
    """A worker with jobs of priority 0 waiting, right after a sweep; `pace`: how many start in a tenth of a
    second."""
    bench = Bench(Backlog())
    bench.worker.take([job()._replace(id=UUID(int=number), priority=0) for number in range(slots_taken)])
    sweeper = bench.sweeper("default")
    await sweeper.run_once()
    bench.starts_soon(pace)
    bench.store.requests.clear()
    bench.store.waiting = {9: 40, 0: 40}
    return bench, sweeper


def test_an_urgent_job_is_fetched_past_the_crowd() -> None:
    async def scene() -> None:
        bench, sweeper = await crowded(SLOTS, pace=100)
        assert sweeper.hinted(JobHint("default", 9, 0))
        wait = await sweeper.run_once()
        [request] = bench.store.requests
        assert request.lanes == (Lane("default", 9, 0),)
        assert (request.sweep, request.urgent, request.room) == (True, True, MAX_URGENT)
        assert bench.worker._ready[0].priority == 9
        assert 0 < wait <= SECOND, "and the next look at everything is not put off"

    play(scene)


def test_urgent_job_is_left_to_a_node_with_a_free_slot_where_tasks_are_long() -> None:
    async def scene() -> None:
        bench, sweeper = await crowded(SLOTS, pace=0)
        sweeper.hinted(JobHint("default", 9, 0))
        await sweeper.run_once()
        assert bench.store.requests == []

    play(scene)


def test_who_is_not_more_urgent_than_the_crowd_is_not_fetched() -> None:
    async def scene() -> None:
        bench, sweeper = await crowded(SLOTS, pace=100)
        assert not sweeper.hinted(JobHint("default", 0, 0))
        assert not sweeper.hinted(JobHint("*", 9, 0))
        assert not sweeper.hinted(JobHint("default", 9, bench.clock.now() + SECOND))

    play(scene)


def test_few_jobs_wake_no_other_node() -> None:
    async def scene() -> None:
        _, sweeper = await crowded(0, pace=100)
        assert not sweeper.hinted(JobHint("default", 9, 0))

    play(scene)


def test_what_is_heard_of_is_looked_for_in_its_lane_alone_until_everything_is_looked_at_again() -> None:
    async def scene() -> None:
        bench = Bench(Backlog())
        await bench.turns(1)  # everything was looked at
        bench.store.requests.clear()
        assert bench.claimer.hinted(JobHint("default", 7, bench.clock.now()))
        bench.store.waiting = {7: 1, 9: 1}  # of the other one nothing was heard
        assert await bench.turns(1) == [[7]]
        assert [[lane.priority for lane in request.lanes] for request in bench.store.requests] == [
            [7],
            [7],
        ]  # the claim, and what follows
        assert await bench.turns(1) == [[9]]

    play(scene)


@pytest.mark.parametrize("trouble", ["lost hints", "full"])
def test_a_hint_does_not_narrow_the_look_when_more_may_be_due(trouble: str) -> None:
    async def scene() -> None:
        bench = Bench(Backlog())
        if trouble == "full":
            bench.store.waiting = {9: SLOTS}
        await bench.turns(1)
        if trouble == "lost hints":
            bench.claimer.hinted(JobHint("*", 0, 0))
        bench.claimer.hinted(JobHint("default", 1, bench.clock.now()))
        bench.store.waiting = {1: 1, 9: 1}
        assert await bench.turns(1) == [[9, 1]]

    play(scene)


def test_while_urgent_jobs_keep_coming_a_claim_is_small() -> None:
    async def scene() -> None:
        bench = Bench(Backlog(p0=100_000))
        bench.starts_soon(10 * BATCH)
        [first] = await bench.turns(1)
        assert len(first) == BATCH
        bench.claimer.hinted(JobHint("default", 0, bench.clock.now()))
        [same] = await bench.turns(1)
        assert len(same) == BATCH  # no more urgent than what is claimed anyway
        bench.claimer.hinted(JobHint("default", 9, bench.clock.now()))
        [small] = await bench.turns(1)
        assert len(small) == SMALL_BATCH
        await bench.clock.sleep(URGENT_FOR)
        [again] = await bench.turns(1)
        assert len(again) == BATCH

    play(scene)


@pytest.mark.parametrize(("peers", "portion"), [(0, 600), (1, 100), (4, MIN_PORTION)])
def test_before_their_time_jobs_are_taken_in_portions_where_others_come_for_them_too(
    peers: int, portion: int
) -> None:
    async def scene() -> None:
        bench = Bench(Backlog())
        bench.starts_soon(600 - SLOTS)
        bench.peers = peers
        bench.store.following = bench.clock.now() + SECOND // 2
        await bench.clock.sleep(await bench.claimer.run_once() or 0)
        bench.store.waiting = {5: 100_000}
        [ahead] = await bench.turns(1)
        assert len(ahead) == portion
        await bench.clock.sleep(LEAD)
        [due] = await bench.turns(1)
        assert len(due) == 600  # a due job does not wait for a batch

    play(scene)


def test_one_urgent_job_after_the_other_passes_the_crowd() -> None:
    """What was fetched past the others says nothing of how urgent these are."""

    async def scene() -> None:
        bench = Bench(Backlog(p0=SLOTS))
        await bench.claimer.run_once()
        sweeper = bench.sweeper("default")
        await sweeper.run_once()
        for _ in range(2):
            bench.empty([job()] * bench.capacity.held)
            bench.store.waiting = {9: 1}
            assert sweeper.hinted(JobHint("default", 9, bench.clock.now()))
            await sweeper.run_once()

    play(scene)


def test_a_lane_with_news_is_asked_alone() -> None:
    async def scene() -> None:
        bench = Bench(Backlog())
        await bench.claimer.run_once()
        assert all(len(request.lanes) == 10 for request in bench.store.requests)
        bench.store.requests.clear()
        bench.claimer.hinted(JobHint("default", 5, 0))
        await bench.claimer.run_once()
        asked = [[lane[:2] for lane in request.lanes] for request in bench.store.requests]
        assert asked == [[("default", 5)]] * 2  # the claim, and the next due time

    play(scene)


def test_claim_without_a_tenant_that_has_its_share_wants_to_know_of_settled_jobs() -> None:
    """They may be settled before the claim returns: no later one would wake the claimer."""
    seen: list[tuple[set[str], bool]] = []
    bench: Bench

    class Watched(Backlog):
        async def claim(self, request: ClaimRequest) -> Claims:
            seen.append(({lane.tenant for lane in request.lanes}, bench.claimer.hungry))
            return await super().claim(request)

    async def scene() -> None:
        nonlocal bench
        bench = Bench(Watched(p5=10_000))
        bench.cursors.hinted(JobHint("default", 4, 0, "other"))
        bench.cursors.hinted(JobHint("default", 5, 0, "default"))
        assert await bench.claimer.run_once() == IMMEDIATELY
        await bench.claimer.run_once()
        assert seen == [({"default", "other"}, False), ({"other"}, True)]

    play(scene)


class Limited(Backlog):
    """Its jobs have limit keys."""

    async def claim(self, request: ClaimRequest) -> Claims:
        found = await super().claim(replace(request, room=min(request.room, request.permits or 0)))
        return Claims([job._replace(limit_key=str(job.id)) for job in found.jobs])


def test_settled_jobs_bring_a_claim_when_one_of_their_permits_is_free() -> None:
    """A permit that is passed on at once leaves nothing to claim: the node would ask after every
    settlement."""

    async def scene() -> None:
        bench = Bench(Limited(p5=10_000))
        bench.starts_soon(BATCH)  # there is room; permits are only as many as slots
        await bench.claimer.run_once()
        [*held] = bench.worker._ready
        assert len(held) == SLOTS
        assert bench.worker.free_permits == 0
        assert not bench.claimer.settled()
        bench.worker.chains.leave(held[0], None)
        assert bench.claimer.settled()

    play(scene)


def test_permits_that_became_free_during_a_claim_are_used_by_the_next() -> None:
    async def scene() -> None:
        bench = Bench(Limited(p5=10_000))
        bench.starts_soon(BATCH)
        await bench.claimer.run_once()
        [*held] = bench.worker._ready
        claim = bench.store.claim

        async def settled_meanwhile(request: ClaimRequest) -> Claims:
            assert request.permits == 0
            bench.worker.chains.leave(held[0], None)
            return await claim(request)

        bench.store.claim = settled_meanwhile  # type: ignore[method-assign]
        assert await bench.claimer.run_once() == IMMEDIATELY

    play(scene)


def test_full_claim_makes_settlements_give_way_only_after_a_while() -> None:
    """The claim itself has just chosen among all jobs that are due."""

    async def scene() -> None:
        bench = Bench(Limited(p5=10_000))
        await bench.claimer.run_once()
        assert bench.capacity.backlogged
        assert bench.capacity.room == 0
        assert not bench.worker.gives_way()
        await asyncio.sleep(GIVE_WAY_INTERVAL / SECOND)
        assert bench.worker.gives_way()
        assert not bench.worker.gives_way()

    play(scene)
