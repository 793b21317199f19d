"""Runs many seeds, optionally in several processes, and merges their coverage."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from duetime.testing.simulation.coverage import Coverage
from duetime.testing.simulation.runner import run_seed

CHUNK = 25


def sweep(seeds: Sequence[int], workers: int = 1, *, broker: bool = False) -> Coverage:
    """Runs all seeds, also after a failure. Workers are new interpreters, so no state of the caller
    influences a run."""
    if workers == 1:
        return _sweep(seeds, broker)
    total = Coverage()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
        for part in pool.map(partial(_sweep, broker=broker), chunks):
            total.merge(part)
    return total


def _sweep(seeds: Sequence[int], broker: bool) -> Coverage:
    coverage = Coverage()
    for seed in seeds:
        coverage.add(run_seed(seed, broker=broker))
    gc.collect()
    return coverage
