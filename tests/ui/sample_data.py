"""Schedules and jobs for the screenshots, and the list of screenshots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.ui.site import Site

Screenshot = tuple[str, str, str]  # name, path, and a text that appears when the page is loaded
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
SCHEDULES: tuple[tuple[str, dict[str, str], str, dict[str, Any]], ...] = (
    (
        "invoices-due",
        {"every": "3s"},
        "invoice.send",
        {"owner": "ada", "labels": {"team": "billing"}, "payload": {"customer": "c-1042"}},
    ),
    ("search-index", {"every": "4s"}, "search.index", {"owner": "cleo", "labels": {"team": "search"}}),
    (
        "crm-contacts",
        {"every": "15s"},
        "crm.sync",
        {"owner": "ben", "payload": {"page": 1}, "labels": {"team": "sales"}},
    ),
    (
        "monthly-report",
        {"cron": "0 18 L * *", "tz": NEW_YORK},
        "report.build",
        {"owner": "dora", "labels": {"team": "finance"}},
    ),
    (
        "nightly-report",
        {"cron": "30 2 * * MON-FRI", "tz": BERLIN},
        "report.build",
        {"owner": "dora", "overlap": "skip"},
    ),
    (
        "morning-digest",
        {"cron": "0 7 * * *", "tz": BERLIN},
        "invoice.send",
        {"owner": "ada", "payload": {"customer": "all"}},
    ),
    (
        "quarter-close",
        {"cron": "0 6 1 1,4,7,10 *", "tz": NEW_YORK},
        "report.build",
        {"owner": "dora", "labels": {"team": "finance"}},
    ),
    (
        "lunch-peak",
        {"cron": "*/2 12 * * MON-FRI", "tz": BERLIN},
        "search.index",
        {"labels": {"team": "search"}},
    ),
    (
        "office-hours",
        {"cron": "*/10 8-17 * * MON-FRI", "tz": BERLIN},
        "search.index",
        {"labels": {"team": "search"}},
    ),
    ("stock-levels", {"cron": "0 */2 * * *", "tz": "UTC"}, "search.index", {"labels": {"team": "shop"}}),
    (
        "weekly-cleanup",
        {"rrule": "FREQ=WEEKLY;BYDAY=SU;BYHOUR=4;BYMINUTE=0", "tz": "Europe/London"},
        "search.index",
        {},
    ),
)
BUSY_TIME = timedelta(minutes=15)
MIN_JOBS = 150  # finished jobs before the first screenshot


async def add_sample_data(site: Site) -> list[Screenshot]:
    ids = {name: _add(site, name, when, task, more) for name, when, task, more in SCHEDULES}
    site.request("POST", "/schedules/weekly-cleanup/pause", {"note": "archive migration until Friday"})
    site.request("PATCH", "/schedules/nightly-report", {"when": {"cron": "15 3 * * MON-FRI", "tz": BERLIN}})
    site.request("PATCH", "/schedules/nightly-report", {"priority": 7, "owner": "ada"})
    for number in range(5):
        site.submit("thumbnail.make", payload={"image": f"holiday-{number}.tiff"})
    running = site.submit("report.build", payload={"month": "2026-10"})
    await wait_until(
        lambda: len(site.request("GET", f"/jobs?state=succeeded&limit={MIN_JOBS}")["items"]) == MIN_JOBS
    )
    dead = site.request("GET", "/jobs?state=dead&limit=1")["items"][0]["id"]
    return [
        ("overview", "/?since=15m", "Succeeded"),
        ("schedules", "/schedules", "nightly-report"),
        ("schedule", f"/schedules/{ids['invoices-due']}", "every 3 seconds"),
        ("editor", f"/schedules/{ids['nightly-report']}?tab=edit", "At 03:15"),
        ("versions", f"/schedules/{ids['nightly-report']}?tab=versions", "Version 3"),
        ("jobs", "/jobs", "Succeeded"),
        ("job", f"/jobs/{running}", "of 1,200"),
        ("dead-letter", f"/jobs/{dead}", "Traceback"),
        ("submit", "/jobs/new", "What runs"),
        ("calendar", "/calendar", "busiest hour"),
        ("dead", "/dead", "refused the connection"),
        ("queues", "/queues", "billing"),
        ("nodes", "/nodes", "leader"),
        ("keys", "/keys", "No keys yet"),
    ]


def _add(site: Site, name: str, when: dict[str, str], task: str, more: dict[str, Any]) -> str:
    if "every" in when:  # ends soon, because it would hide the other schedules in the calendar
        more = {**more, "end_at": (datetime.now(UTC) + BUSY_TIME).isoformat()}
    schedule_id: str = site.add_schedule(name, when=when, target={"type": "task", "name": task}, **more)["id"]
    return schedule_id


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(600):
        while not condition():
            await asyncio.sleep(0.5)
