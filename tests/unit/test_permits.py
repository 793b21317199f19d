"""Permits: which due jobs may start, under limits, rates, overlap and queue limits, and whose turn it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from duetime.model.instant import SECOND, Micros
from duetime.model.job import JobDraft, Overlap
from duetime.model.limit import Queue, Rate, TaskLimit
from duetime.model.permits import (
    ASK_OVERDUE,
    MIN_ASK_INTERVAL,
    READY_PER_KEY,
    Candidate,
    Decision,
    KeyUse,
    QueueUse,
    Usage,
    decide,
    in_turns,
    promotable,
    schedule_permit,
    waiting_when_stored,
)
from duetime.testing.conformance.drafts import job as draft

NOW: Micros = 1_000 * SECOND
HOURLY = Rate(1, 3_600 * SECOND)
SCHEDULE = UUID(int=1 << 64)
TASK = "task"


def job(number: int, key: str | None = None, **changes: Any) -> Candidate:
    plain = Candidate(UUID(int=number), "default", 5, NOW - SECOND, NOW - SECOND, 0, TASK, key, None, None)
    return plain._replace(**changes)


def of_schedule(number: int, overlap: str = Overlap.QUEUE, **changes: Any) -> Candidate:
    return job(number, schedule_id=SCHEDULE, overlap=overlap, **changes)


def limits(max_running: int | None = None, rate: Rate | None = None) -> dict[str, TaskLimit]:
    return {TASK: TaskLimit(TASK, max_running, rate)}


def ids(*numbers: int) -> list[UUID]:
    return [UUID(int=number) for number in numbers]


def numbers(jobs: Sequence[Candidate]) -> list[int]:
    return [one.id.int for one in jobs]


def decided(candidates: Sequence[Candidate], usage: Usage, room: int = 100, **named: Any) -> Decision:
    return decide(candidates, usage, room, named.pop("permits", room), **named)


# Limits


def test_job_waits_when_all_permits_of_its_key_are_in_use() -> None:
    usage = Usage(NOW, limits(2), {"a": KeyUse(permits=1)})
    decision = decided([job(1, "a"), job(2, "a"), job(3, "b")], usage)
    assert decision.start == ids(1, 3)
    assert decision.wait == {UUID(int=2): "a"}
    assert decision.set_aside


def test_prefetched_job_stays_claimable_when_its_limit_is_reached() -> None:
    decision = decided([job(1, "a", due_at=NOW + 1)], Usage(NOW, limits(1), {"a": KeyUse(permits=1)}))
    assert decision == Decision()


def test_key_without_a_limit_starts_everything() -> None:
    decision = decided([job(number, "a") for number in range(1, 50)], Usage(NOW))
    assert len(decision.start) == 49
    assert not decision.wait


def test_room_and_permits_bound_the_starts() -> None:
    jobs = [job(1, "a"), job(2, "b"), job(3), job(4)]
    decision = decided(jobs, Usage(NOW), room=3, permits=1, keyed_first=True)
    assert decision.start == ids(1, 3, 4)
    assert decision.left == ids(2)


def test_jobs_left_beyond_the_ready_ones_of_a_key_wait() -> None:
    jobs = [job(number, "a") for number in range(1, READY_PER_KEY + 4)]
    decision = decided(jobs, Usage(NOW), room=1)
    assert decision.start == ids(1)
    assert decision.wait == dict.fromkeys(ids(READY_PER_KEY + 2, READY_PER_KEY + 3), "a")


# Turns


def test_keys_take_turns_within_a_lane() -> None:
    jobs = [job(1, "a"), job(2, "a"), job(3, "a"), job(4, "b"), job(5)]
    assert numbers(list(in_turns(jobs, {}, keyed_first=False))) == [5, 1, 4, 2, 3]
    assert numbers(list(in_turns(jobs, {}, keyed_first=True))) == [1, 4, 5, 2, 3]


def test_lanes_keep_their_order() -> None:
    jobs = [job(1, "a", priority=9), job(2, "a", priority=9), job(3, "b", priority=5)]
    assert numbers(list(in_turns(jobs, {}, keyed_first=False))) == [1, 2, 3]


def test_key_served_longest_ago_goes_first() -> None:
    keys = {"a": KeyUse(served_at=NOW), "b": KeyUse(served_at=NOW - SECOND)}
    assert numbers(list(in_turns([job(1, "a"), job(2, "b"), job(3, "c")], keys, keyed_first=True))) == [
        3,
        2,
        1,
    ]


def test_claims_of_one_job_serve_all_keys_in_turn() -> None:
    keys: dict[str, KeyUse] = {}
    waiting = [job(number, "abc"[number % 3]) for number in range(30)]
    served: list[str | None] = []
    for claim in range(9):
        decision = decided(waiting, Usage(NOW + claim, keys=keys), room=1, keyed_first=True)
        keys.update(decision.keys)
        [started] = [one for one in waiting if one.id in decision.start]
        waiting.remove(started)
        served.append(started.limit_key)
    assert Counter(served) == {"a": 3, "b": 3, "c": 3}
    assert all(len(set(served[first : first + 3])) == 3 for first in (0, 3, 6))


# Rates


def test_one_job_asks_again_when_the_rate_allows_the_next_start() -> None:
    decision = decided([job(1, "a"), job(2, "a"), job(3, "a")], Usage(NOW, limits(rate=HOURLY)))
    asks_at = NOW + HOURLY.period
    assert decision.start == ids(1)
    assert decision.ask_at == {UUID(int=2): asks_at}
    assert decision.wait == {UUID(int=3): "a"}
    assert (decision.keys["a"].spent_until, decision.keys["a"].asks_at) == (asks_at, asks_at)


def test_others_wait_while_one_job_is_to_ask() -> None:
    use = KeyUse(spent_until=NOW + HOURLY.period, asks_at=NOW + 1)
    decision = decided([job(1, "a")], Usage(NOW, limits(rate=HOURLY), {"a": use}))
    assert decision.wait == {UUID(int=1): "a"}
    assert not decision.ask_at


def test_fast_rate_is_asked_for_several_starts_together() -> None:
    fast = Rate(1_000, SECOND)
    use = KeyUse(spent_until=NOW + SECOND)
    decision = decided([job(1, "a")], Usage(NOW, limits(rate=fast), {"a": use}))
    assert decision.ask_at == {UUID(int=1): NOW + MIN_ASK_INTERVAL}


def test_prefetched_job_under_a_rate_is_not_started_early() -> None:
    assert decided([job(1, "a", due_at=NOW + 1)], Usage(NOW, limits(rate=HOURLY))) == Decision()


# Overlap


def test_second_job_of_a_schedule_waits_for_the_first() -> None:
    decision = decided([of_schedule(1), of_schedule(2)], Usage(NOW))
    assert decision.start == ids(1)
    assert decision.wait == {UUID(int=2): schedule_permit(SCHEDULE)}


def test_overlap_skip_names_the_job_in_the_way() -> None:
    usage = Usage(NOW, rivals={UUID(int=2): UUID(int=1)})
    decision = decided([of_schedule(2, Overlap.SKIP)], usage)
    assert decision.skip == {UUID(int=2): UUID(int=1)}
    assert not decision.start


def test_overlap_cancel_previous_stops_the_running_job_and_waits() -> None:
    usage = Usage(NOW, rivals={UUID(int=2): UUID(int=1)})
    decision = decided([of_schedule(2, Overlap.CANCEL_PREVIOUS)], usage)
    assert decision.cancel == {UUID(int=1)}
    assert decision.wait == {UUID(int=2): schedule_permit(SCHEDULE)}


def test_retry_keeps_its_place_before_later_fires() -> None:
    jobs = [of_schedule(1, fire_time=NOW - 5), of_schedule(2, fire_time=NOW - 9), of_schedule(3, attempt=1)]
    assert decided(jobs, Usage(NOW)).start == ids(3)
    usage = Usage(NOW, rivals={UUID(int=3): UUID(int=9)})
    assert decided([of_schedule(3, Overlap.SKIP, attempt=1)], usage) == Decision()


# Queues


def test_queue_starts_no_more_than_its_limit() -> None:
    use = QueueUse(Queue("default", max_running=3), running=1, spent_until=0)
    decision = decided([job(number) for number in range(1, 6)], Usage(NOW, queues={"default": use}))
    assert decision.start == ids(1, 2)
    assert not decision.left, "another node cannot take them either"


def test_queue_rate_is_spent_by_each_start() -> None:
    rate = Rate(2, 10 * SECOND)
    use = QueueUse(Queue("default", rate=rate), running=50, spent_until=0)
    decision = decided([job(1), job(2), job(3)], Usage(NOW, queues={"default": use}))
    assert decision.start == ids(1, 2)
    assert decision.queues == {"default": NOW + rate.period}


# Promotion


def test_starts_promote_as_many_waiting_jobs_as_the_limit_leaves_free() -> None:
    assert decided([job(1, "a")], Usage(NOW, limits(5), {"a": KeyUse(permits=1)})).promote == {"a": 1}
    assert decided([job(1, "a")], Usage(NOW, limits(1))).promote == {}
    assert decided([job(1, "a")], Usage(NOW, limits(rate=HOURLY))).promote == {"a": 1}


def test_sweep_promotes_waiting_jobs_while_permits_are_free() -> None:
    assert promotable(TaskLimit(TASK, 3), KeyUse(permits=1), NOW) == 2
    assert promotable(TaskLimit(TASK, 3), KeyUse(permits=4), NOW) == 0
    assert promotable(TaskLimit(TASK), KeyUse(permits=4), NOW) == READY_PER_KEY


def test_sweep_promotes_one_job_of_a_rate_if_the_asking_job_is_gone() -> None:
    limit = TaskLimit(TASK, rate=HOURLY)
    assert promotable(limit, KeyUse(asks_at=NOW + SECOND), NOW) == 0
    assert promotable(limit, KeyUse(asks_at=NOW - ASK_OVERDUE + 1), NOW) == 0
    assert promotable(limit, KeyUse(asks_at=NOW - ASK_OVERDUE), NOW) == 1


def test_flood_of_one_key_is_stored_waiting_except_for_the_most_urgent() -> None:
    flood = [draft(NOW - number, limit_key="a") for number in range(READY_PER_KEY + 5)]
    others: list[JobDraft] = [
        draft(NOW, limit_key="b"),
        draft(NOW),
        draft(NOW + SECOND, limit_key="a"),
        draft(NOW, limit_key="a", overlap="queue"),
    ]
    urgent = draft(NOW, limit_key="a", priority=9)
    waiting = waiting_when_stored([*flood, *others, urgent], NOW)
    assert waiting == dict.fromkeys([one.id for one in flood[:6]], "a"), "the latest of them wait"


# Everything together

KEYS = st.sampled_from([None, "a", "b"])
CANDIDATES = st.lists(
    st.tuples(KEYS, st.sampled_from([None, *Overlap]), st.integers(0, 1), st.integers(-5, 2)), max_size=40
)
RATES = st.none() | st.builds(Rate, st.integers(1, 5), st.just(10 * SECOND))
USES = st.builds(
    KeyUse, st.integers(0, 3), st.integers(NOW - 5, NOW + 20 * SECOND), st.integers(NOW - 5, NOW + 5)
)


@given(
    CANDIDATES,
    st.integers(0, 30),
    st.integers(0, 30),
    st.none() | st.integers(1, 4),
    RATES,
    USES,
    st.booleans(),
)
def test_no_decision_exceeds_a_bound_and_each_due_job_has_one_fate(
    given_jobs: list[tuple[str | None, str | None, int, int]],
    room: int,
    permits: int,
    max_running: int | None,
    rate: Rate | None,
    use: KeyUse,
    keyed_first: bool,
) -> None:
    jobs = [
        job(
            number,
            key,
            overlap=overlap,
            schedule_id=None if overlap is None else SCHEDULE,
            attempt=attempt,
            due_at=NOW + due,
        )
        for number, (key, overlap, attempt, due) in enumerate(given_jobs)
    ]
    queue = QueueUse(Queue("default", max_running=20), running=5, spent_until=0)
    usage = Usage(NOW, limits(max_running, rate), {"a": use, "b": KeyUse()}, queues={"default": queue})
    decision = decide(jobs, usage, room, permits, keyed_first)
    started = [one for one in jobs if one.id in decision.start]
    keyed = Counter(one.limit_key for one in started if one.limit_key is not None)
    assert len(decision.start) == len(set(decision.start)) <= min(room, 15)
    assert keyed.total() <= permits
    for key, starts in keyed.items():
        before = usage.keys[key]
        assert max_running is None or before.permits + starts <= max_running
        assert rate is None or starts <= rate.allowed(before.spent_until, NOW)
        assert rate is None or all(one.due_at <= NOW for one in started if one.limit_key == key)
    assert sum(one.overlap is not None for one in started) <= 1
    fates = Counter([*decision.start, *decision.wait, *decision.ask_at, *decision.skip, *decision.left])
    assert all(count == 1 for count in fates.values())
    assert fates.keys() <= {one.id for one in jobs}
    asking = Counter(one.limit_key for one in jobs if one.id in decision.ask_at)
    assert all(count == 1 for count in asking.values())
    early = {one.id for one in jobs if one.due_at > NOW}
    assert not early & (
        decision.wait.keys() | decision.skip.keys() | decision.ask_at.keys() | set(decision.left)
    )
