"""The checker is shown to see: every deliberately broken variant is caught, by the invariant it breaks, within a few seeds."""

from __future__ import annotations

import pytest

from duetime.testing.simulation import run_seed
from duetime.testing.simulation.invariants.verdict import Violation
from tests.simulation import tool_mutants
from tests.simulation.mutants import MUTANTS

pytestmark = pytest.mark.slow
MOST_SEEDS = 300  # the rarest, two planners firing one schedule at once, takes half of them


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_broken_variant_is_caught(name: str) -> None:
    make, invariants = MUTANTS[name]
    with make():
        problem = next((report.problem for seed in range(MOST_SEEDS) if not (report := run_seed(seed)).ok), None)
    assert isinstance(problem, Violation), f"{name} went through {MOST_SEEDS} seeds: {problem}"
    assert problem.invariant in invariants, problem


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 25 + len(tool_mutants.__all__)
