"""A stored schedule this machine cannot read: shown, paused with the reason, and not blocking others."""

from __future__ import annotations

import sqlite3
from pathlib import Path

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
