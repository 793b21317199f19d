"""The same with millions of jobs that are due in a month: nothing may become slower.

Measured in turns with an empty store on the same server, since a machine that others share is not the same a
minute later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from bench.figures import Figure, median
from bench.processes import Ground
from bench.setting import Setting
from bench.stage import PostgresStage, RedisStage
from bench.workloads.drain import Drained, drain
from bench.workloads.latency import Lateness, due

Result = TypeVar("Result", Lateness, Drained)


class Pair(NamedTuple):
    full: Ground
    empty: Ground

    def in_turns(
        self, repeats: int, measure: Callable[[Ground], Result]
    ) -> tuple[list[Result], list[Result]]:
        """Of the full store and of the empty one."""
        found: dict[Ground, list[Result]] = {self.full: [], self.empty: []}
        for _ in range(repeats):
            for ground, results in found.items():
                results.append(measure(ground))
        return found[self.full], found[self.empty]


def beside_millions(setting: Setting) -> Iterator[Figure]:
    stage = setting.stage
    assert isinstance(stage, PostgresStage | RedisStage)
    for count in setting.scale.pending:
        with stage.ground() as full, stage.ground("empty") as empty:
            began = time.monotonic()
            before = stage.resident_megabytes() if isinstance(stage, RedisStage) else 0.0
            stage.add_pending(full, count)
            setting.say(f"{count:,} pending jobs loaded in {time.monotonic() - began:.0f} s")
            key, name = f"{count // 1_000_000}m", f"{count // 1_000_000} M pending"
            if isinstance(stage, RedisStage):
                yield _memory(stage, key, name, count, before)
            yield from _on_time(setting, Pair(full, empty), key, name)
            yield from _drained(setting, Pair(full, empty), key, name)


def _memory(stage: RedisStage, key: str, name: str, count: int, before: float) -> Figure:
    resident = stage.resident_megabytes()
    remark = f"{before:.0f} MB when empty, {(resident - before) * 2**20 / count:.0f} bytes a job"
    return Figure(f"memory_{key}.resident", f"memory of the server, {name}", resident, " MB", None, remark)


def _on_time(setting: Setting, pair: Pair, key: str, name: str) -> Iterator[Figure]:
    scale = setting.scale
    with pair.full.working() as first, pair.empty.working() as second:
        crews = {pair.full: first, pair.empty: second}

        def punctual(ground: Ground) -> Lateness:
            return due(setting.stage, ground, crews[ground], scale.punctual, float(scale.punctual_seconds))

        def herd(ground: Ground) -> Lateness:
            return due(setting.stage, ground, crews[ground], scale.herd, 0.0)

        late, empty = pair.in_turns(scale.repeats, punctual)
        yield from _beside(
            f"punctual_{key}.p99",
            "punctual, {}, p99",
            name,
            " ms",
            [run.p99 for run in late],
            [run.p99 for run in empty],
        )
        yield Figure(
            f"punctual_{key}.early", f"punctual, {name}, started early", sum(run.early for run in late), ""
        )
        late, empty = pair.in_turns(scale.turns, herd)
        yield from _beside(
            f"herd_{key}.last",
            "herd, {}, last start",
            name,
            " ms",
            [run.last for run in late],
            [run.last for run in empty],
        )


def _drained(setting: Setting, pair: Pair, key: str, name: str) -> Iterator[Figure]:
    count = setting.scale.drain
    full, empty = pair.in_turns(
        setting.scale.repeats, lambda ground: drain(setting.stage, ground, "bulk", count)
    )
    title = f"drain {count:,}, {{}}"
    yield from _beside(
        f"drain_{key}.rate", title, name, "/s", [run.rate for run in full], [run.rate for run in empty]
    )


def _beside(
    key: str, title: str, name: str, unit: str, full: list[float], empty: list[float]
) -> Iterator[Figure]:
    """The median of each; the limit is a multiple of the empty store's figure."""
    basis = f"{key.partition('.')[0]}.empty"
    yield Figure(
        basis,
        title.format("none pending"),
        median(empty),
        unit,
        None,
        "in turns with the next",
        {"all": empty},
    )
    remark = f"{median(full) / median(empty):.2f} x the empty store's"
    yield Figure(key, title.format(name), median(full), unit, None, remark, {"all": full})
