"""Following the store's clock: late by the way of the reply, never early, whatever the local clock says (E1,
E2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime.clock import DRIFT, Follower
from duetime.engine.node.timer import NEVER_SAMPLED, NodeClock
from duetime.model.instant import SECOND, Micros


def test_the_reply_s_way_makes_it_late_not_early() -> None:
    follower = Follower()
    follower.sample(store_now=1_000_000, arrived=500)  # read when the local clock stood at 400
    assert follower.at(500) == 1_000_000
    assert follower.at(600) == 1_000_100


def test_the_quickest_reply_counts_most() -> None:
    follower = Follower()
    follower.sample(1_000_000, 10_000)  # slow: 10 ms on its way
    follower.sample(1_010_000, 10_100)  # quick: 0.1 ms
    assert follower.at(10_100) == 1_010_000


def test_an_old_sample_is_trusted_less() -> None:
    follower = Follower()
    follower.sample(10 * SECOND, 0)
    follower.sample(20 * SECOND - 5_000, 10 * SECOND)
    assert follower.at(10 * SECOND) == 20 * SECOND - 10 * DRIFT


def test_a_store_clock_set_back_is_believed() -> None:
    follower = Follower()
    follower.sample(100 * SECOND, 0)
    follower.sample(50 * SECOND, 1_000)
    assert follower.at(1_000) == 50 * SECOND


@given(
    st.integers(-(10**12), 10**12),
    st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, SECOND)), min_size=1, max_size=40),
    st.integers(0, 60 * SECOND),
)
def test_never_ahead_of_the_store(
    offset: Micros, samples: list[tuple[Micros, Micros]], later: Micros
) -> None:
    """Any local clock, any travel times: with equal rates the estimate is behind the store, always."""
    follower, local = Follower(), 0
    for gap, way in samples:
        read = local + gap
        local = read + way
        follower.sample(store_now=read + offset, arrived=local)
        assert follower.at(local) <= local + offset
    assert follower.at(local + later) <= local + later + offset


def test_a_node_s_clock_says_how_old_its_sample_is() -> None:
    now = 5 * SECOND
    clock = NodeClock(monotonic=lambda: now)
    assert clock.sample_age == NEVER_SAMPLED
    clock._follower.sample(100 * SECOND, 5 * SECOND)
    now = 7 * SECOND
    assert clock.sample_age == 2 * SECOND
    assert clock.now() == 102 * SECOND
    assert clock.to_monotonic(103 * SECOND) == 8 * SECOND
