"""A process of Momentum under test: `python -m tests.momentum.worker ROLES`, until it is killed."""

from __future__ import annotations

import asyncio
import logging
import sys

from momentum.application import Momentum
from tests.momentum.processes import FleetSettings


async def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    settings = FleetSettings.from_environment().settings()
    async with Momentum.opened(settings, roles=sys.argv[1].split(",")):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
