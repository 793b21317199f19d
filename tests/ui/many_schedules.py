"""Adds many schedules to a store."""

from __future__ import annotations

import asyncio
import sys

import duetime as dt

BATCH_SIZE = 200


async def fill(store: str, count: int) -> None:
    app = dt.App(store)
    await app.open()
    when = dt.Cron("0 4 1 1 *", tz="Europe/Berlin")
    for first in range(0, count, BATCH_SIZE):
        names = (f"many-{number:05}" for number in range(first, min(first + BATCH_SIZE, count)))
        await asyncio.gather(
            *(app.schedule(name, "greet", when, payload={"name": name}, owner="ada") for name in names)
        )
    await app.close()


if __name__ == "__main__":
    asyncio.run(fill(sys.argv[1], int(sys.argv[2])))
