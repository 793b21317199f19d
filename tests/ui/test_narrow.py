"""Nothing is cut off: not on a phone, not on a desktop. And a keyboard gets past what has many buttons."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.ui.browser import strict_page
from tests.ui.screens import Jobs, Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow

PATHS = ("/", "/schedules", "/schedules/new", "/jobs", "/jobs/new", "/calendar", "/dead", "/queues", "/nodes", "/keys", "/nowhere")
ADDRESS = "/healthz?asked-by=a-person-with-a-small-screen-and-a-long-address"


@pytest.fixture(scope="module")
def furnished(site: Site) -> list[str]:
    """Addresses of pages with long texts."""
    made = site.add_schedule("a-schedule-whose-name-needs-more-room-than-there-is")
    job = site.ask("POST", "/jobs", {"target": {"type": "http", "method": "GET", "url": f"{site.address}{ADDRESS}"}})
    return [f"/schedules/{made['id']}", f"/schedules/{made['id']}?tab=edit", f"/jobs/{job['id']}"]


@pytest.mark.parametrize("width", [360, 390, 1024, 1280])
async def test_no_page_is_wider_than_the_screen(browser: Browser, site: Site, furnished: list[str], width: int) -> None:
    async with strict_page(browser, viewport={"width": width, "height": 844}) as page:
        screen = Screen(page, site)
        found = {}
        for path in (*PATHS, *furnished):
            await screen.open(path)
            await expect(page.locator(".mantine-Skeleton-root")).to_have_count(0)
            if (wide := await page.evaluate("document.documentElement.scrollWidth")) > width:
                found[path] = wide
        assert not found


async def test_times_of_jobs_are_whole_on_a_phone(browser: Browser, site: Site) -> None:
    site.submit("greet", queue="far-off", at="2037-09-23T12:34:56Z")
    site.submit("greet", queue="far-off")
    async with strict_page(browser, viewport={"width": 390, "height": 844}) as page:
        jobs = Jobs(page, site)
        await jobs.open("/jobs?queue=far-off")
        due = jobs.table.get_by_role("cell").filter(has=page.locator("time"))
        await expect(due).to_have_count(2)
        for cell in await due.all():
            assert await cell.evaluate(
                "cell => cell.scrollWidth <= cell.clientWidth && cell.offsetHeight <= cell.parentElement.offsetHeight"
            )


async def test_of_a_long_address_the_end_is_seen(browser: Browser, site: Site) -> None:
    """Many calls go to one host: its name tells nothing."""
    target = {"type": "http", "url": f"{site.address}{ADDRESS}"}
    site.ask("POST", "/jobs", {"target": target, "queue": "long-address", "at": "2037-09-23T12:34:56Z"})
    async with strict_page(browser, viewport={"width": 1280, "height": 844}) as page:
        jobs = Jobs(page, site)
        await jobs.open("/jobs?queue=long-address")
        address = jobs.table.get_by_text("a-long-address")
        await expect(address).to_be_visible()
        text, cell = await address.bounding_box(), await address.locator("xpath=..").bounding_box()
        assert text is not None
        assert cell is not None
        assert text["width"] > cell["width"]  # there is not enough room for it
        assert abs(text["x"] + text["width"] - cell["x"] - cell["width"]) < 2


async def test_the_zone_can_be_chosen_on_a_phone_and_escape_closes_the_menu(browser: Browser, site: Site) -> None:
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


async def test_the_calendar_is_one_stop_of_the_keyboard_and_arrows_lead_through_it(page: Page, site: Site) -> None:
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
    await expect(page.get_by_label("Time shown").locator(":focus")).to_have_count(1)
    site.ask("DELETE", "/schedules/every-hour")
