"""How late jobs start: after a submit, due one by one, due at the same time; and how soon a waiting caller
knows the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.figures import Figure, median, quantile
from bench.processes import BenchFailed, Crew, Ground
from bench.raw import timers
from bench.raw.ceiling import PostgresCeiling
from bench.setting import Setting
from bench.stage import Stage

PER_SECOND = 50
MIN_JOBS = 50  # urgent jobs needed for a quantile
AHEAD = 4.0  # seconds from the submit until the first job is due


@dataclass(frozen=True, slots=True)
class Lateness:
    """Milliseconds; the costs in seconds of CPU."""

    p50: float
    p99: float
    last: float
    early: int
    worker_cpu: float
    server_cpu: float

    @property
    def remark(self) -> str:
        return (
            f"p50 {self.p50:.2f}, max {self.last:.1f}, CPU s {self.worker_cpu:.2f} + {self.server_cpu:.2f} "
            "server"
        )


def pick_up(setting: Setting) -> Iterator[Figure]:
    """Rounds that alternate with a bare hand-over: wake-up time and disk speed decide here, and both
    change."""
    rounds: list[Lateness] = []
    bare: list[list[float]] = []
    with setting.stage.ground() as ground, ground.working() as crew:
        for repeat in range(setting.scale.repeats):
            if isinstance(setting.ceiling, PostgresCeiling):
                bare.append([seconds * 1e3 for seconds in setting.ceiling.hand_over()])
            rounds.append(picked_up(setting, ground, crew))
            bare_p99 = f", bare p99 {quantile(bare[-1], 0.99):.1f}" if bare else ""
            setting.say(f"round {repeat + 1}: p99 {rounds[-1].p99:.1f} ms, {rounds[-1].remark}{bare_p99}")
    for key, part in (("p50", 0.5), ("p99", 0.99)):
        found = [getattr(late, key) for late in rounds]
        raw = [quantile(values, part) for values in bare]
        remark, detail = (
            f"rounds {', '.join(f'{value:.2f}' for value in found)}",
            {"rounds": found, "bare": raw},
        )
        beside = median(raw) if raw else None
        yield Figure(
            f"pick_up.{key}",
            f"pick-up at {PER_SECOND}/s, {key}",
            median(found),
            " ms",
            beside,
            remark,
            detail,
        )


def picked_up(setting: Setting, ground: Ground, crew: Crew, seconds: int | None = None) -> Lateness:
    ground.log.clear()
    costs = crew.cpu(), setting.stage.server_cpu()
    sent = ground.client("paced", PER_SECOND, seconds or setting.scale.pick_up_seconds)["sent"]
    ground.until(lambda: len(ground.log) >= len(sent), f"{len(sent)} jobs to start", crew)
    return _lateness(
        setting.stage, crew, [moment - sent[number] for number, moment in ground.log.read()], costs
    )


def answer(setting: Setting) -> Iterator[Figure]:
    with setting.stage.ground() as ground, ground.working():
        took = [seconds * 1e3 for seconds in ground.client("answers", setting.scale.answers)["took"]]
    for key, part in (("p50", 0.5), ("p99", 0.99)):
        yield Figure(
            f"answer.{key}",
            f"submit and wait, {key}",
            quantile(took, part),
            " ms",
            None,
            f"max {max(took):.1f}",
        )


def urgent(setting: Setting) -> Iterator[Figure]:
    """While the worker runs a flood of jobs of the lowest priority."""
    flood = setting.scale.flood
    found: list[Lateness] = []
    for repeat in range(setting.scale.repeats):
        with setting.stage.ground() as ground, ground.workers() as crew:
            ground.client("flood", flood)
            found.append(past_a_flood(setting, ground, crew, setting.scale.urgent_seconds))
        setting.say(f"repeat {repeat + 1}: p99 {found[-1].p99:.1f} ms, {found[-1].remark}")
    late = sorted(found, key=lambda lateness: lateness.p99)[len(found) // 2]
    yield Figure(
        "urgent.p99", f"urgent, past {flood:,} jobs of 1 ms, p99", late.p99, " ms", None, late.remark
    )


def past_a_flood(setting: Setting, ground: Ground, crew: Crew, seconds: int) -> Lateness:
    costs = crew.cpu(), setting.stage.server_cpu()
    crew.begin()
    ground.until(lambda: len(ground.log) > 0, "the flood to begin", crew)
    sent = ground.client("urgent", PER_SECOND, seconds)["sent"]
    ground.until(lambda: len(ground.log.read()) >= len(sent), f"{len(sent)} urgent jobs to start", crew)
    ended = ground.log.last_probe()
    late = [moment - sent[number] for number, moment in ground.log.read() if sent[number] < ended]
    if len(late) < MIN_JOBS:
        raise BenchFailed(f"the flood was over after {len(late)} urgent jobs: too few to tell")
    return _lateness(setting.stage, crew, late, costs)


def punctual(setting: Setting) -> Iterator[Figure]:
    count, span = setting.scale.punctual, float(setting.scale.punctual_seconds)
    bare = [seconds * 1e3 for seconds in timers.lateness()]
    with setting.stage.ground() as ground, ground.working() as crew:
        late = due(setting.stage, ground, crew, count, span)
    yield Figure(
        "punctual.p99",
        f"punctual, {count:,} over {span:.0f} s, p99",
        late.p99,
        " ms",
        quantile(bare, 0.99),
        late.remark,
    )
    yield Figure("punctual.early", "punctual, started early", late.early, "")


def beside(setting: Setting) -> Iterator[Figure]:
    """As `punctual`, in a worker with a thread that computes all the time."""
    count, span = setting.scale.punctual, float(setting.scale.punctual_seconds)
    with setting.stage.ground() as ground, ground.working() as crew:
        ground.client("computing", time.time() + 2 * AHEAD + span)
        late = due(setting.stage, ground, crew, count, span)
    yield Figure(
        "beside.p99", "punctual, beside a function that computes, p99", late.p99, " ms", None, late.remark
    )


def herd(setting: Setting) -> Iterator[Figure]:
    count = setting.scale.herd
    last = []
    with setting.stage.ground() as ground, ground.working() as crew:
        for _ in range(setting.scale.herd_repeats):
            late = due(setting.stage, ground, crew, count, 0.0)
            last.append(late.last)
            setting.say(f"last of {count:,} started after {late.last:.0f} ms")
            if late.early:
                raise BenchFailed(f"{late.early} of the herd started early")
    yield Figure(
        "herd.last",
        f"herd of {count:,}, last start",
        median(last),
        " ms",
        None,
        f"best {min(last):.0f}",
        {"last": last},
    )


def due(stage: Stage, ground: Ground, crew: Crew, count: int, span: float) -> Lateness:
    """Lateness of `count` jobs, submitted well before they are due, evenly over `span` seconds."""
    ground.log.clear()
    costs = crew.cpu(), stage.server_cpu()
    first = time.time() + AHEAD
    if ground.client("due", count, first, span)["too_late"]:
        raise BenchFailed("storing the jobs took longer than the time until the first was due")
    ground.until(lambda: len(ground.log) >= count, f"{count:,} jobs to start", crew)
    starts = ground.log.read()
    if len({number for number, _ in starts}) != count:
        raise BenchFailed(
            f"{len(starts)} starts of {len({number for number, _ in starts})} jobs; {count} were due"
        )
    return _lateness(
        stage, crew, [moment - (first + span * number / count) for number, moment in starts], costs
    )


def _lateness(stage: Stage, crew: Crew, seconds: list[float], costs: tuple[float, float]) -> Lateness:
    late = [value * 1e3 for value in seconds]
    worker_cpu, server_cpu = crew.cpu() - costs[0], stage.server_cpu() - costs[1]
    return Lateness(
        median(late),
        quantile(late, 0.99),
        max(late),
        sum(value < 0 for value in late),
        worker_cpu,
        server_cpu,
    )
