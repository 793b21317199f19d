"""With a broker that loses, doubles, delays and reorders messages, is flushed and goes down: the same
invariants hold. No job is lost, none runs twice, and none is stuck. Thousands of seeds:
`make soak-simulation ARGS=--broker`."""

from __future__ import annotations

import pytest

from duetime.testing.simulation import run_seed, sweep

KINDS = ("lost", "doubled", "late", "doubled late")
FAULTS = {*(f"message {kind}" for kind in KINDS), "broker down", "broker flushed"}
EVENTS = ("TicketsPushed", "TicketsReceived", "BrokerLost", "BrokerBack")
CHUNK = 25


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1_000, 2_000])
def test_invariants_hold_with_a_faulty_broker(first: int) -> None:
    found = sweep(range(first, first + CHUNK), broker=True)
    assert not found.failures, "\n".join(found.failures)
    assert found.faults.keys() >= FAULTS
    assert min(found.events[name] for name in EVENTS) > 50


def test_same_seed_gives_the_same_run() -> None:
    assert run_seed(3, broker=True).trace_hash == run_seed(3, broker=True).trace_hash
