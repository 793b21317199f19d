"""The charts draw every measured value, and gaps where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.ui.screens import Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow

OUTCOMES = ("succeeded", "retried", "dead", "cancelled", "skipped")
# The widths of runs of canvas columns that have a coloured pixel. Axes, grid and labels are grey.
COLOURED = """canvas => {
  const { width, height } = canvas;
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  const spread = ([red, green, blue]) => Math.max(red, green, blue) - Math.min(red, green, blue);
  const grey = at => data[at + 3] < 128 || spread(data.subarray(at, at + 3)) < 60;
  const runs = [];
  for (let x = 0, before = false; x < width; x++) {
    const here = Array.from({ length: height }, (_, y) => 4 * (y * width + x)).some(at => !grey(at));
    if (here && !before) runs.push(0);
    if (here) runs[runs.length - 1]++;
    before = here;
  }
  return runs;
}"""


async def widths(page: Page, site: Site, chart: str, busy: set[int]) -> list[int]:
    """The widths of the drawn shapes, from left to right, if jobs ran only in these minutes of the hour."""

    async def respond(route: Route) -> None:
        stats = await (await route.fetch()).json()
        for minute, point in enumerate(stats["series"]):
            point.update(stats_point(minute in busy))
        await route.fulfill(json=stats)

    await page.route("**/api/v1/stats?since=1h*", respond)
    await Screen(page, site).open("/")
    canvas = page.get_by_role("img", name=chart).locator("canvas")
    await expect(canvas).to_be_visible()
    await page.wait_for_function(f"canvas => ({COLOURED})(canvas).length", arg=await canvas.element_handle())
    drawn: list[int] = await canvas.evaluate(COLOURED)
    await page.unroute_all(behavior="wait")  # no response may be pending when the page closes
    return drawn


def stats_point(busy: bool) -> dict[str, Any]:
    lateness = (
        {"lateness_p50_ms": 12.0, "lateness_p99_ms": 30.0}
        if busy
        else {"lateness_p50_ms": None, "lateness_p99_ms": None}
    )
    return {**dict.fromkeys(OUTCOMES, 0), "succeeded": 5 if busy else 0, **lateness}


async def test_lateness_of_a_single_minute_is_a_dot(page: Page, site: Site) -> None:
    (dot,) = await widths(page, site, "Lateness of job starts", {60})
    assert 4 <= dot <= 12


async def test_minutes_without_jobs_are_gaps_in_the_lateness_chart(page: Page, site: Site) -> None:
    single, line, last = await widths(page, site, "Lateness of job starts", {10, *range(20, 40), 50})
    assert 4 <= single <= 12
    assert 4 <= last <= 12
    assert line > 5 * single


async def test_bars_of_first_and_last_minute_have_full_width(page: Page, site: Site) -> None:
    first, middle, last = await widths(page, site, "Jobs by outcome", {0, 30, 60})
    assert abs(first - middle) <= 1
    assert abs(last - middle) <= 1


async def open_queues(page: Page, site: Site, depths: Any, status: int = 200) -> None:
    site.submit("greet", queue="mail", delay="1h")
    await page.route("**/api/v1/stats/queues?*", lambda route: route.fulfill(json=depths, status=status))
    await Screen(page, site).open("/queues")
    await expect(page.get_by_role("table", name="Queues")).to_be_visible()


def depths(**queues: list[int]) -> dict[str, Any]:
    """Of 08:00 to 08:59, in UTC. The values are those of due jobs; half as many run."""
    times = [f"2030-01-01T08:{minute:02}:00Z" for minute in range(60)]
    return {"times": times, "queues": [depth(name, values) for name, values in queues.items()]}


def depth(name: str, values: list[int]) -> dict[str, Any]:
    unknown = [None] * (60 - len(values))
    due, running = [*unknown, *values], [*unknown, *(value // 2 for value in values)]
    return {"name": name, "pending": due, "due": due, "running": running}


async def test_queue_depth_is_a_line_for_each_of_the_largest_queues(page: Page, site: Site) -> None:
    small = {f"q{number}": [number] * 30 for number in range(1, 6)}
    await open_queues(page, site, depths(**small, mail=[1_000 + minute for minute in range(60)]))
    card = page.get_by_role("region", name="Queue depth in the last hour")
    chart = card.get_by_role("img", name="Jobs due in the last hour, by queue: mail, q5, q4, q3, q2")
    canvas = chart.locator("canvas")
    await expect(canvas).to_be_visible()
    await page.wait_for_function(f"canvas => ({COLOURED})(canvas).length", arg=await canvas.element_handle())
    assert max(await canvas.evaluate(COLOURED)) > 500
    legend = card.locator("figcaption")
    await expect(legend).to_contain_text("mail 1,059")
    await expect(legend).to_contain_text("09:59")  # the browser is in Berlin
    await card.get_by_text("Running", exact=True).click()
    await expect(legend).to_contain_text("mail 529")
    await expect(card.get_by_role("img", name="Jobs running in the last hour")).to_be_visible()
    await page.unroute_all(behavior="wait")


async def test_queue_depth_without_samples_says_so(page: Page, site: Site) -> None:
    await open_queues(page, site, depths())
    card = page.get_by_role("region", name="Queue depth in the last hour")
    await expect(card.get_by_text("No jobs were counted in the last hour")).to_be_visible()
    await page.unroute_all(behavior="wait")


async def test_queue_depth_is_hidden_from_other_tenants(page: Page, site: Site) -> None:
    problem = {
        "type": "about:blank",
        "title": "Forbidden",
        "status": 403,
        "code": "tenant_not_allowed",
        "detail": "-",
    }
    await open_queues(page, site, problem, 403)
    await expect(page.get_by_role("region", name="Queue depth in the last hour")).to_have_count(0)
    await page.unroute_all(behavior="wait")
