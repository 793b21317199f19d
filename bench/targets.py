"""The limits and goals of each figure: a number, or a multiple of another figure or of a peer's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from bench.figures import Figure, Sheet

# The last figures of the peers, used (and marked) if they are not measured in this run.
RECORDED = {
    "graphile-worker bulk": 34_509.0,
    "pgqueuer single": 1_367.0,
    "graphile-worker drain": 20_856.0,
    "pgqueuer drain": 11_803.0,
}


class Verdict(StrEnum):
    REACHED = "reached"
    MET = "met"
    MISSED = "MISSED"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """`figure` must be at least (or at most) `value`, or `value` times the figure or peer `of`."""

    figure: str
    at_least: bool
    value: float
    of: str | None = None


def least(figure: str, value: float, of: str | None = None) -> Limit:
    return Limit(figure, True, value, of)


def most(figure: str, value: float, of: str | None = None) -> Limit:
    return Limit(figure, False, value, of)


def _against_peers(run: str) -> tuple[Limit, ...]:
    """The same for our own figures and for Duetime's in the peers' harness."""
    return (
        least(f"{run}.bulk.rate", 1.6, "graphile-worker bulk"),
        least(f"{run}.single.rate", 2.0, "pgqueuer single"),
        least(f"{run}.drain.rate", 1.5, "graphile-worker drain"),
        least(f"{run}.drain.rate", 2.6, "pgqueuer drain"),
    )


def _beside_millions(factor: float) -> tuple[Limit, ...]:
    return tuple(
        limit
        for size in ("1m", "10m")
        for limit in (
            most(f"postgres.punctual_{size}.p99", factor, f"postgres.punctual_{size}.empty"),
            most(f"postgres.herd_{size}.last", factor, f"postgres.herd_{size}.empty"),
            least(f"postgres.drain_{size}.rate", 1 / factor, f"postgres.drain_{size}.empty"),
            most(f"postgres.punctual_{size}.early", 0),
        )
    )


MUST = (
    *_against_peers("postgres"),
    *_against_peers("harness"),
    least("postgres.concurrent.rate", 15_000),
    least("postgres.drain_long.rate", 0.9, "postgres.drain_long.plain"),
    least("postgres.drain_lanes.rate", 0.9, "postgres.drain_lanes.plain"),
    *(
        least(f"{run}.limits.share_{milliseconds}ms", share)
        for run, share in (("postgres", 80), ("sqlite", 70))
        for milliseconds in (10, 20, 50)
    ),
    *(most(f"{run}.urgent.p99", 50) for run in ("postgres", "sqlite")),
    *(most(f"{run}.pick_up.p50", 2) for run in ("postgres", "harness")),
    *(most(f"{run}.pick_up.p99", 4) for run in ("postgres", "harness")),
    *(most(f"{run}.punctual.p99", 2) for run in ("postgres", "harness", "sqlite")),
    *(most(f"{run}.punctual.early", 0) for run in ("postgres", "harness", "sqlite")),
    *(most(f"{run}.herd.last", 150) for run in ("postgres", "harness")),
    *_beside_millions(1.2),
    *(least(f"{run}.schedules.fired", 100) for run in ("postgres", "harness")),
    *(most(f"{run}.schedules.p99", 120) for run in ("postgres", "harness")),
    *(most(f"{run}.schedules.cpu", 3) for run in ("postgres", "harness")),
    most("postgres.idle.cpu", 1),
    most("postgres.idle.resident", 80),
    most("postgres.held.p99", 2.0, "postgres.sustained.p99"),
    least("sqlite.drain.rate", 15_000),
    *(most(f"{run}.traces.ratio", 1.05) for run in ("postgres", "sqlite")),
    *(least(f"{run}.traces.rate", 0.95) for run in ("postgres", "sqlite")),
    most("sqlite.herd.last", 200),
    least("postgres.api.rate", 2_500),
    most("postgres.api.p99", 60),
    most("postgres.api.resident", 120),
    least("postgres.calls.rate", 0.5, "postgres.calls.bare"),
    *(least(f"postgres.{run}.fired", 100) for run in ("agents", "agents_killed")),
    *(most(f"postgres.{run}.early", 0) for run in ("agents", "agents_killed")),
    most("postgres.agents.doubled", 0),
    most("postgres.agents.p99", 100),
    *(
        limit
        for broker in ("redis", "rabbitmq", "nats")
        for limit in (
            least(f"postgres.brokers.{broker}.share", 43),
            most(f"postgres.brokers.{broker}.later", 2),
        )
    ),
    most("postgres.broker_urgent.p99", 1_000),
    least("postgres.publish.rate", 0.6, "postgres.publish.bare"),
    least("postgres.remote_worker.rate", 2_000),
    most("cron.common.slowest", 15),
    most("cron.rare.slowest", 1_000),
)
REACH = (
    *(least(f"{run}.bulk.rate", 75_000) for run in ("postgres", "harness")),
    *(least(f"{run}.single.rate", 4_500) for run in ("postgres", "harness")),
    least("postgres.concurrent.rate", 40_000),
    *(least(f"{run}.drain.rate", 40_000) for run in ("postgres", "harness")),
    least("postgres.drain_long.rate", 1.0, "postgres.drain_long.plain"),
    least("postgres.drain_lanes.rate", 1.0, "postgres.drain_lanes.plain"),
    *(most(f"{run}.pick_up.p99", 2) for run in ("postgres", "harness")),
    *(most(f"{run}.punctual.p99", 0.5) for run in ("postgres", "harness")),
    *(most(f"{run}.herd.last", 100) for run in ("postgres", "harness")),
    *_beside_millions(1.0),
    *(most(f"{run}.schedules.p99", 60) for run in ("postgres", "harness")),
    most("postgres.held.p99", 1.0, "postgres.sustained.p99"),
    least("sqlite.drain.rate", 30_000),
)


class Judge:
    """Compares figures with their limits. `peers` holds the figures of the peers in this run."""

    def __init__(self, sheet: Sheet, peers: Mapping[str, float]) -> None:
        self._sheet = sheet
        self._peers = peers

    def verdict(self, figure: Figure) -> Verdict:
        must, reach = self._kept(figure, MUST), self._kept(figure, REACH)
        if must is None and reach is None:
            return Verdict.NONE
        if must is False:
            return Verdict.MISSED
        return Verdict.REACHED if reach else Verdict.MET

    def must(self, figure: Figure) -> str:
        return self._shown(figure, MUST)

    def reach(self, figure: Figure) -> str:
        return self._shown(figure, REACH)

    def _kept(self, figure: Figure, limits: tuple[Limit, ...]) -> bool | None:
        """None if the figure has no limit, or the figure it is compared with was not measured."""
        bounds = [
            (limit, bound)
            for limit in limits
            if limit.figure == figure.key and (bound := self._bound(limit)) is not None
        ]
        if not bounds:
            return None
        return all(
            figure.value >= bound if limit.at_least else figure.value <= bound for limit, bound in bounds
        )

    def _bound(self, limit: Limit) -> float | None:
        if limit.of is None:
            return limit.value
        basis = self._peers.get(limit.of) or self._sheet.value(limit.of) or RECORDED.get(limit.of)
        return None if basis is None else limit.value * basis

    def _shown(self, figure: Figure, limits: tuple[Limit, ...]) -> str:
        """The strictest of the limits, and where it comes from."""
        mine = [limit for limit in limits if limit.figure == figure.key]
        known = [(bound, limit) for limit in mine if (bound := self._bound(limit)) is not None]
        if not known:
            return self._words(mine[0], None) if mine else ""
        bound, limit = (max if known[0][1].at_least else min)(known, key=lambda pair: pair[0])
        return self._words(limit, bound)

    def _words(self, limit: Limit, bound: float | None) -> str:
        sign = ">=" if limit.at_least else "<="
        number = "?" if bound is None else f"{bound:,.0f}" if bound >= 1_000 else f"{bound:.3g}"
        if limit.of is None:
            return f"{sign} {number}"
        recorded = ", recorded" if limit.of in RECORDED and limit.of not in self._peers else ""
        return f"{sign} {number} ({limit.value:.3g} x {limit.of.removeprefix('postgres.')}{recorded})"
