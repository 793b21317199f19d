"""With a broker that loses, doubles, delays and reorders messages, is flushed and goes down: the same
invariants hold. No job is lost, none runs twice, and none is stuck."""

from __future__ import annotations

from collections import Counter

import pytest

from duetime.testing.simulation import run_seed

KINDS = ("lost", "doubled", "late", "doubled late")
FAULTS = {*(f"message {kind}" for kind in KINDS), "broker down", "broker flushed"}


def run(seeds: range) -> tuple[Counter[str], Counter[str]]:
    faults: Counter[str] = Counter()
    events: Counter[str] = Counter()
    for seed in seeds:
        report = run_seed(seed, broker=True)
        assert report.ok, f"{report} (broker=True)"
        faults += report.faults
        events += report.events
    return faults, events


def test_invariants_hold_with_a_faulty_broker() -> None:
    faults, events = run(range(20))
    assert faults.keys() >= FAULTS
    assert min(events[name] for name in ("TicketsPushed", "TicketsReceived", "BrokerLost", "BrokerBack")) > 50


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_300, 60))
def test_invariants_hold_for_many_seeds(first: int) -> None:
    run(range(first, first + 60))


def test_same_seed_gives_the_same_run() -> None:
    assert run_seed(3, broker=True).trace_hash == run_seed(3, broker=True).trace_hash
