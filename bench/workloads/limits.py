"""The cost of limits per key: jobs of many keys, with a few running per key, and the same jobs without
limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from bench.figures import Figure, median
from bench.processes import BenchFailed, Ground
from bench.setting import Setting
from bench.stage import Stage

KEYS = 50
AT_ONCE = 2
WORKERS = 3
SLOTS = (
    34  # per worker: in total what the limits allow, so that the run without limits has the same concurrency
)
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Jobs per second, one run right after another."""

    limited: float
    unlimited: float
    at_once: int  # running jobs of one key, while it was limited

    @property
    def share(self) -> float:
        return self.limited / self.unlimited


def per_key(setting: Setting) -> Iterator[Figure]:
    for milliseconds in setting.scale.limited_milliseconds:
        pairs = [_pair(setting, milliseconds / 1e3) for _ in range(setting.scale.repeats)]
        most = max(pair.at_once for pair in pairs)
        if most > AT_ONCE:
            raise BenchFailed(f"{most} jobs of one key ran at once, and {AT_ONCE} may")
        middle = sorted(pairs, key=lambda pair: pair.share)[len(pairs) // 2]
        name = f"{KEYS} keys x {AT_ONCE}, jobs of {milliseconds} ms, of the rate without limits"
        remark = f"{middle.limited:,.0f}/s of {middle.unlimited:,.0f}/s, never more than {most} of a key"
        share = median([pair.share for pair in pairs])
        yield Figure(
            f"limits.share_{milliseconds}ms",
            name,
            100 * share,
            " %",
            None,
            remark,
            {"pairs": [asdict(pair) for pair in pairs]},
        )


def _pair(setting: Setting, seconds: float) -> Pair:
    count = setting.scale.limited
    unlimited, _ = _run(setting.stage, "unlimited", count, seconds)
    limited, at_once = _run(setting.stage, "limited", count, seconds)
    setting.say(
        f"{seconds * 1e3:.0f} ms: {limited:,.0f}/s of {unlimited:,.0f}/s without limits, "
        f"{limited / unlimited:.0%}"
    )
    return Pair(limited, unlimited, at_once)


def _run(stage: Stage, task: str, count: int, seconds: float) -> tuple[float, int]:
    """Jobs per second from the first start until all are settled, and the running jobs of one key."""
    with stage.ground() as ground:
        ground.client("keyed", task, count, KEYS, seconds)
        with ground.workers(WORKERS, SLOTS) as crew, stage.unsettled(ground) as unsettled:
            crew.begin()
            ground.until(lambda: len(ground.log) >= 2 * count, f"{count:,} jobs to end", crew, PATIENCE)
            ground.until(lambda: unsettled() == 0, "all jobs to be settled", crew, PATIENCE)
            return count / (time.time() - _first_start(ground, count)), ground.log.at_once(KEYS)


def _first_start(ground: Ground, count: int) -> float:
    starts = ground.log.read()
    if len(starts) != count or len({number for number, _ in starts}) != count:
        raise BenchFailed(
            f"{count:,} jobs were submitted; {len({number for number, _ in starts}):,} ran, in "
            f"{len(starts):,} starts"
        )
    return min(moment for _, moment in starts)
