"""axe finds no serious accessibility problem on any page: light, dark, and as wide as a phone."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.momentum.ui.screens import PATHS, Calendar, Composer, picture
from tests.momentum.ui.site import MomentumSite, in_two_days
from tests.ui.browser import strict_page
from tests.ui.screens import Screen
from tests.ui.test_accessibility import SCHEMES, serious_problems, use_scheme

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

DESKTOP: ViewportSize = {"width": 1360, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def post_paths(site: MomentumSite, member: Any) -> tuple[str, ...]:
    draft = site.add_post(member, "An accessible draft #a11y", labels=["launch"])
    planned = site.add_post(member, "An accessible post", in_two_days())
    return (f"/posts/{draft['id']}", f"/posts/{planned['id']}", f"/posts/{planned['id']}/edit")


async def test_pages_have_no_serious_accessibility_problem(
    browser: Browser, site: MomentumSite, post_paths: tuple[str, ...]
) -> None:
    """Each page is loaded once and looked at in both sizes and themes. A theme changes only colours."""
    found: dict[str, Any] = {}
    async with strict_page(browser, color_scheme="light", reduced_motion="reduce") as page:
        screen = Screen(page, site)
        await screen.open("/")
        for path in (*PATHS, *post_paths):
            await screen.go(path)
            await expect(page.locator(".mantine-Skeleton-root")).to_have_count(0)
            for width, size in (("desktop", DESKTOP), ("phone", PHONE)):
                await page.set_viewport_size(size)
                for scheme, rules in SCHEMES:
                    await use_scheme(page, scheme)
                    if problems := await serious_problems(page, *rules):
                        found[f"{path} {width} {scheme}"] = problems
                await use_scheme(page, "light")
                wider = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                found |= {f"{path} {width} is wider than the screen": wider} if wider > 0 else {}
    assert not found


async def test_filled_composer_and_dialogs_have_no_serious_accessibility_problem(
    page: Page, site: MomentumSite, post_paths: tuple[str, ...]
) -> None:
    composer = Composer(page, site)
    await composer.open("/new")
    await composer.choose("Maya Lindqvist")
    await composer.text.fill("A text with #tags " + "and many words " * 30)
    await composer.attach(picture())
    await composer.plan(in_two_days())
    assert not await serious_problems(page)
    await page.get_by_role("button", name="Alt text of scope.png").click()
    await expect(composer.dialog).to_be_visible()
    assert not await serious_problems(page)

    calendar = Calendar(page, site)
    await page.keyboard.press("Escape")
    await calendar.go("/?view=list")
    await calendar.button("Import").click()
    await expect(calendar.dialog).to_be_visible()
    assert not await serious_problems(page)
    await calendar.go(post_paths[1])
    await calendar.button("Move").click()
    await expect(calendar.dialog).to_be_visible()
    assert not await serious_problems(page)
