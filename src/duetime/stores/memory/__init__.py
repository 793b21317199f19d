"""The store in memory: for tests, experiments and the simulation. Nothing in it survives the process."""

from __future__ import annotations

from duetime.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
