"""Tests the checker: it finds every deliberately broken variant by the expected invariant within a few
seeds."""

from __future__ import annotations

import pytest

from duetime.testing.simulation import run_seed
from duetime.testing.simulation.invariants.verdict import Violation
from tests.simulation import tool_mutants
from tests.simulation.mutants import MUTANTS

pytestmark = pytest.mark.slow
MAX_SEEDS = 300  # a change of the engine moves the seed that finds a variant


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_broken_variant_is_found(name: str) -> None:
    make, invariants, first = MUTANTS[name]
    seeds = range(first, first + MAX_SEEDS)
    with make():
        problem = next((report.problem for seed in seeds if not (report := run_seed(seed)).ok), None)
    assert isinstance(problem, Violation), f"{name} passed {MAX_SEEDS} seeds: {problem}"
    assert problem.invariant in invariants, problem


def test_all_variants_are_registered() -> None:
    assert len(MUTANTS) >= 25 + len(tool_mutants.__all__)
