"""Worker processes under test, an app in the test process as client, and the record of what the tasks did."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import duetime as dt
from tests.faults.worker import build

TIMEOUT = 120.0  # seconds; only a fault takes that long, or a very busy machine
# Stores report a killed process immediately, so no test waits for this lease to end.
LEASE = "30s"
SHORT_LEASE = "2s"  # for nodes that must lose it
CLOCK_ERROR = 0.002  # seconds; the recorder and the store read the same clock


class Fleet:
    worker_module = "tests.faults.worker"

    def __init__(self, store: str, folder: Path, lease: str = LEASE) -> None:
        self.store = store
        self.folder = folder
        self.record = folder / "record.jsonl"
        self.record.touch()
        self.lease = lease
        self.app = build(store, str(self.record))
        self.workers: list[subprocess.Popen[bytes]] = []

    async def __aenter__(self) -> Self:
        await self.app.migrate()
        await self.app.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
        await self.app.close()

    def spawn(
        self,
        failpoints: str = "",
        store: str | None = None,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> subprocess.Popen[bytes]:
        command = [
            python,
            "-m",
            self.worker_module,
            store or self.store,
            str(self.record),
            self.lease,
        ]
        variables = {**os.environ, "DUETIME_FAILPOINTS": failpoints, **(environment or {})}
        with self._log(len(self.workers)).open("wb") as log:
            worker = subprocess.Popen(command, env=variables, stdout=log, stderr=subprocess.STDOUT)
        self.workers.append(worker)
        return worker

    async def pause(self, worker: subprocess.Popen[bytes]) -> None:
        """Stop a worker, but not while it holds the write lock of an SQLite file, which would stop all
        workers."""
        while True:
            worker.send_signal(signal.SIGSTOP)
            if await asyncio.to_thread(self._writable):
                return
            worker.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.02)

    async def joined(self, count: int) -> None:
        """Wait until this many nodes are alive."""

        async def enough() -> bool:
            return sum(not node.dead for node in await self.app.nodes()) >= count

        await self.until(enough, f"{count} nodes to join")

    async def newest_joined(self) -> None:
        """Wait until the worker that was started last is a node."""
        log = self._log(len(self.workers) - 1)

        async def has_joined() -> bool:
            return b" joined as " in log.read_bytes()

        await self.until(has_joined, "the newest worker to join")

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, timeout: float = TIMEOUT) -> None:
        """Poll the condition; fail with the logs of all workers when the time is up."""
        try:
            async with asyncio.timeout(timeout):
                while not await self._holds(holds):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"waited {timeout} s for {what}\n{self.logs()}") from None

    async def recorded(self, kind: str, count: int) -> None:
        """Wait until the tasks have recorded this many events of a kind."""

        async def enough() -> bool:
            return len(self.seen(kind)) >= count

        await self.until(enough, f"{count} times {kind!r}")

    async def finished(self, jobs: list[dt.JobHandle]) -> None:
        """Wait until all jobs are final."""
        for job in jobs:

            async def final(job: dt.JobHandle = job) -> bool:
                return (await job.refresh()).state.final

            await self.until(final, f"{job} to finish")

    async def queues_are_empty(self) -> bool:
        queues = await self.app.store.queues(counted=True)
        return not any(queue.counts is not None and any(queue.counts) for queue in queues)

    async def check_fires(self, schedule: str, interval: float) -> None:
        """After any fault, of a schedule that runs all missed fires: it still fires, no fire is missing or
        doubled, and the job of each has succeeded."""
        begun = datetime.now(UTC)

        async def fires() -> bool:
            found = await self.app.jobs(schedule=schedule, limit=500)
            return any(fire.state.final and fire.fire_time > begun for fire in found)

        await self.until(fires, f"{schedule!r} to fire again")
        await self.app.pause(schedule)

        async def all_final() -> bool:
            return all(fire.state.final for fire in await self.app.jobs(schedule=schedule, limit=500))

        await self.until(all_final, "every fire to finish")
        found = await self.app.jobs(schedule=schedule, limit=500)
        times = sorted(fire.fire_time.timestamp() for fire in found)
        steps = {round(later - earlier, 3) for earlier, later in itertools.pairwise(times)}
        assert steps == {interval}, f"a fire is missing or doubled: {times}"
        assert [(fire, fire.error) for fire in found if fire.state != "succeeded"] == []

    def seen(self, kind: str) -> list[dict[str, Any]]:
        whole, _, _ = self.record.read_bytes().rpartition(b"\n")  # a worker may be writing another line
        lines = whole.splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def starts(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in self.seen("start"):
            found[event["job"]].append(event)
        return found

    def check_starts(self) -> None:
        """After any fault: no job started early, and each attempt started once."""
        early = [event for event in self.seen("start") if event["at"] < event["due"] - CLOCK_ERROR]
        assert not early, f"started early: {early}"
        held = Counter((event["job"], event["attempt"]) for event in self.seen("start"))
        assert held, "no job started"
        assert max(held.values()) == 1, f"an attempt started twice: {held.most_common(3)}"

    def unexplained(self, killed: Collection[int], outages: Collection[float] = ()) -> list[str]:
        """Jobs that started again although the process that ran them was not killed, and the store was not in
        between."""
        return [
            job
            for job, starts in self.starts().items()
            if not all(
                before["pid"] in killed or any(before["at"] <= moment <= after["at"] for moment in outages)
                for before, after in itertools.pairwise(starts)
            )
        ]

    def logs(self) -> str:
        return "\n".join(
            f"--- worker {number}\n{self._log(number).read_text()[-1500:]}"
            for number in range(len(self.workers))
        )

    def _log(self, number: int) -> Path:
        return self.folder / f"worker-{number}.log"

    def _writable(self) -> bool:
        path = self.store.removeprefix("sqlite:///")
        if path == self.store:
            return True
        with contextlib.closing(sqlite3.connect(path, timeout=1.0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            connection.execute("ROLLBACK")
            return True

    async def _holds(self, holds: Callable[[], Awaitable[bool]]) -> bool:
        try:
            return await holds()
        except dt.StoreUnavailable:
            return False
