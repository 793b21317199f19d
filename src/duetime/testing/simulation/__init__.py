"""Deterministic simulation: the real engine on a simulated loop, with lost replies and dying processes. A
seed decides the whole run."""

from __future__ import annotations

from duetime.testing.simulation.runner import Report, run_seed
from duetime.testing.simulation.sweep import sweep

__all__ = ["Report", "run_seed", "sweep"]
