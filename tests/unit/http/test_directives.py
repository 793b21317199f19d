"""What the directives of a call lead to: failed with a delay of its own, given up, handed over; and reports
that never come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from duetime.clock import Clock
from duetime.engine.node.reaper import CHECK_JOBS_EVERY, NO_REPORT, UNKNOWN_TARGET_GRACE, Reaper
from duetime.engine.run.perform import _judge, decide
from duetime.invoker import Context, Policies
from duetime.model.codec import encode
from duetime.model.events import AttemptsSettled, Event
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, Delivery, Ending, State
from duetime.model.lease import NodeId
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.settle import AttemptFailed, Directive, GiveUp, HandOver, Settlement
from duetime.observer import Observers
from duetime.store import OfDeadNodes, PastDeadline, Settled, Store

NOW: Micros = 1_000 * SECOND


class StillClock:
    def now(self) -> Micros:
        return NOW

    def noise(self) -> float:
        return 1.0


CLOCK = cast("Clock", StillClock())


def job(number: int = 3, **fields: Any) -> Claimed:
    plain = Claimed(
        UUID(int=number),
        2,
        "@http",
        b"{}",
        NOW,
        "mail",
        5,
        NOW,
        0,
        0,
        False,
        None,
        None,
        None,
        None,
        None,
        None,
        "default",
    )
    return plain._replace(**fields)


def settled(
    verdict: Directive, of: Claimed | None = None, delivery: Delivery = Delivery.AT_LEAST_ONCE, **retry: Any
) -> Settlement:
    return decide(of or job(), _judge(verdict), Policies(Retry(**retry), None, delivery), NOW, CLOCK)


@pytest.mark.parametrize(
    ("wish", "retry", "wait"),
    [
        (None, {}, 5),
        ("0s", {}, 5),
        ("7s", {}, 7),
        ("2s", {}, 2),
        ("2h", {}, 3_600),
        ("2m", {"max_delay": "90s"}, 90),
        ("7s", {"delays": ["1s"]}, 7),
    ],
)
def test_a_wish_is_granted_as_far_as_the_policy_allows(
    wish: str | None, retry: dict[str, Any], wait: int
) -> None:
    done = settled(AttemptFailed("busy", {"status": 429}, wish), **retry)
    assert (done.state, done.due_at - NOW, done.failures, done.error) == (
        State.PENDING,
        wait * SECOND,
        1,
        "busy",
    )


def test_the_last_failure_keeps_its_result() -> None:
    done = settled(AttemptFailed("busy", {"status": 503}), max_attempts=1)
    assert (done.state, done.result, done.error) == (State.DEAD, b'{"status":503}', "busy")


def test_a_wish_beyond_the_job_s_age_is_the_end() -> None:
    assert settled(AttemptFailed("busy", None, "1m"), max_age="30s").state is State.DEAD


def test_given_up_is_dead_at_once_with_reason_and_result() -> None:
    done = settled(GiveUp("HTTP 404", {"status": 404}))
    assert (done.state, done.ending, done.failures, done.error) == (State.DEAD, Ending.FAILED, 1, "HTTP 404")
    assert done.result == b'{"status":404}'
    assert settled(GiveUp("gone")).result is None
    assert settled(GiveUp("gone", object())).result is None
    assert settled(GiveUp("gone"), job(cancel_requested=True)).state is State.CANCELLED


def test_handed_over_runs_on_until_its_deadline() -> None:
    done = settled(HandOver("10m"), job(failures=2, losses=1))
    assert (done.state, done.ending, done.due_at - NOW) == (State.RUNNING, Ending.HANDED_OVER, 600 * SECOND)
    assert (done.failures, done.losses, done.result, done.error) == (2, 1, None, None)
    assert settled(HandOver("10m"), job(cancel_requested=True)).state is State.CANCELLED


# -- reports that never come
# ------------------------------------------------------------------------------------------
class LateStore:
    """Has overdue jobs; another reaper settles some of them first."""

    def __init__(self, late: list[list[Claimed]], refused: Sequence[UUID] = ()) -> None:
        self._late = late
        self._refused = refused
        self.settled: list[Settlement] = []
        self.hints: list[JobHint] = []
        self.looks = 0

    async def expire_nodes(self, me: NodeId) -> list[NodeId]:
        return []

    async def running_jobs(self, selection: OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        if isinstance(selection, OfDeadNodes):
            return []
        self.looks += 1
        return self._late.pop(0) if self._late else []

    async def settle(self, settlements: list[Settlement]) -> Settled:
        self.settled += settlements
        return Settled([one.id for one in settlements if one.id in self._refused], [])

    async def hint(self, hints: list[JobHint]) -> None:
        self.hints += hints


class Outside:
    """What calls the targets of these jobs, as far as the reaper asks."""

    limit: Limit | None = None

    def __init__(self, retry: Retry) -> None:
        self.policies = Policies(retry, None, Delivery.AT_LEAST_ONCE)

    async def invoke(self, context: Context, payload: bytes) -> None:
        raise AssertionError("the reaper runs nothing")


def reaper(store: LateStore, told: list[Event], retry: Retry | None = None, known: str = "@http") -> Reaper:
    handler = Outside(retry or Retry())
    return Reaper(cast("Store", store), CLOCK, NodeId(1), Observers([told.append]), {known: handler})


async def test_overdue_is_timed_out_through_the_job_s_own_policies() -> None:
    once = encode({"delivery": "at_most_once"})
    quick = encode({"retry": {"first_delay": "2s", "max_attempts": 2}})
    late = [
        job(1),
        job(2, policies=once),
        job(3, policies=quick),
        job(4, policies=quick, failures=1),
        job(5, cancel_requested=True),
    ]
    store, told = LateStore([late[:3], late[3:]]), []  # type: ignore[var-annotated]  # a list of events
    await reaper(store, told).run_once()
    assert [(one.state, (one.due_at - NOW) // SECOND) for one in store.settled] == [
        (State.PENDING, 5),
        (State.DEAD, 0),
        (State.PENDING, 2),
        (State.DEAD, 0),
        (State.CANCELLED, 0),
    ]
    assert {(one.ending, one.error, one.attempt) for one in store.settled} == {
        (Ending.TIMED_OUT, NO_REPORT, 2)
    }
    assert store.hints == [JobHint("mail", 5, 0)] * 2
    assert [len(event.settlements) for event in told if isinstance(event, AttemptsSettled)] == [3, 2]


async def test_overdue_is_tried_again_as_its_target_says_where_the_job_says_nothing() -> None:
    once = encode({"retry": {"first_delay": "2s"}})
    store = LateStore([[job(1), job(2, failures=1), job(3, policies=once)]])
    await reaper(store, [], Retry(2, "7s")).run_once()
    assert [(one.state, (one.due_at - NOW) // SECOND) for one in store.settled] == [
        (State.PENDING, 7),
        (State.DEAD, 0),
        (State.PENDING, 2),
    ]


async def test_a_node_that_does_not_know_the_target_leaves_overdue_jobs_to_other_nodes_at_first() -> None:
    late = [job(1, due_at=NOW - UNKNOWN_TARGET_GRACE - 1), job(2)]
    store, told = LateStore([late, [job(3)]]), []  # type: ignore[var-annotated]  # a list of events
    await reaper(store, told, Retry(9, "7s"), known="@other").run_once()
    assert [(one.id.int, (one.due_at - NOW) // SECOND) for one in store.settled] == [(1, 5)]
    assert store.looks == 1, "jobs that it may not end would be found again and again"
    assert [len(event.settlements) for event in told if isinstance(event, AttemptsSettled)] == [1]


async def test_another_reaper_was_quicker() -> None:
    store, told = LateStore([[job(1), job(2)], [job(3)]], refused=[UUID(int=1)]), []  # type: ignore[var-annotated]  # a list of events
    await reaper(store, told).run_once()
    assert [one.id.int for one in store.settled] == [1, 2]
    assert [
        one.id.int for event in told if isinstance(event, AttemptsSettled) for one in event.settlements
    ] == [2]


async def test_reaper_checks_reports_at_intervals() -> None:
    store = LateStore([])
    one = reaper(store, [])
    for _ in range(2 * CHECK_JOBS_EVERY):
        await one.run_once()
    assert store.looks == 2
