"""Stored schedules that this machine cannot read: shown, paused with the reason, and not blocking others. Those
that an older version stored and this one would refuse: read."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

import duetime as dt
from tests.app.waiting import eventually


async def test_schedule_of_a_vanished_zone_is_paused_alone(tmp_path: Path) -> None:
    path = tmp_path / "duetime.db"
    app = dt.App(f"sqlite:///{path}")
    ran: list[str | None] = []

    @app.task("work")
    async def work(ctx: dt.Context) -> None:
        ran.append(ctx.schedule)

    await app.open()
    await app.schedule("good", work, dt.Every("1s"))
    await app.schedule("bad", work, dt.Cron("* * * * * *", tz="Europe/Berlin"))
    await app.close()
    with sqlite3.connect(path) as file:
        file.execute(
            "UPDATE schedules SET fires_when = replace(fires_when, 'Europe/Berlin', 'Europe/Nowhere')"
        )
    file.close()

    async with app.running():

        async def paused() -> bool:
            return (await app.get_schedule("bad")).paused

        await eventually(paused)
        note = (await app.get_schedule("bad")).pause_note or ""
        assert "Europe/Nowhere" in note

        async def good_fires() -> bool:
            return "good" in ran

        await eventually(good_fires)
        repaired = await app.schedule(
            "bad", work, dt.Cron("0 0 1 1 *", tz="Europe/Paris"), on_conflict="replace"
        )
        assert repaired.when == dt.Cron("0 0 1 1 *", tz="Europe/Paris")
    assert "bad" not in ran


@pytest.mark.slow
async def test_policies_with_settings_without_effect_are_read_and_fire(tmp_path: Path) -> None:
    path = tmp_path / "duetime.db"
    app = dt.App(f"sqlite:///{path}")
    ran: list[str | None] = []

    @app.task("work")
    async def work(ctx: dt.Context) -> None:
        ran.append(ctx.schedule)
        if len(ran) == 1:
            raise ValueError("again")

    await app.open()
    await app.schedule("old", work, dt.Every("1s"), retry=dt.Retry(delays=["0s"]), max_runs=1)
    await app.close()
    older = (
        json.dumps({"policy": "latest", "within": None, "max": 5}),
        json.dumps({"retry": {"delays": ["0s"], "first_delay": "7s", "backoff": "linear"}}).encode(),
    )
    with sqlite3.connect(path) as file:
        file.execute("UPDATE schedules SET missed = ?, policies = ?", older)
    file.close()

    async with app.running():

        async def twice() -> bool:
            return ran == ["old", "old"]

        await eventually(twice)
        (view,) = await app.schedules()
    assert (view.missed, dt.Retry.from_json(view.retry)) == (
        {"policy": "latest", "within": None, "max": None},
        dt.Retry(delays=["0s"]),
    )
