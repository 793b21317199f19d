"""The UI reconnects after a server restart, and bulk actions cover more rows than are loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.ui.many_schedules import fill
from tests.ui.screens import Jobs, Schedules, Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow


async def test_page_reconnects_after_a_server_restart(page: Page, tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        jobs = Jobs(page, site)
        await jobs.open("/jobs?queue=people")
        live = page.get_by_role("button", name=re.compile("^Live"))
        await expect(live).to_be_visible()
        site.stop()
        await expect(page.get_by_role("button", name=re.compile("^Reconnecting"))).to_be_visible()
        site.restart()
        await expect(live).to_be_visible()
        site.submit("greet")
        await expect(jobs.table.get_by_text("Succeeded")).to_be_visible()


async def test_bulk_action_covers_all_matches_over_many_pages(page: Page, tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        await fill(site.store, 250)  # the table loads 200 at a time
        site.add_schedule("other")
        schedules = Schedules(page, site)
        await schedules.open("/schedules?text=many")
        await expect(page.get_by_text("250 matching")).to_be_visible()
        await schedules.select_all()
        await page.get_by_role("region", name="Selection").get_by_role("button", name="Pause").click()
        await expect(schedules.dialog).to_contain_text("250 schedules match")
        await schedules.dialog.get_by_role("button", name=re.compile("^Pause")).click()
        await expect(schedules.dialog).to_contain_text("250 of 250 paused")
        paused = site.request("GET", "/schedules?paused=true&limit=1000")["items"]
        assert len(paused) == 250
        assert not site.request("GET", "/schedules/other")["paused"]


async def test_page_that_crashes_leaves_the_other_pages_usable(page: Page, site: Site) -> None:
    """Here a page whose saved input has another form, as after a downgrade."""
    screen = Screen(page, site)
    await screen.open("/queues")
    await page.evaluate("sessionStorage.setItem('duetime-draft:schedule', '{\"name\": 5}')")
    await page.get_by_role("link", name="Schedules").click()
    await page.get_by_role("link", name="New schedule").click()
    await expect(page.get_by_text("This page crashed")).to_be_visible()
    await page.get_by_role("link", name="Queues").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    await page.evaluate("sessionStorage.clear()")
