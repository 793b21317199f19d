"""A node in a process of its own, whose wall clock differs from the store's. It leads nothing and delivers
nothing; another node tells it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import duetime as dt
from duetime.cli.backend import open_backend
from duetime.cli.commands.doctor import examine, observe
from duetime.config import Settings
from tests.alerts.test_delivery import receiver
from tests.servers.receiver import Receiver

__all__ = ["receiver"]  # a fixture

pytestmark = pytest.mark.slow
TIMEOUT = 180  # seconds, for the whole test


@contextmanager
def skewed_node(url: str, offset: Path) -> Iterator[subprocess.Popen[bytes]]:
    options = ("--roles", "worker", "--queues", "other", "--alert-interval", "1s", "--lease", "2s")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.alerts.skewed_node", str(offset), "serve", "--store", url, *options],
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def told(receiver: Receiver) -> list[tuple[str, str, str]]:
    """Of clocks: what kind of notice, about which node, in which words."""
    return [
        (notice["type"], alert["subject"], alert["text"])
        for notice in (one.json for one in receiver.received)
        for alert in notice["data"]["alerts"]
        if alert["condition"] == "clock_skew"
    ]


async def until_told(receiver: Receiver, count: int) -> None:
    while len(told(receiver)) < count:
        await asyncio.sleep(0.05)


async def test_clock_that_differs_is_told_until_it_is_right_or_gone(
    redis_url: str, receiver: Receiver, tmp_path: Path
) -> None:
    offset, app = tmp_path / "offset", dt.App(redis_url)
    offset.write_text("60")
    await app.migrate()
    async with asyncio.timeout(TIMEOUT), app.running(roles=["planner"], alert_interval="1s"):
        await app.alerts.set_channel("ops", type="webhook", url=receiver.url)
        await app.alerts.set_rule("clock_skew", after="50s")
        with skewed_node(redis_url, offset) as process:
            await until_told(receiver, 1)
            offset.write_text("0")
            await until_told(receiver, 2)
            offset.write_text("-60")
            await until_told(receiver, 3)
            process.kill()
            await until_told(receiver, 4)
    kinds, subjects, texts = zip(*told(receiver), strict=True)
    assert kinds == ("alert.firing", "alert.resolved") * 2
    assert all(one.endswith(f"-{process.pid}") for one in subjects)
    assert " ahead of the store's: check its NTP service" in texts[0]
    assert "the clock is right again" in texts[1]
    assert " behind the store's" in texts[2]


async def test_clock_that_differs_is_known_without_any_alert(redis_url: str, tmp_path: Path) -> None:
    """`duetime doctor` reads it."""
    offset, app = tmp_path / "offset", dt.App(redis_url)
    offset.write_text("-40")
    await app.migrate()
    async with asyncio.timeout(TIMEOUT), app:

        async def skew() -> float | None:
            return next((node.clock_skew for node in await app.nodes.views()), None)

        with skewed_node(redis_url, offset):
            while (told := await skew()) is None:
                await asyncio.sleep(0.05)
            assert -41 < told < -39
            async with open_backend(Settings(store=redis_url)) as backend:
                [clock] = [check for check in examine(await observe(backend)) if check.name == "clock"]
            assert clock.level == "warn"
            assert "is 40s" in clock.text
            assert clock.text.endswith("behind the store")
            offset.write_text("0")
            while await skew() is not None:
                await asyncio.sleep(0.05)
