"""Many seeds, in as many processes as wanted, and what they visited together."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from duetime.testing.simulation.coverage import Coverage
from duetime.testing.simulation.runner import run_seed

CHUNK = 25


def survey(seeds: Sequence[int], workers: int = 1) -> Coverage:
    """Runs all of them, failures or not. Workers are fresh interpreters, so that nothing of the caller leaks into a history."""
    if workers == 1:
        return _survey(seeds)
    total = Coverage()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for part in pool.map(_survey, [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]):
            total.merge(part)
    return total


def _survey(seeds: Sequence[int]) -> Coverage:
    coverage = Coverage()
    for seed in seeds:
        coverage.add(run_seed(seed))
    gc.collect()
    return coverage
