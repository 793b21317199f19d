"""The app of the observed fleet. TEST_CLOCK_SKEW: by how many seconds the clock of this process is wrong."""

from __future__ import annotations

import asyncio
import os
import time

import duetime as dt

_real = time.time_ns
_skew = int(float(os.environ.get("TEST_CLOCK_SKEW", "0")) * 1e9)
if _skew:
    time.time_ns = lambda: _real() + _skew

app = dt.App()


@app.task("work")
async def work() -> None: ...


@app.task("fail", queue="failing", retry=dt.Retry(max_attempts=2, first_delay="100ms"))
async def fail() -> None:
    raise ValueError("as intended")


@app.task("crawl", queue="slow")
async def crawl() -> None:
    await asyncio.sleep(2)


@app.task("block")
async def block() -> None:
    time.sleep(1.5)
