"""First load, and a table of ten thousand schedules: measured, printed, and held to a limit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from playwright.async_api import Browser, Page, expect

from tests.ui.browser import strict_page
from tests.ui.screens import Schedules
from tests.ui.site import ROOT, Site

pytestmark = pytest.mark.slow

MANY = 10_000
LARGEST_LOAD = 400_000  # bytes, compressed as they travel
LONGEST_TASK = 100  # milliseconds of work during which the page answers nobody: what is aimed at, and reported
HOPELESS = 5 * LONGEST_TASK  # no machine is that slow: the table draws all of its rows


async def test_the_first_load_is_small(browser: Browser, site: Site) -> None:
    async with strict_page(browser) as page:
        await page.goto(f"{site.ui}/")
        await expect(page.get_by_role("img", name="Jobs by outcome")).to_be_visible()
        sizes = "performance.getEntriesByType('resource').filter((one) => !one.name.includes('/api/')).map((one) => one.transferSize)"
        total = sum(await page.evaluate(sizes))
    sys.stdout.write(f"first load of the overview with its charts: {total:,} bytes\n")
    assert 50_000 < total < LARGEST_LOAD


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("crowded")) as site:
        fill = "import asyncio, sys; from tests.ui.crowd import fill; asyncio.run(fill(sys.argv[1], int(sys.argv[2])))"
        subprocess.run([sys.executable, "-c", fill, site.store, str(MANY)], cwd=ROOT, check=True)
        yield site


@pytest.mark.timeout(300)
async def test_ten_thousand_schedules_scroll_and_filter_without_a_long_task(browser: Browser, page: Page, crowded: Site) -> None:
    schedules = Schedules(page, crowded)
    await schedules.open("/schedules")
    await expect(page.get_by_text("10,000 in all")).to_be_visible()
    await expect(schedules.row("crowd-00000")).to_be_visible()
    async with longest_task(browser, page) as scrolling:
        await scroll_to_the_end(page)
        await expect(schedules.row(f"crowd-{MANY - 1:05}")).to_be_visible()
    async with longest_task(browser, page) as filtering:
        await schedules.search.press_sequentially("crowd-0777", delay=40)
        await expect(schedules.row("crowd-07770")).to_be_visible()
        await expect(schedules.row("crowd-00000")).to_have_count(0)
    told = f"{scrolling.longest:.0f} ms scrolling, {filtering.longest:.0f} ms filtering (aimed at: {LONGEST_TASK})"
    sys.stdout.write(f"longest task over {MANY:,} rows: {told}\n")
    assert 0 < scrolling.longest < HOPELESS
    assert 0 < filtering.longest < HOPELESS


@dataclass(slots=True)
class Trace:
    longest: float = 0


@asynccontextmanager
async def longest_task(browser: Browser, page: Page) -> AsyncIterator[Trace]:
    """The processor's time of the longest task of the page's thread: what others do on this machine meanwhile does not count."""
    trace = Trace()
    await browser.start_tracing(page=page, categories=["toplevel"])
    yield trace
    events = json.loads(await browser.stop_tracing())["traceEvents"]
    pages = {(one["pid"], one["tid"]) for one in events if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"}
    tasks = (one for one in events if "RunTask" in one["name"] and (one["pid"], one["tid"]) in pages)
    trace.longest = max((one.get("tdur", 0) for one in tasks), default=0) / 1_000


async def scroll_to_the_end(page: Page) -> None:
    """As a wheel does: some thousand pixels at a time, until nothing more comes."""
    await page.get_by_role("table", name="Schedules").hover()
    await page.evaluate(
        """async () => {
          const table = document.querySelector('[role=table]');
          const end = 10000 * 56;
          while (table.scrollTop + table.clientHeight < end - 200) {
            table.scrollTop += 2500;
            await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 16)));
          }
        }"""
    )
