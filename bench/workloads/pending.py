"""The same again beside millions of jobs that are not due for a month: nothing may become slower."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.figures import Figure, median
from bench.processes import Ground
from bench.setting import Setting
from bench.stage import PostgresStage
from bench.workloads.drain import drain, drain_figure
from bench.workloads.latency import due


def beside_millions(setting: Setting) -> Iterator[Figure]:
    stage = setting.stage
    assert isinstance(stage, PostgresStage)
    for count in setting.scale.pending:
        with stage.ground() as ground:
            began = time.monotonic()
            stage.add_pending(ground, count)
            setting.say(f"{count:,} pending jobs loaded in {time.monotonic() - began:.0f} s")
            yield from _beside(setting, ground, f"{count // 1_000_000}m", f"{count // 1_000_000} M pending")


def _beside(setting: Setting, ground: Ground, key: str, name: str) -> Iterator[Figure]:
    scale = setting.scale
    with ground.working() as crew:
        late = due(setting.stage, ground, crew, scale.punctual, float(scale.punctual_seconds))
        yield Figure(f"punctual_{key}.p99", f"punctual, {name}, p99", late.p99, " ms", None, late.remark)
        yield Figure(f"punctual_{key}.early", f"punctual, {name}, started early", late.early, "")
        last = [due(setting.stage, ground, crew, scale.herd, 0.0).last for _ in range(scale.herd_repeats)]
        yield Figure(f"herd_{key}.last", f"herd, {name}, last start", median(last), " ms", None, f"best {min(last):.0f}", {"last": last})
    drains = []
    for repeat in range(scale.repeats):
        drains.append(drain(setting.stage, ground, "bulk", scale.drain))
        setting.say(f"drain {repeat + 1}: {drains[-1].rate:,.0f}/s")
    yield drain_figure(f"drain_{key}.rate", f"drain {scale.drain:,}, {name}", drains, [setting.ceiling.drain(scale.drain)])
