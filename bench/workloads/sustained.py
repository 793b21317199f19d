"""A steady 10,000 jobs per second: how late they start, also while another client holds a transaction
open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

from bench.figures import Figure, median, quantile
from bench.processes import BenchFailed, Ground
from bench.setting import Setting
from bench.stage import PostgresStage

PER_SECOND = 10_000
BATCH = 200
ENOUGH = 0.95  # of the pace; otherwise the lateness means nothing


def held(setting: Setting) -> Iterator[Figure]:
    stage = setting.stage
    assert isinstance(stage, PostgresStage)
    with stage.ground() as ground:
        yield _figure(setting, ground, "sustained.p99", "10,000 jobs/s, start p99", nullcontext())
    with stage.ground() as ground:
        yield _figure(
            setting,
            ground,
            "held.p99",
            "the same, transaction held, start p99",
            stage.held_transaction(ground),
        )


def _figure(
    setting: Setting, ground: Ground, key: str, name: str, meanwhile: AbstractContextManager[None]
) -> Figure:
    seconds = setting.scale.sustained_seconds
    with ground.working() as crew:
        before = crew.cpu(), setting.stage.server_cpu()
        with meanwhile:
            sent = ground.client("sustained", PER_SECOND, seconds, BATCH)["sent"]
            ground.until(lambda: len(ground.log) >= len(sent) * BATCH, "all jobs to start", crew, 300.0)
        cpu = [
            (after - start) / seconds * 100
            for after, start in zip((crew.cpu(), setting.stage.server_cpu()), before, strict=True)
        ]
        late = [(moment - sent[number // BATCH]) * 1e3 for number, moment in ground.log.read()]
    offered = (len(sent) - 1) * BATCH / (sent[-1] - sent[0])
    if offered < ENOUGH * PER_SECOND:
        raise BenchFailed(
            f"the submitting process came only to {offered:,.0f} jobs/s: the machine is too busy for "
            "this workload"
        )
    remark = (
        f"{offered:,.0f}/s offered for {seconds} s, p50 {median(late):.1f}, max {max(late):.0f}, CPU "
        f"{cpu[0]:.0f} % + {cpu[1]:.0f} % server"
    )
    return Figure(
        key,
        name,
        quantile(late, 0.99),
        " ms",
        None,
        remark,
        {"p50": median(late), "max": max(late), "offered": offered},
    )
