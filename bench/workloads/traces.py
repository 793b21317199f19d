"""The price of traces: the CPU of a worker per job in a drain without traces, and with a sample of the jobs
traced. Submitter and worker are traced, and the collector only answers.

The CPU counts from the moment the worker begins: by then it has imported everything, OpenTelemetry, too. What
it does once after that, such as the first connection, is small among so many jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.figures import Figure, median
from bench.setting import Setting
from bench.workloads.drain import drain
from tests.servers.agent import Agent

SAMPLING = 0.1
DELAY_VARIABLE, DELAY = "OTEL_BSP_SCHEDULE_DELAY", 2_000  # milliseconds until spans are exported; not 5,000
LAST_EXPORT = 2.5  # seconds after the drain in which the last spans are exported; without traces, too


def sampled_drain(setting: Setting) -> Iterator[Figure]:
    plain: list[float] = []
    traced: list[float] = []
    with _quick_exports():
        for turn in range(setting.scale.turns):
            plain.append(_cost(setting, None))
            traced.append(_cost(setting, SAMPLING))
            setting.say(f"turn {turn + 1}: {plain[-1]:.1f} us, traced {traced[-1]:.1f} us")
    ratios = [with_traces / without for with_traces, without in zip(traced, plain, strict=True)]
    count, detail = setting.scale.traced, {"plain": plain, "traced": traced}
    yield Figure("traces.plain", f"drain {count:,} without traces, CPU per job", median(plain), " us")
    yield Figure("traces.cpu", f"{SAMPLING:.0%} of them traced, CPU per job", median(traced), " us")
    remark = f"{min(ratios):.3f} to {max(ratios):.3f}"
    yield Figure("traces.ratio", "with traces / without", median(ratios), " x", None, remark, detail)


def _cost(setting: Setting, sampling: float | None) -> float:
    """Microseconds of CPU of the worker for each job, with the exports."""
    with setting.stage.ground() as ground, Agent(ground.folder) as collector:
        if sampling is not None:
            ground.traces, ground.sampling = collector.url, sampling
        drained = drain(
            setting.stage, ground, "bulk", setting.scale.traced, rest=lambda: time.sleep(LAST_EXPORT)
        )
        return drained.worker_cpu


@contextmanager
def _quick_exports() -> Iterator[None]:
    before = os.environ.get(DELAY_VARIABLE)
    os.environ[DELAY_VARIABLE] = str(DELAY)
    try:
        yield
    finally:
        if before is None:
            del os.environ[DELAY_VARIABLE]
        else:
            os.environ[DELAY_VARIABLE] = before
