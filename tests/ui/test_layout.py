"""Nothing is cut off on a phone or a desktop screen, and the calendar works with the keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.ui.browser import strict_page
from tests.ui.screens import PATHS, Jobs, Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow

PHONES = (360, 390)
# The right edge of each table column; 0 if the page has no table.
COLUMN_EDGES = """[0, ...[...document.querySelectorAll('[role=columnheader]')].map(
  (header) => header.getBoundingClientRect().right,
)]"""
LONG_URL = "/healthz?asked-by=a-user-with-a-small-screen-and-a-long-url"


@pytest.fixture(scope="module")
def sample_paths(site: Site) -> list[str]:
    """Paths of pages with long texts."""
    schedule = site.add_schedule("a-schedule-whose-name-needs-more-room-than-there-is")
    job = site.request(
        "POST", "/jobs", {"target": {"type": "http", "method": "GET", "url": f"{site.address}{LONG_URL}"}}
    )
    labelled = site.submit("greet", labels={"a" * 40: "b" * 60, "c" * 60: "d"}, owner="e" * 100)
    return [
        f"/schedules/{schedule['id']}",
        f"/schedules/{schedule['id']}?tab=edit",
        f"/jobs/{job['id']}",
        f"/jobs/{labelled}",
    ]


@pytest.mark.parametrize("width", [*PHONES, 1024, 1280])
async def test_pages_and_table_columns_fit_the_screen(
    browser: Browser, site: Site, sample_paths: list[str], width: int
) -> None:
    async with strict_page(browser, viewport={"width": width, "height": 844}) as page:
        screen = Screen(page, site)
        found = {}
        for number, path in enumerate((*PATHS, *sample_paths)):
            await (screen.turn_to if 0 < number < len(PATHS) else screen.open)(path)
            await expect(page.locator(".mantine-Skeleton-root")).to_have_count(0)
            used = await page.evaluate("document.documentElement.scrollWidth")
            if width in PHONES:  # on a larger screen a table may scroll sideways
                used = max(used, *await page.evaluate(COLUMN_EDGES))
            if used > width:
                found[path] = used
        assert not found


async def test_job_times_are_not_cut_off_on_a_phone(browser: Browser, site: Site) -> None:
    site.submit("greet", queue="far-future", at="2037-09-23T12:34:56Z")
    site.submit("greet", queue="far-future")
    async with strict_page(browser, viewport={"width": 390, "height": 844}) as page:
        jobs = Jobs(page, site)
        await jobs.open("/jobs?queue=far-future")
        due = jobs.table.get_by_role("cell").filter(has=page.locator("time"))
        await expect(due).to_have_count(2)
        for cell in await due.all():
            assert await cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
            assert await cell.evaluate("cell => cell.offsetHeight <= cell.parentElement.offsetHeight")


async def test_long_url_shows_its_end(browser: Browser, site: Site) -> None:
    """Many calls go to the same host, so the end says more."""
    target = {"type": "http", "url": f"{site.address}{LONG_URL}"}
    site.request("POST", "/jobs", {"target": target, "queue": "long-url", "at": "2037-09-23T12:34:56Z"})
    async with strict_page(browser, viewport={"width": 1280, "height": 844}) as page:
        jobs = Jobs(page, site)
        await jobs.open("/jobs?queue=long-url")
        url = jobs.table.get_by_text("a-long-url")
        await expect(url).to_be_visible()
        text, cell = await url.bounding_box(), await url.locator("xpath=..").bounding_box()
        assert text is not None
        assert cell is not None
        assert text["width"] > cell["width"]  # it is longer than the cell
        assert abs(text["x"] + text["width"] - cell["x"] - cell["width"]) < 2


async def test_time_zone_is_selected_on_a_phone_and_escape_closes_the_menu(
    browser: Browser, site: Site
) -> None:
    async with strict_page(browser, viewport={"width": 390, "height": 844}) as page:
        screen = Screen(page, site)
        await screen.open("/")
        await page.get_by_role("button", name="times are shown in Europe/Berlin").click()
        await screen.button("UTC").click()
        await expect(page.get_by_role("button", name="times are shown in UTC")).to_be_visible()
        await screen.button("Pages").click()
        await expect(page.get_by_role("link", name="Queues").first).to_be_in_viewport()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("link", name="Queues").first).not_to_be_in_viewport()


async def test_calendar_is_one_tab_stop_and_arrow_keys_move_in_it(page: Page, site: Site) -> None:
    site.add_schedule("every-hour", when={"cron": "0 * * * *", "tz": "UTC"})
    await Screen(page, site).open("/calendar")
    hours = page.get_by_role("toolbar", name=re.compile("Fires by day and hour")).get_by_role("button")
    noon = hours.and_(page.get_by_label(re.compile(" 12:00: "))).nth(2)
    await noon.focus()
    for key, hour in (("ArrowRight", "13:00"), ("ArrowDown", "13:00"), ("ArrowLeft", "12:00")):
        await page.keyboard.press(key)
        await expect(page.locator(":focus")).to_have_attribute("aria-label", re.compile(hour))
    await expect(hours.and_(page.locator("[tabindex='0']"))).to_have_count(1)
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Time range").locator(":focus")).to_have_count(1)
    site.request("DELETE", "/schedules/every-hour")
