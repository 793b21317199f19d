"""A thousand histories of faults, each with all invariants checked after every transaction and nothing stuck at its end."""

from __future__ import annotations

import pytest

from duetime.testing.simulation import survey

CHUNK = 240


def test_some_histories_hold() -> None:
    """Enough for every change: the rest is slow."""
    found = survey(range(40), workers=2)
    assert not found.failures, "\n".join(found.failures)
    assert found.seeds == 40


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 1_000, CHUNK))
def test_many_histories_hold(first: int) -> None:
    found = survey(range(first, first + CHUNK), workers=2)
    assert not found.failures, "\n".join(found.failures)
    assert found.seeds == CHUNK


@pytest.mark.slow
def test_the_histories_are_worth_checking() -> None:
    """A run in which nothing goes wrong proves nothing: every failpoint, fault and way of ending must come up."""
    found = survey(range(2_300, 2_420), workers=2)
    assert found.unvisited == []
    assert found.totals["jobs"] > 2_000
    for event in (
        "NodeFenced",
        "NodesBuried",
        "JobsRecovered",
        "SettlementsRefused",
        "save refused",
        "mark refused",
        "commit refused",
        "claimed ahead",
    ):
        assert found.events[event] > 0, event
    for ending in ("failed", "timed_out", "lost", "released", "snoozed"):
        assert found.transitions["running", f"settle {ending}, again"] > 0, ending
    for ending in ("succeeded", "cancelled", "failed", "lost"):
        assert found.transitions["running", f"settle {ending}"] > 0, ending
    for event in ("cancel_job", "overlap skip", "put_schedule", "pause_schedule", "remove_schedule", "add_unique", "give up key"):
        assert found.transitions["pending", event] > 0, event
    assert found.transitions["none", "skip"] > 0
