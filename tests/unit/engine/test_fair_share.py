"""Sharing segments: every planner computes the same shares; together they are all segments, none twice; no
share is much larger."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime.model.ids import SEGMENTS
from duetime.model.lease import NodeId, fair_share

planners = st.sets(st.integers(1, 10_000).map(NodeId), min_size=1, max_size=2 * SEGMENTS)


@given(planners)
def test_shares_cover_everything_once(nodes: set[NodeId]) -> None:
    shares = [fair_share(node, list(nodes)) for node in sorted(nodes)]
    assert sorted(segment for share in shares for segment in share) == list(range(SEGMENTS))


@given(planners)
def test_shares_are_even(nodes: set[NodeId]) -> None:
    sizes = {len(fair_share(node, list(nodes))) for node in nodes}
    assert max(sizes) - min(sizes) <= 1


def test_a_planner_the_list_does_not_know_yet_counts_itself() -> None:
    assert fair_share(NodeId(9), [NodeId(1)]) == set(range(1, SEGMENTS, 2))
