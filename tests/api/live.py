"""The service as a process of its own, on a store in memory: `python -m tests.api.live PORT`."""

from __future__ import annotations

import asyncio
import sys

import duetime as dt
from duetime.api.server import listen, serving
from duetime.api.service import build
from duetime.config import Settings
from tests.api.conftest import RING


async def serve(port: int) -> None:
    app = dt.App("memory://")
    await app.open()
    async with serving(build(app, Settings(), ring=RING), listen("127.0.0.1", port)):
        sys.stdout.write("serving\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
