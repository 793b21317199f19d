"""A fleet of real processes that a real Prometheus observes, with the shipped rules sixty times as fast."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import duetime as dt
from tests.servers.brokers import RedisServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port
from tests.servers.prometheus import PrometheusServer
from tests.servers.service import Service

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "rules.yml"
TIMEOUT = 180.0  # seconds; only a fault takes that long, or a very busy machine
SECONDS = {"s": 1, "m": 60, "h": 3_600}
# Of these the threshold is a time, too.
TIMED = re.compile(
    r"(duetime_queue_lag_seconds\)|duetime_schedule_lateness_seconds_bucket\[\w+\]\)\)\)) > (\d+)"
)


def faster(rules: str) -> str:
    """Every duration divided by sixty."""

    def shorten(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) * SECONDS[match[3]] // 60}s"

    rules = re.sub(r"(\[|offset |for: )(\d+)([smh])\b", shorten, rules)
    return TIMED.sub(lambda match: f"{match[1]} > {int(match[2]) / 60}", rules)


class Scene:
    """A planner, a worker with a broker and a read replica that is not there, and a process whose clock is
    wrong."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._services: dict[str, Service] = {}

    async def __aenter__(self) -> Self:
        self.postgres = self._stack.enter_context(PostgresServer(durable=True))
        self.redis = self._stack.enter_context(RedisServer())
        self.prometheus = self._stack.enter_context(PrometheusServer(faster(RULES.read_text("utf-8"))))
        self.url = self.postgres.create_database("observed")
        self.app = dt.App(self.url)
        await self.app.migrate()
        await self.app.open()
        await asyncio.to_thread(self._start_all)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop_services()
        await self.app.close()
        self._stack.close()

    def _start_all(self) -> None:
        self.start("planner", "--roles", "api,planner")
        replica = f"postgresql://127.0.0.1:{free_port()}/nowhere"
        self.start(
            "worker", "--roles", "api,worker,dispatcher", "--queue", self.redis.url, "--read-store", replica
        )
        self.start("skewed", "--roles", "api", skew=5)

    def start(self, name: str, *options: str, skew: float = 0) -> None:
        environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "TEST_CLOCK_SKEW": str(skew)}
        self._services[name] = Service(
            self.url,
            self._folder / f"{name}.log",
            "--app",
            "tests.observing.tasks:app",
            "--lease",
            "3s",
            *options,
            environment=environment,
        )
        self.scrape()

    def address(self, name: str) -> str:
        return self._services[name].address

    def kill(self, name: str) -> None:
        self._services[name].process.kill()

    def stop_services(self) -> None:
        for service in self._services.values():
            service.process.kill()
            service.process.wait(TIMEOUT)
        self._services.clear()

    def scrape(self) -> None:
        self.prometheus.scrape([service.address for service in self._services.values()])

    async def fires(self, *alerts: str, does_not: bool = False) -> None:
        """Wait until these alerts fire, or do not fire any more."""

        async def hold() -> bool:
            firing = await asyncio.to_thread(self.prometheus.firing)
            return firing.isdisjoint(alerts) if does_not else firing.issuperset(alerts)

        await self.until(hold, f"{alerts} to {'recover' if does_not else 'fire'}")

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                while not await holds():
                    await asyncio.sleep(0.2)
        except TimeoutError:
            firing = self.prometheus.firing()
            raise AssertionError(f"waited {TIMEOUT} s for {what}; firing: {sorted(firing)}") from None
