"""Many schedules at once, straight into the store."""

from __future__ import annotations

import asyncio

import duetime as dt

AT_ONCE = 200


async def fill(store: str, count: int) -> None:
    app = dt.App(store)
    await app.open()
    when = dt.Cron("0 4 1 1 *", tz="Europe/Berlin")
    for first in range(0, count, AT_ONCE):
        names = (f"crowd-{number:05}" for number in range(first, min(first + AT_ONCE, count)))
        await asyncio.gather(*(app.schedule(name, "greet", when, payload={"name": name}, owner="ada") for name in names))
    await app.close()
