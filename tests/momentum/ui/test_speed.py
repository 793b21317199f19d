"""Ten thousand posts: the calendar and the list do not block the page. The measured values are printed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from momentum.database import Database, tables
from momentum.ids import new_id
from tests.momentum.ui.screens import Calendar
from tests.momentum.ui.site import MomentumSite
from tests.ui.test_speed import MAX_TASK, TARGET_TASK, longest_task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

POSTS = 10_000
DAYS = 30
CHUNK = 500
ACCOUNTS = 50
STEPS = 40  # of scrolling in the list
MAX_ROWS = 24  # in the page at the same time: those in view and a few more
MAX_CHIPS = 6 * 7 * 4  # of a month
LONG_TASKS = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longTasks.push(Math.round(entry.duration));
  }).observe({ type: 'longtask' });
}"""
SCROLL_MONTH = """async () => {
  let changes = 0;
  const grid = document.querySelector('[data-date]').parentElement.parentElement;
  new MutationObserver((records) => { changes += records.length; }).observe(
    grid, { childList: true, subtree: true, attributes: true, characterData: true });
  for (let top = 0; top < document.documentElement.scrollHeight; top += 40) {
    window.scrollTo(0, top);
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  }
  return changes;
}"""
SCROLL_LIST = """async (steps) => {
  const table = document.querySelector('[role=table]');
  const rows = () => [...table.querySelectorAll('[role=row][aria-rowindex]')];
  const seen = new Set();
  const found = { rows: 0, pictures: 0, inTheEvent: 0, seen: 0 };
  for (let step = 0; step < steps; step++) {
    const before = rows();
    table.scrollTop += 2500;
    table.dispatchEvent(new Event('scroll'));
    const after = rows();
    found.inTheEvent += after.filter((row) => !before.includes(row)).length;
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 16)));
    found.rows = Math.max(found.rows, rows().length);
    found.pictures += table.querySelectorAll('img').length;
    rows().forEach((row) => seen.add(row.getAttribute('aria-rowindex')));
  }
  found.seen = seen.size;
  return found;
}"""


async def add_posts(url: str, account_id: str) -> None:
    """Scheduled posts from tomorrow on, of copies of the account, without jobs: they are only looked at."""
    database = Database.of(url)
    async with database.transaction() as connection:
        query = tables.accounts.select().where(tables.accounts.c.id == account_id)
        account = dict((await connection.execute(query)).mappings().one())
        copies = [
            {**account, "id": new_id("acc"), "urn": f"urn:li:person:{number}", "name": f"Person {number}"}
            for number in range(ACCOUNTS)
        ]
        await connection.execute(tables.accounts.insert(), copies)
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    step = timedelta(days=DAYS) / POSTS
    for first in range(0, POSTS, CHUNK):
        numbers = range(first, first + CHUNK)
        async with database.transaction() as connection:
            rows = [row(copies[number % ACCOUNTS]["id"], number, start + number * step) for number in numbers]
            await connection.execute(tables.posts.insert(), rows)
    await database.close()


def row(account_id: str, number: int, at: datetime) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "id": new_id("post"),
        "tenant": "default",
        "account_id": account_id,
        "state": "scheduled",
        "version": 1,
        "text": f"Post {number:05} about measuring things #lab",
        "content": {"media": [], "article": None, "visibility": "PUBLIC"},
        "labels": [],
        "scheduled_at": at,
        "zone": "UTC",
        "created_at": now,
        "updated_at": now,
    }


@pytest.fixture(scope="module")
def large_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MomentumSite]:
    with MomentumSite(tmp_path_factory.mktemp("large")) as site:
        account = site.connect()[0]
        asyncio.run(add_posts(site.database, account["id"]))
        yield site


async def test_ten_thousand_posts_scroll_without_blocking(
    browser: Browser, page: Page, large_site: MomentumSite
) -> None:
    calendar = Calendar(page, large_site)
    next_month = (datetime.now(UTC).replace(day=1) + timedelta(days=32)).date()
    await calendar.open(f"/?date={next_month}")
    await expect(page.get_by_role("button", name="more").first).to_be_visible()
    await page.evaluate(LONG_TASKS)
    async with longest_task(browser, page) as month:
        assert await page.evaluate(SCROLL_MONTH) == 0  # scrolling renders nothing
        await calendar.button("Previous month").click()
        await expect(page.get_by_role("button", name="more").first).to_be_visible()
    assert 0 < await page.locator("[data-post]").count() <= MAX_CHIPS
    await page.get_by_text("List", exact=True).click()
    await expect(page.get_by_role("table", name="Posts")).to_be_visible()
    async with longest_task(browser, page) as scrolling:
        work = await page.evaluate(SCROLL_LIST, STEPS)
    observed = await page.evaluate("window.longTasks")
    sys.stdout.write(
        f"longest task over {POSTS:,} posts: {month.longest:.0f} ms in the month, "
        f"{scrolling.longest:.0f} ms in the list (target: {TARGET_TASK}); "
        f"{len(observed)} long tasks by the clock, {max(observed, default=0)} ms at most\n"
    )
    assert work["seen"] > 5 * MAX_ROWS
    assert 0 < work["rows"] <= MAX_ROWS
    assert work["pictures"] == 0  # loading and painting them was most of the work
    assert work["inTheEvent"] == 0  # new rows have a task of their own, apart from the frame's
    assert 0 < month.longest < MAX_TASK
    assert 0 < scrolling.longest < MAX_TASK


async def test_full_hour_shows_some_posts_and_leads_to_the_others(
    page: Page, large_site: MomentumSite
) -> None:
    calendar = Calendar(page, large_site)
    full_day = (datetime.now(UTC) + timedelta(days=5)).date()
    await calendar.open(f"/?view=week&date={full_day}")
    table = page.get_by_role("table", name="Posts")
    for view, shown in (("week", 3), ("day", 12)):
        await calendar.go(f"/?view={view}&date={full_day}")
        cell = page.locator(f"[data-date='{full_day}'][data-hour='22']")  # late: the day has posts before it
        await expect(cell.locator("[data-post]")).to_have_count(shown)
        more = cell.get_by_role("button", name="more")
        hidden = int(str(await more.text_content()).strip("+ more"))
        assert shown + hidden in (13, 14)  # of 10,000 in 30 days
        await more.click()
        await expect(table).to_have_attribute("aria-rowcount", str(shown + hidden + 1))
        await expect(page.get_by_text("22:00 to 23:00")).to_be_visible()
    await page.get_by_role("button", name="Show all").click()
    await expect(table).to_have_attribute("aria-rowcount", "-1")  # there are more than were loaded
