"""The bare floor of agents called every second: aiohttp sending the same calls at full seconds, without a
store, and nothing else."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime

import aiohttp
import uvloop

SCHEDULE, FIRE_TIME = "Duetime-Schedule", "Duetime-Fire-Time"


async def call(url: str, name: str, count: int, first: int, seconds: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def once(headers: dict[str, str]) -> None:
            async with session.post(url, json={}, headers=headers) as answer:
                await answer.read()

        for second in range(first, first + seconds):
            fire_time = datetime.fromtimestamp(second, UTC).isoformat()
            due = [{SCHEDULE: f"{name} {number}", FIRE_TIME: fire_time} for number in range(count)]
            await asyncio.sleep(max(0.0, second - time.time()))
            await asyncio.gather(*(once(headers) for headers in due))


if __name__ == "__main__":
    uvloop.run(call(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])))
