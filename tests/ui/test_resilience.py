"""The server goes away and comes back while the page is open; many rows; narrow screens; below another path."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.ui.browser import strict_page
from tests.ui.screens import Jobs, Schedules, Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow

PATHS = ("/", "/schedules", "/schedules/new", "/jobs", "/jobs/new", "/calendar", "/dead", "/queues", "/nodes", "/keys")


async def test_the_page_recovers_by_itself_when_the_server_is_restarted(page: Page, tmp_path: Path) -> None:
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


async def test_a_bulk_action_reaches_all_that_match_over_many_pages(page: Page, tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        for number in range(250):  # the table loads 200 at a time
            site.add_schedule(f"herd-{number:03}")
        site.add_schedule("stranger")
        schedules = Schedules(page, site)
        await schedules.open("/schedules?text=herd")
        await expect(page.get_by_text("250 match")).to_be_visible()
        await schedules.choose_all()
        await page.get_by_role("region", name="What is selected").get_by_role("button", name="Pause").click()
        await expect(schedules.dialog).to_contain_text("250 schedules match")
        await schedules.dialog.get_by_role("button", name=re.compile("^Pause")).click()
        await expect(schedules.dialog).to_contain_text("250 of 250 paused")
        paused = site.ask("GET", "/schedules?paused=true&limit=1000")["items"]
        assert len(paused) == 250
        assert not site.ask("GET", "/schedules/stranger")["paused"]


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_runs_over_the_edge_of_a_narrow_screen(browser: Browser, site: Site, path: str) -> None:
    async with strict_page(browser, viewport={"width": 390, "height": 800}) as page:
        await Screen(page, site).open(path)
        await page.wait_for_load_state("load")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        edges = "[...document.querySelectorAll('[role=columnheader]')].map((one) => one.getBoundingClientRect().right)"
        assert max(await page.evaluate(edges), default=0) <= 390
