"""Processes of a test: whether they live, and which they are."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.app.waiting import eventually


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


async def family(notes: Path) -> list[int]:
    """The process of a task (see chores) and the one it has started, once they run."""

    async def begun() -> bool:
        return notes.exists()

    await eventually(begun)
    return [int(pid) for pid in notes.read_text().split("\n")[0].split()]
