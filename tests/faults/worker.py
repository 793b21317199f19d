"""A worker process of the fault tests. Its tasks record what they do in an append-only file.

python -m tests.faults.worker STORE RECORD LEASE
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable

import duetime as dt


def recorder(path: str) -> Callable[..., None]:
    """Writes each line with one call: with O_APPEND, lines of several processes do not mix."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def record(kind: str, ctx: dt.Context) -> None:
        line = {
            "kind": kind,
            "job": str(ctx.job_id),
            "attempt": ctx.attempt,
            "pid": os.getpid(),
            "at": time.time(),
            "due": ctx.fire_time.timestamp(),
        }
        os.write(file, json.dumps(line).encode() + b"\n")

    return record


def build(store: str, record_path: str) -> dt.App:
    app = dt.App(store)
    record = recorder(record_path)

    @app.task("work", retry=dt.Retry(max_attempts=3, first_delay="100ms"))
    async def work(ctx: dt.Context, seconds: float = 0.0, fails: int = 0) -> int:
        record("start", ctx)
        await asyncio.sleep(seconds)
        if ctx.attempt <= fails:
            raise RuntimeError("planned failure")
        record("effect", ctx)
        return ctx.attempt

    @app.task("linger", retry=dt.Retry(first_delay="100ms"))
    async def linger(ctx: dt.Context, attempts: int = 1) -> int:
        """The first attempts never end by themselves."""
        record("start", ctx)
        if ctx.attempt <= attempts:
            await asyncio.Event().wait()
        record("effect", ctx)
        return ctx.attempt

    @app.task("block")
    async def block(ctx: dt.Context, seconds: float) -> None:
        record("start", ctx)
        time.sleep(seconds)
        record("effect", ctx)

    @app.task("die", retry=dt.Retry(max_losses=1))
    async def die(ctx: dt.Context) -> None:
        record("start", ctx)
        os._exit(1)

    return app


def skew_wall_clock(seconds: float) -> None:
    """Shift the wall clock of this process. The monotonic clock and the recorder's time.time() stay
    correct."""
    real = time.time_ns
    time.time_ns = lambda: real() + int(seconds * 1e9)


def main() -> None:
    skew_wall_clock(float(os.environ.get("WORKER_SKEW", "0")))
    store, record_path, lease = sys.argv[1:4]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    app = build(store, record_path)
    app.use_queue(os.environ.get("WORKER_QUEUE"))
    app.use_leases(os.environ.get("WORKER_LEASES") or None)
    roles = os.environ.get("WORKER_ROLES", "planner,worker").split(",")
    lookahead = os.environ.get("WORKER_LOOKAHEAD", "10s")
    app.run(lease=lease, concurrency=20, grace="30s", roles=roles, lookahead=lookahead)


if __name__ == "__main__":
    main()
