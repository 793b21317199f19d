"""Shadow schedules: their fires are recorded, nothing is called, and a report compares them with a log."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import duetime as dt
from duetime.cli.importing.comparison import Timing, Window, compare
from duetime.cli.importing.old_runs import read_runs
from duetime.errors import InvalidInput
from duetime.invokers.shadow import ShadowHandler
from duetime.model.shadow import SHADOW
from tests.cli.conftest import Duetime

DAY = datetime(2026, 11, 17, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
WINDOW = Window(DAY, DAY + timedelta(days=1), timedelta(seconds=10), timedelta(minutes=10))


def at(minutes: float) -> datetime:
    return DAY + timedelta(minutes=minutes)


def counts(fires: list[datetime], runs: list[datetime]) -> dict[str, int]:
    found = compare("x", fires, runs, WINDOW)
    return {str(timing): found.count(timing) for timing in Timing if found.count(timing)}


class TestCompare:
    def test_same_early_late_missing_extra(self) -> None:
        fires = [at(60), at(120), at(180), at(300)]
        runs = [at(60.01), at(122), at(177), at(240)]
        assert counts(fires, runs) == {"same": 1, "early": 1, "late": 1, "missing": 1, "extra": 1}

    def test_one_missing_run_does_not_move_the_others(self) -> None:
        fires = [at(minute) for minute in range(60, 70)]
        runs = [at(minute + 0.02) for minute in range(60, 70) if minute != 63]
        assert counts(fires, runs) == {"same": 9, "extra": 1}
        assert counts(runs, fires) == {"same": 9, "missing": 1}

    def test_fires_at_the_ends_of_the_log_are_not_extra(self) -> None:
        fires = [DAY - timedelta(seconds=1), at(60), WINDOW.end + timedelta(seconds=1)]
        assert counts(fires, [DAY, at(60)]) == {"same": 2}

    @given(st.sets(st.integers(0, 1440), max_size=40), st.sets(st.integers(0, 1440), max_size=40))
    def test_nothing_is_lost(self, fires: set[int], runs: set[int]) -> None:
        found = compare("x", map(at, fires), map(at, runs), WINDOW)
        paired = found.same + found.count(Timing.EARLY) + found.count(Timing.LATE)
        assert paired + found.count(Timing.EXTRA) == len(fires)
        assert paired + found.count(Timing.MISSING) == len(runs)
        assert found.same >= len(fires & runs) - len(fires ^ runs)
        if fires == runs:
            assert found.others == []


class TestLogs:
    def test_syslog_of_cron_in_both_time_formats(self) -> None:
        text = (
            "Nov 17 02:30:01 web CRON[123]: (root) CMD (cd /srv && ./backup)\n"
            "Nov 17 02:30:01 web CRON[122]: pam_unix(cron:session): session opened for user root\n"
            "2026-11-17T02:40:01.123456+01:00 web crond[9]: (ann) CMD (printf 100\\%)\n"
            "Nov  3 02:30:01 web systemd[1]: Started.\n"
        )
        runs = read_runs(text, None, BERLIN, DAY + timedelta(days=2))
        assert [(run.at.isoformat(), run.name) for run in runs] == [
            ("2026-11-17T01:30:01+00:00", "cd /srv && ./backup"),
            ("2026-11-17T01:40:01.123456+00:00", "printf 100%"),
        ]

    def test_year_is_the_latest_that_is_not_in_the_future(self) -> None:
        line = "Dec 31 23:00:00 web CRON[1]: (root) CMD (x)"
        [run] = read_runs(line, None, UTC, datetime(2027, 1, 2, tzinfo=UTC))
        assert run.at.year == 2026
        [leap] = read_runs(line.replace("Dec 31", "Feb 29"), None, UTC, datetime(2027, 1, 2, tzinfo=UTC))
        assert leap.at.year == 2024

    def test_hour_that_comes_twice_is_read_in_order(self) -> None:
        lines = [
            f"Oct 25 {time}:01 web CRON[1]: (root) CMD (x)" for time in ("02:00", "02:30", "02:00", "02:30")
        ]
        runs = read_runs("\n".join(lines), "cron", BERLIN, datetime(2026, 11, 1, tzinfo=UTC))
        assert [run.at.strftime("%H:%M") for run in runs] == ["00:00", "00:30", "01:00", "01:30"]

    def test_csv_with_and_without_a_header(self) -> None:
        rows = "2026-11-17T02:30:01Z,nightly\n2026-11-17 04:00:00,other\n"
        for text in (rows, f"time,name\n{rows}"):
            runs = read_runs(text, None, BERLIN, DAY)
            assert [(run.at.strftime("%H:%M"), run.name) for run in runs] == [
                ("02:30", "nightly"),
                ("03:00", "other"),
            ]

    @pytest.mark.parametrize("text", ["only-one-column\n", "2026-11-17T02:30:01Z,a\nsoon,b\n"])
    def test_wrong_lines_are_named(self, text: str) -> None:
        with pytest.raises(InvalidInput, match=r"log: line \d"):
            read_runs(text, "csv", UTC, DAY)


FILE = """\
schedules:
  - {name: tick, when: {every: 1s}, target: never.registered, shadow: true}
  - name: call
    when: {every: 1s}
    target: {type: command, argv: [/bin/sh, -c, touch called]}
    shadow: true
"""


def test_shadow_calls_nothing_and_reports_no_difference(duetime: Duetime, folder: Path) -> None:
    duetime("migrate")
    assert duetime("apply", "-", stdin=FILE).status == 0
    asyncio.run(_run_for_a_while(f"sqlite:///{folder / 'duetime.db'}"))
    assert not (folder / "called").exists()
    jobs = duetime(
        "job", "list", "--target", "@shadow", "--state", "succeeded", "--limit", "1000", "--json"
    ).json
    ticks = sorted(job["fire_time"] for job in jobs if job["schedule"] == "tick")
    calls = sorted(job["fire_time"] for job in jobs if job["schedule"] == "call")
    assert len(ticks) >= 3
    rows = [f"{time},tick" for time in ticks] + [f"{time},touch called" for time in calls]
    (folder / "runs.csv").write_text("\n".join(rows))
    same = duetime("shadow", "report", "runs.csv", "--tz", "UTC")
    assert same.status == 0, same.out + same.err
    assert same.out.endswith("0 early, 0 late, 0 missing, 0 extra\n")
    (folder / "less.csv").write_text("\n".join([*rows[:1], *rows[2:], f"{ticks[1]},unknown"]))
    report = duetime("shadow", "report", "less.csv", "--tz", "UTC", "--within", "0s")
    assert report.status == 1
    assert report.out.endswith("1 missing, 1 extra\n")
    assert "missing: unknown (no schedule): ran " in report.out
    found = duetime("shadow", "report", "less.csv", "--tz", "UTC", "--map", "unknown=tick", "--json").json
    assert sum(one["missing"] + one["extra"] for one in found) == 0


async def _run_for_a_while(store: str) -> None:
    app = dt.App(store)
    app.use_target(SHADOW, lambda _: ShadowHandler())  # as `duetime serve` and `duetime worker` do
    async with app.running(), asyncio.timeout(60):
        while len(await app.jobs(state="succeeded", limit=100)) < 8:
            await asyncio.sleep(0.1)


def test_report_without_shadow_schedules_or_runs(duetime: Duetime, folder: Path) -> None:
    duetime("migrate")
    (folder / "log").write_text("2026-11-17T02:30:01Z,nightly\n")
    (folder / "empty").write_text("")
    assert "there is no shadow schedule" in duetime("shadow", "report", "log").err
    assert "there is no run in it" in duetime("shadow", "report", "empty").err
