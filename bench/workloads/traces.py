"""The price of traces: a drain without traces, and with a sample of the jobs traced, by the CPU of the worker
per job and by the rate. Submitter and worker are traced, and the collector only answers.

The CPU counts from the moment the worker begins: by then it has imported everything, OpenTelemetry, too. What
it does once after that, such as the first connection, is small among so many jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import geometric_mean, mean, stdev

from bench.figures import Figure
from bench.setting import Setting
from bench.workloads.drain import Drained, drain
from tests.servers.agent import Agent

SAMPLING = 0.1
DELAY_VARIABLE, DELAY = "OTEL_BSP_SCHEDULE_DELAY", 1_000  # milliseconds until spans are exported; not 5,000
LAST_EXPORT = 1.5  # seconds after the drain in which the last spans are exported; without traces, too


def sampled_drain(setting: Setting) -> Iterator[Figure]:
    plain: list[Drained] = []
    traced: list[Drained] = []
    with _quick_exports():
        for turn in range(setting.scale.traced_turns):
            both = [(plain, None), (traced, SAMPLING)]
            for drains, sampling in both if turn % 2 == 0 else reversed(both):  # a machine slows down
                drains.append(_drain(setting, sampling))
            setting.say(f"turn {turn + 1}: {_told(plain[-1])}; traced {_told(traced[-1])}")
    before, after = [one.worker_cpu for one in plain], [one.worker_cpu for one in traced]
    name = f"drain {setting.scale.traced:,} without traces, CPU per job"
    yield Figure("traces.plain", name, _least(before), " us")
    yield Figure("traces.cpu", f"{SAMPLING:.0%} of them traced, CPU per job", _least(after), " us")
    yield _ratio("traces.ratio", "CPU with traces / without", before, after, _least)
    rates = [one.rate for one in plain], [one.rate for one in traced]
    yield _ratio("traces.rate", "rate with traces / without", *rates, _most)


def _told(drained: Drained) -> str:
    return f"{drained.worker_cpu:.1f} us, {drained.rate:,.0f}/s"


def _least(values: Sequence[float]) -> float:
    """The mean of the best third: whatever else a machine does can only make a drain slower."""
    return mean(sorted(values)[: -(-len(values) // 3)])


def _most(values: Sequence[float]) -> float:
    return -_least([-value for value in values])


def _ratio(
    name: str,
    title: str,
    plain: list[float],
    traced: list[float],
    best: Callable[[Sequence[float]], float],
) -> Figure:
    ratios = [with_traces / without for with_traces, without in zip(traced, plain, strict=True)]
    error = stdev(ratios) / len(ratios) ** 0.5
    # The plain mean of ratios grows with their spread.
    remark = f"of all turns {geometric_mean(ratios):.3f} +- {error:.3f}"
    detail = {"plain": plain, "traced": traced}
    return Figure(name, title, best(traced) / best(plain), " x", None, remark, detail)


def _drain(setting: Setting, sampling: float | None) -> Drained:
    """The CPU is with the exports."""
    with setting.stage.ground() as ground, Agent(ground.folder) as collector:
        if sampling is not None:
            ground.traces, ground.sampling = collector.url, sampling
        return drain(
            setting.stage, ground, "bulk", setting.scale.traced, rest=lambda: time.sleep(LAST_EXPORT)
        )


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
