"""Seeds: the invariants hold after every transaction, and nothing is stuck at the end. Thousands of them:
`make soak-simulation`."""

from __future__ import annotations

import pytest

from duetime.testing.simulation import sweep
from duetime.testing.simulation.coverage import Coverage

CHUNK = 40

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("first", range(0, 4 * CHUNK, CHUNK))
def test_seeds_pass(first: int) -> None:
    found = sweep(range(first, first + CHUNK))
    assert not found.failures, "\n".join(found.failures)
    assert found.seeds == CHUNK


def test_several_processes_find_the_same() -> None:
    alone, shared = sweep(range(2)), sweep(range(2), workers=2)
    assert (shared.seeds, shared.failures) == (2, [])
    assert (shared.totals, shared.transitions) == (alone.totals, alone.transitions)


EXPECTED_EVENTS = (
    "NodeFenced", "NodesExpired", "JobsRecovered", "SettlementsRefused", "save_progress refused",
    "take_once refused", "commit refused", "two jobs under one permit",
)  # fmt: skip
ENDED_AGAIN = ("failed", "timed_out", "lost", "released", "snoozed")
ENDED = ("succeeded", "cancelled", "failed", "lost")
WHILE_PENDING = (
    "successor",
    "cancel_job",
    "overlap skip",
    "put_schedule",
    "pause_schedule",
    "remove_schedule",
    "add_unique",
    "give up key",
)


def test_seeds_reach_every_failpoint_fault_and_transition() -> None:
    """Otherwise the invariants would be checked on runs in which nothing goes wrong."""
    found, missing = Coverage(), list[object]()
    for first in range(300, 300 + 25 * CHUNK, CHUNK):
        found.merge(sweep(range(first, first + CHUNK)))
        assert not found.failures, "\n".join(found.failures)
        missing = _missing(found)
        if not missing and found.totals["jobs"] > 2_000:
            return
    raise AssertionError(f"{found.seeds} seeds with {found.totals['jobs']} jobs did not reach {missing}")


def _missing(found: Coverage) -> list[object]:
    again = [("running", f"settle {ending}, again") for ending in ENDED_AGAIN]
    ended = [("running", f"settle {ending}") for ending in ENDED]
    transitions = [*again, *ended, *(("pending", event) for event in WHILE_PENDING), ("none", "skip")]
    return [
        *found.unvisited,
        *(event for event in EXPECTED_EVENTS if not found.events[event]),
        *(step for step in transitions if not found.transitions[step]),
    ]
