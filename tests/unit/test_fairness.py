"""Shares of tenants: no tenant takes all slots, and every tenant gets one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime.model.fairness import fair_turn, share


def filled(slots: int, tenants: int) -> list[int]:
    """What tenants that want everything hold in the end."""
    held = [0] * tenants
    while True:
        more = [share(mine, slots - sum(held)) for mine in held]
        if not any(more):
            return held
        tenant = max(range(tenants), key=lambda one: (more[one] > 0, -held[one]))
        held[tenant] += 1


@given(st.integers(2, 500), st.integers(1, 20))
def test_a_slot_is_left_for_the_next_tenant_while_there_are_more_slots_than_tenants(
    slots: int, tenants: int
) -> None:
    held = filled(slots, tenants)
    assert sum(held) <= slots
    if slots > 5 * tenants:
        assert sum(held) < slots
        assert max(held) - min(held) <= 1


def test_one_tenant_leaves_a_fifth_and_two_leave_a_ninth() -> None:
    assert filled(100, 1) == [80]
    assert filled(90, 2) == [40, 40]


def test_tenant_without_slots_gets_the_only_one() -> None:
    assert (share(0, 1), share(0, 0), share(1, 1)) == (1, 0, 0)


def test_tenant_served_longest_ago_is_first_and_a_full_one_is_left_out() -> None:
    held, served = {"a": 80, "b": 3, "c": 0}, {"a": 9, "b": 8, "c": 7}
    order, room = fair_turn(["a", "b", "c", "new"], held, served, free=17, room=17)
    assert order == {"new": 0, "c": 1, "b": 2}
    assert room == share(3, 17)
