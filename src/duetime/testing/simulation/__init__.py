"""Deterministic simulation: the real engine on a virtual loop, a store whose replies get lost, processes that die. A seed is a history."""

from __future__ import annotations

from duetime.testing.simulation.runner import Report, run_seed
from duetime.testing.simulation.survey import survey

__all__ = ["Report", "run_seed", "survey"]
