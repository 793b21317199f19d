"""python -m duetime.testing.simulation [--broker] (--seed N [--trace] | --seeds A-B [--workers N])"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from duetime.testing.simulation.coverage import Coverage
from duetime.testing.simulation.runner import run_seed
from duetime.testing.simulation.sweep import sweep


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m duetime.testing.simulation", description="Replay seeds of the simulation."
    )
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--seed", type=int, help="one seed")
    chosen.add_argument("--seeds", type=_range, metavar="A-B", help="all seeds from A to B")
    parser.add_argument("--trace", action="store_true", help="print the trace of the seed (with --seed)")
    parser.add_argument("--workers", type=int, default=1, help="number of processes (with --seeds)")
    parser.add_argument("--broker", action="store_true", help="the nodes have a broker with faults")
    options = parser.parse_args(arguments)
    coverage = (
        _replay(options.seed, options.trace, options.broker)
        if options.seeds is None
        else sweep(options.seeds, options.workers, broker=options.broker)
    )
    _print(str(coverage))
    return 1 if coverage.failures else 0


def _replay(seed: int, trace: bool, broker: bool) -> Coverage:
    report = run_seed(seed, trace, broker=broker)
    for line in report.trace:
        _print(line)
    if report.ok:
        _print(str(report))
    coverage = Coverage()
    coverage.add(report)
    return coverage


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
