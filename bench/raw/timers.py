"""The machine's own punctuality: a thread that sleeps until each instant and does nothing else."""

from __future__ import annotations

import time


def lateness(count: int = 500, span: float = 5.0) -> list[float]:
    first = time.time() + 0.1
    late = []
    for number in range(count):
        due = first + span * number / count
        while (left := due - time.time()) > 0:
            time.sleep(left)
        late.append(time.time() - due)
    return late
