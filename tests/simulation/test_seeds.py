"""A thousand histories of faults, each with all invariants checked after every transaction and nothing stuck at its end."""

from __future__ import annotations

import pytest

from duetime.testing.simulation import survey
from duetime.testing.simulation.coverage import Coverage

CHUNK = 120


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


WORTH_SEEING = (
    "NodeFenced", "NodesBuried", "JobsRecovered", "SettlementsRefused", "save refused", "mark refused", "commit refused", "claimed ahead",
)  # fmt: skip
ENDED_AGAIN = ("failed", "timed_out", "lost", "released", "snoozed")
ENDED = ("succeeded", "cancelled", "failed", "lost")
WHILE_PENDING = ("cancel_job", "overlap skip", "put_schedule", "pause_schedule", "remove_schedule", "add_unique", "give up key")


@pytest.mark.slow
def test_the_histories_are_worth_checking() -> None:
    """A run in which nothing goes wrong proves nothing: every failpoint, fault and way of ending must come up, the rare ones in the end."""
    found, missing = Coverage(), list[object]()
    for first in range(2_000, 3_000, 100):
        found.merge(survey(range(first, first + 100), workers=2))
        missing = _not_seen(found)
        if not missing and found.totals["jobs"] > 2_000:
            return
    raise AssertionError(f"in {found.seeds} histories with {found.totals['jobs']} jobs there was no {missing}")


def _not_seen(found: Coverage) -> list[object]:
    again = [("running", f"settle {ending}, again") for ending in ENDED_AGAIN]
    ended = [("running", f"settle {ending}") for ending in ENDED]
    transitions = [*again, *ended, *(("pending", event) for event in WHILE_PENDING), ("none", "skip")]
    return [
        *found.unvisited,
        *(event for event in WORTH_SEEING if not found.events[event]),
        *(step for step in transitions if not found.transitions[step]),
    ]
