"""Computing the next fire time: no store, only the processor."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.cron_speed import COMMON, RARE, ROUNDS, ZONES, chain
from bench.figures import Figure
from duetime import Cron


def next_fire() -> Iterator[Figure]:
    for key, name, expressions in (
        ("common", "common expressions", COMMON),
        ("rare", "the rarest expressions", RARE),
    ):
        costs = {f"{text} {zone}": _cost(text, zone) for text in expressions for zone in ZONES}
        slowest = max(costs, key=lambda expression: costs[expression])
        yield Figure(
            f"{key}.slowest", f"next fire, {name}, the slowest", costs[slowest], " us", None, slowest, costs
        )


def _cost(text: str, zone: str) -> float:
    cron = Cron(text, zone)
    return median(chain(cron) for _ in range(ROUNDS))
