"""A worker process with tasks that save checkpoints, have limits, or write through `ctx.connection`.

python -m tests.faults.tool_worker STORE RECORD LEASE
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from typing import Any

import duetime as dt

BALANCE = "CREATE TABLE IF NOT EXISTS balance (id int PRIMARY KEY, amount int NOT NULL)"
ENTRIES = "CREATE TABLE IF NOT EXISTS entries (job text NOT NULL, attempt int NOT NULL)"


def build(store: str, record_path: str) -> dt.App:
    app = dt.App(store)
    file = os.open(record_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def record(kind: str, ctx: dt.Context, **more: Any) -> None:
        line = {
            "kind": kind,
            "job": str(ctx.job_id),
            "attempt": ctx.attempt,
            "pid": os.getpid(),
            "at": time.time(),
            **more,
        }
        os.write(file, json.dumps({**line, "due": ctx.fire_time.timestamp()}).encode() + b"\n")

    @app.task("steps")
    async def run_steps(ctx: dt.Context, steps: int) -> int:
        first = ctx.last_checkpoint or 0
        record("start", ctx, step=first)
        for step in range(first, steps):
            await asyncio.sleep(0.05)
            await ctx.checkpoint(step + 1)
            record("step", ctx, step=step + 1)
        return steps - first

    @app.task("keyed", limit=dt.Limit(2, per="key"))
    async def keyed(ctx: dt.Context, key: int) -> None:
        record("start", ctx, key=key)
        await asyncio.sleep(0.005)
        record("end", ctx, key=key)

    @app.task("prepare")
    async def prepare(ctx: dt.Context) -> None:
        await ctx.connection.execute(BALANCE)
        await ctx.connection.execute(ENTRIES)
        await ctx.connection.execute("INSERT INTO balance VALUES (1, 0)")

    @app.task("add")
    async def add(ctx: dt.Context) -> None:
        record("start", ctx)
        await asyncio.sleep(0.02)
        await ctx.connection.execute("INSERT INTO entries VALUES ($1, $2)", str(ctx.job_id), ctx.attempt)
        await asyncio.sleep(0.002)
        await ctx.connection.execute("UPDATE balance SET amount = amount + 1 WHERE id = 1")

    @app.task("read")
    async def read(ctx: dt.Context) -> dict[str, int]:
        return {
            "amount": await ctx.connection.fetchval("SELECT amount FROM balance WHERE id = 1"),
            "entries": await ctx.connection.fetchval("SELECT count(*) FROM entries"),
            "jobs": await ctx.connection.fetchval("SELECT count(DISTINCT job) FROM entries"),
        }

    return app


def main() -> None:
    store, record_path, lease = sys.argv[1:4]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    build(store, record_path).run(lease=lease, concurrency=10, grace="30s")


if __name__ == "__main__":
    main()
