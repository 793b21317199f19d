"""A fleet of tool workers."""

from __future__ import annotations

from pathlib import Path

from tests.faults.fleet import Fleet
from tests.faults.tool_worker import build


class ToolFleet(Fleet):
    worker_module = "tests.faults.tool_worker"

    def __init__(self, store: str, folder: Path) -> None:
        super().__init__(store, folder)
        self.app = build(store, str(self.record))

    @property
    def on_postgres(self) -> bool:
        return self.store.startswith("postgresql")

    async def result(self, task: str) -> object:
        job = await self.app.submit(task)
        await self.finished([job])
        assert job.state == "succeeded", job.error
        return job.result
