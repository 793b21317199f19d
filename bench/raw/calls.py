"""The bare ceiling of HTTP targets: aiohttp calling the same agent in a loop, and nothing else."""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp
import uvloop


async def call(url: str, count: int, at_once: int) -> float:
    numbers = iter(range(count))
    connector = aiohttp.TCPConnector(limit=at_once)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def some() -> None:
            for number in numbers:
                async with session.post(url, json={"n": number}) as answer:
                    await answer.read()

        began = time.perf_counter()
        await asyncio.gather(*(some() for _ in range(at_once)))
    return count / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.stdout.write(f"{uvloop.run(call(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))}\n")
