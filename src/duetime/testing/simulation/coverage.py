"""The coverage of many runs: job transitions, failpoints and faults that occurred, and those that never
did."""

from __future__ import annotations

from collections import Counter
from typing import Any

from duetime.engine.failpoint import FAILPOINTS
from duetime.testing.simulation.faults import FAULT_KINDS
from duetime.testing.simulation.runner import Report


class Coverage:
    def __init__(self) -> None:
        self.seeds = 0
        self.failures: list[str] = []
        self.totals: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.failpoints: Counter[str] = Counter()
        self.transitions: Counter[tuple[str, str]] = Counter()

    def add(self, report: Report) -> None:
        self.seeds += 1
        if not report.ok:
            self.failures.append(str(report))
        self.totals.update(
            steps=report.steps,
            jobs=report.jobs,
            fires=report.fires,
            starts=report.starts,
            acked=report.acknowledged,
        )
        self.totals["virtual seconds"] += int(report.virtual_seconds)
        self.faults.update(report.faults)
        self.events.update(report.events)
        self.failpoints.update(report.failpoints)
        self.transitions.update(report.transitions)

    def merge(self, other: Coverage) -> None:
        self.seeds += other.seeds
        self.failures += other.failures
        for mine, theirs in zip(self._counters(), other._counters(), strict=True):
            mine.update(theirs)

    def _counters(self) -> tuple[Counter[Any], ...]:
        return self.totals, self.faults, self.events, self.failpoints, self.transitions

    @property
    def unvisited(self) -> list[str]:
        """Failpoints and faults that never happened. A simulated fleet has no archive."""
        simulated = {name for name in FAILPOINTS if not name.startswith("archive.")}
        return sorted(simulated - set(self.failpoints)) + sorted(set(FAULT_KINDS) - set(self.faults))

    def __str__(self) -> str:
        lines = [
            *self.failures,
            f"{self.seeds} seeds, {len(self.failures)} failed",
            _listed("totals", self.totals),
            _listed("faults", self.faults),
            _listed("events", self.events),
            _listed("failpoints", self.failpoints),
            _listed(
                "transitions",
                Counter({f"{state} / {event}": count for (state, event), count in self.transitions.items()}),
            ),
            f"never reached: {', '.join(self.unvisited) or 'none'}",
        ]
        return "\n".join(lines)


def _listed(title: str, counts: Counter[str]) -> str:
    return f"{title}: " + ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
