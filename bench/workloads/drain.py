"""How fast pending no-op jobs are run: from the first start until all are settled, with history."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from bench.figures import Figure
from bench.processes import BenchFailed, Crew, Ground
from bench.raw.ceiling import BareDrain
from bench.setting import Setting
from bench.stage import RedisStage, Stage

PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Drained:
    rate: float
    starts_rate: float  # only until the last start: the difference is the settling
    worker_cpu: float  # microseconds per job
    server_cpu: float
    resident: float  # megabytes, all workers


Result = TypeVar("Result", Drained, BareDrain)


def one_worker(setting: Setting) -> Iterator[Figure]:
    count = setting.scale.drain
    yield from _repeated(setting, "drain", f"drain {count:,}, one worker", "bulk", count, 1)


def two_workers(setting: Setting) -> Iterator[Figure]:
    count = setting.scale.drain
    yield from _repeated(setting, "drain_two", f"drain {count:,}, two workers", "bulk", count, 2)


def then_kill(setting: Setting) -> Iterator[Figure]:
    """The server is killed as soon as the last settlement is acknowledged."""
    stage, count = setting.stage, setting.scale.drain
    assert isinstance(stage, RedisStage)
    drains: list[Drained] = []
    lost = 0
    for repeat in range(setting.scale.repeats):
        with stage.ground() as ground:
            drains.append(drain(stage, ground, "bulk", count, after=stage.kill))
            lost += count - stage.finished(ground)
        setting.say(f"repeat {repeat + 1}: {drains[-1].rate:,.0f}/s, {lost:,} lost")
    yield drain_figure("drain_kill.rate", f"drain {count:,}, then the server is killed", drains)
    yield Figure("drain_kill.lost", "finished jobs that the killed server had lost", lost, "")


def long(setting: Setting) -> Iterator[Figure]:
    count = setting.scale.drain_long
    yield from _beside_plain(setting, "drain_long", f"drain {count:,}, one worker", "bulk", count)


def lanes(setting: Setting) -> Iterator[Figure]:
    count = setting.scale.drain
    yield from _beside_plain(
        setting, "drain_lanes", f"drain {count:,}, 5 queues x 10 priorities", "lanes", count
    )


def drain(
    stage: Stage,
    ground: Ground,
    fill: str,
    count: int,
    workers: int = 1,
    after: Callable[[], None] = lambda: None,
    rest: Callable[[], None] = lambda: None,
) -> Drained:
    """Submit the jobs, then let the ready workers begin together. When all are settled `rest` is called, the
    CPU of which counts, and then `after`."""
    ground.log.clear()
    ground.client(fill, count)
    with ground.workers(workers) as crew, stage.unsettled(ground) as unsettled:
        server = stage.server_cpu()
        workers_before = crew.cpu()
        crew.begin()
        ground.until(lambda: len(ground.log) >= count, f"{count:,} jobs to start", crew, PATIENCE)
        ground.until(lambda: unsettled() == 0, "all jobs to be settled", crew, PATIENCE)
        ended = time.time()
        rest()
        costs = (crew.cpu() - workers_before, stage.server_cpu() - server)
        after()
        return _drained(ground, crew, count, ended, costs)


def _drained(ground: Ground, crew: Crew, count: int, ended: float, costs: tuple[float, float]) -> Drained:
    starts = ground.log.read()
    different = len({number for number, _ in starts})
    if different != count or len(starts) != count:
        raise BenchFailed(f"{count:,} jobs were submitted; {different:,} ran, in {len(starts):,} starts")
    first, last = min(moment for _, moment in starts), max(moment for _, moment in starts)
    worker_cpu, server_cpu = (cost / count * 1e6 for cost in costs)
    return Drained(
        count / (ended - first), count / (last - first), worker_cpu, server_cpu, crew.resident_megabytes()
    )


def _repeated(setting: Setting, key: str, name: str, fill: str, count: int, workers: int) -> Iterator[Figure]:
    drains: list[Drained] = []
    bare: list[BareDrain] = []
    for repeat in range(setting.scale.repeats):
        bare.append(setting.ceiling.drain(count, workers))
        drains.append(_on_new_ground(setting, fill, count, workers))
        setting.say(f"repeat {repeat + 1}: {drains[-1].rate:,.0f}/s, bare {bare[-1].rate:,.0f}/s")
    yield drain_figure(f"{key}.rate", name, drains, bare)


def _beside_plain(setting: Setting, key: str, name: str, fill: str, count: int) -> Iterator[Figure]:
    """Alternating with the plain drain, because the speed of the machine changes and the limit is a
    multiple of the plain drain."""
    plain_count = setting.scale.drain
    plain: list[Drained] = []
    drains: list[Drained] = []
    for repeat in range(setting.scale.turns):
        plain.append(_on_new_ground(setting, "bulk", plain_count))
        drains.append(_on_new_ground(setting, fill, count))
        setting.say(f"repeat {repeat + 1}: {drains[-1].rate:,.0f}/s, plain {plain[-1].rate:,.0f}/s")
    beside = drain_figure(f"{key}.plain", f"drain {plain_count:,}, in turns with the next", plain)
    yield beside
    yield drain_figure(f"{key}.rate", name, drains, beside=beside.value)


def _on_new_ground(setting: Setting, fill: str, count: int, workers: int = 1) -> Drained:
    with setting.stage.ground() as ground:
        return drain(setting.stage, ground, fill, count, workers)


def drain_figure(
    key: str, name: str, drains: list[Drained], bare: Sequence[BareDrain] = (), beside: float | None = None
) -> Figure:
    """The median; with the figure of the bare store, or the ratio to the figure `beside`."""
    middle, bare_middle = _middle(drains), _middle(bare) if bare else None
    told = [f"{middle.rate / beside:.2f} x the plain drain"] if beside else []
    told.append(f"best {max(drained.rate for drained in drains):,.0f}")
    cpu = f"CPU us/job {middle.worker_cpu:.0f} + {middle.server_cpu:.0f} server"
    told.append(
        f"{cpu} (bare {bare_middle.client_cpu:.0f} + {bare_middle.server_cpu:.0f})" if bare_middle else cpu
    )
    detail = {
        "repeats": [asdict(drained) for drained in drains],
        "bare": [asdict(drained) for drained in bare],
    }
    return Figure(
        key, name, middle.rate, "/s", bare_middle.rate if bare_middle else None, ", ".join(told), detail
    )


def _middle(drains: Sequence[Result]) -> Result:
    return sorted(drains, key=lambda drained: drained.rate)[len(drains) // 2]
