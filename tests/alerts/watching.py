"""A fleet in virtual time whose alerts are swept as a leader does it, and what its channels are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duetime as dt
from duetime import testing
from duetime.engine.alert.notices import ALERT_QUEUE
from duetime.engine.alert.sweep import AlertSweep
from duetime.model import duration
from duetime.model.codec import decode
from duetime.model.instant import SECOND
from duetime.model.job import JobFilter
from duetime.model.lease import NodeId

KEY = "test:" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA=="


class Watch:
    """`run` lets time pass and sweeps as a leader does; `told` is what a channel was told, in order."""

    def __init__(self, app: dt.App, time: testing.VirtualTime, leads: Callable[[], bool] = lambda: True):
        self.app = app
        self.time = time
        self.sweep = AlertSweep(app.store, app.clock, leads, NodeId(1), "test")

    async def run(self, minutes: float, step: str = "15s") -> None:
        for _ in range(round(minutes * 60 * SECOND / duration.parse(step, "step"))):
            await self.sweep.run_once()
            await self.time.advance(step)
        await self.sweep.run_once()

    async def notices(self, channel: str = "ops", tenant: str = "default") -> list[dict[str, Any]]:
        jobs = await self.app.store.list_jobs(JobFilter(tenant, queue=ALERT_QUEUE), 1_000)
        told = [decode(job.payload) for job in reversed(jobs)]
        return [notice for notice in told if notice["channel"] == channel]

    async def told(self, channel: str = "ops", tenant: str = "default") -> list[tuple[str, str, list[str]]]:
        """Kind, condition and subjects."""
        return [
            (notice["kind"], notice["condition"], sorted(one["subject"] for one in notice["alerts"]))
            for notice in await self.notices(channel, tenant)
        ]
