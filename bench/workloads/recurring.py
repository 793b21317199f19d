"""Schedules: many that fire often, and many more that are idle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from bench.figures import Figure, median, quantile
from bench.processes import Crew
from bench.setting import Setting

GRID = 5.0
EVERY_GRID = "*/5 * * * * *"
REPORTED = 30.0  # seconds of CPU that the target counts
SETTLING = 5.0


def schedules(setting: Setting) -> Iterator[Figure]:
    count, rounds = setting.scale.schedules, setting.scale.schedule_rounds
    with setting.stage.ground() as ground:
        setting.say(
            f"{count:,} schedules declared in "
            f"{ground.client('schedules', count, EVERY_GRID)['seconds']:.1f} s"
        )
        with ground.workers() as crew:
            crew.begin()
            ground.until(lambda: len(ground.log) >= count, f"{count:,} schedules to fire", crew)
            begin = (time.time() // GRID + 2) * GRID
            costs = _cpu_during(setting, crew, begin - 0.05, rounds * GRID)
            time.sleep(1.0)  # late fires still count
            starts = ground.log.read()
    window = [(number, moment) for number, moment in starts if begin <= moment < begin + rounds * GRID]
    yield from _schedule_figures(count, rounds, window, [cost * REPORTED / (rounds * GRID) for cost in costs])


def idle(setting: Setting) -> Iterator[Figure]:
    count, seconds, nodes = (
        setting.scale.idle_schedules,
        setting.scale.idle_seconds,
        setting.scale.idle_nodes,
    )
    with setting.stage.ground() as ground:
        setting.say(
            f"{count:,} schedules declared in "
            f"{ground.client('schedules', count, _next_month())['seconds']:.1f} s"
        )
        with ground.working(nodes) as crew:
            workers, server = _cpu_during(setting, crew, time.time() + SETTLING, seconds)
            resident = crew.resident_megabytes()
    cpu, remark = workers / nodes / seconds * 100, f"server {server / seconds * 100:.2f} %"
    name = f"idle, {count:,} schedules" + (f", each of {nodes} nodes" if nodes > 1 else "")
    yield Figure("idle.cpu", f"{name}, CPU of a core", cpu, " %", None, remark)
    yield Figure("idle.resident", f"{name}, RSS", resident / nodes, " MB")


def _schedule_figures(
    count: int, rounds: int, window: list[tuple[int, float]], costs: list[float]
) -> Iterator[Figure]:
    fires = {(number, moment // GRID) for number, moment in window}
    late = [moment % GRID * 1e3 for _, moment in window]
    name = f"{count:,} schedules every {GRID:.0f} s"
    doubled = f"{len(window) - len(fires)} twice" if len(window) > len(fires) else ""
    yield Figure(
        "schedules.fired", f"{name}, fired", len(fires) / (count * rounds) * 100, " %", None, doubled
    )
    yield Figure(
        "schedules.p99",
        f"{name}, p99",
        quantile(late, 0.99),
        " ms",
        None,
        f"p50 {median(late):.1f}, max {max(late):.1f}",
    )
    yield Figure(
        "schedules.cpu", f"{name}, worker CPU in 30 s", costs[0], " s", None, f"server {costs[1]:.2f} s"
    )


def _cpu_during(setting: Setting, crew: Crew, begin: float, seconds: float) -> tuple[float, float]:
    """Seconds of CPU of the workers and of the server."""
    time.sleep(max(0.0, begin - time.time()))
    before = crew.cpu(), setting.stage.server_cpu()
    time.sleep(seconds)
    return crew.cpu() - before[0], setting.stage.server_cpu() - before[1]


def _next_month() -> str:
    """A time of day 20 days from now, so that the schedule is idle."""
    moment = datetime.now(UTC) + timedelta(days=20)
    return f"0 3 {moment.day} {moment.month} *"
