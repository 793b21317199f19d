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
LONG_TASKS = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longTasks.push(Math.round(entry.duration));
  }).observe({ type: 'longtask' });
}"""
SCROLL_WINDOW = """async () => {
  for (let top = 0; top < document.documentElement.scrollHeight; top += 40) {
    window.scrollTo(0, top);
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 16)));
  }
}"""
SCROLL_LIST = """async (rows) => {
  const table = document.querySelector('[role=table]');
  while (table.scrollTop + table.clientHeight < rows * 56 - 200) {
    table.scrollTop += 2500;
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 16)));
  }
}"""


async def add_posts(url: str, account_id: str) -> None:
    """Scheduled posts from tomorrow on, without jobs: they are only looked at."""
    database = Database.of(url)
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    step = timedelta(days=DAYS) / POSTS
    for first in range(0, POSTS, CHUNK):
        numbers = range(first, first + CHUNK)
        async with database.transaction() as connection:
            rows = [row(account_id, number, start + number * step) for number in numbers]
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
        await page.evaluate(SCROLL_WINDOW)
        await calendar.button("Previous month").click()
        await expect(page.get_by_role("button", name="more").first).to_be_visible()
    await page.get_by_text("List", exact=True).click()
    await expect(page.get_by_role("table", name="Posts")).to_be_visible()
    async with longest_task(browser, page) as scrolling:
        await page.evaluate(SCROLL_LIST, POSTS)
        await expect(page.get_by_text("Post 00000 about")).to_be_visible()
    observed = await page.evaluate("window.longTasks")
    sys.stdout.write(
        f"longest task over {POSTS:,} posts: {month.longest:.0f} ms in the month, "
        f"{scrolling.longest:.0f} ms in the list (target: {TARGET_TASK}); "
        f"{len(observed)} long tasks by the clock, {max(observed, default=0)} ms at most\n"
    )
    assert 0 < month.longest < MAX_TASK
    assert 0 < scrolling.longest < MAX_TASK
