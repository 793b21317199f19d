"""axe finds no serious accessibility problem on any page: light, dark, and as wide as a phone."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.momentum.ui.screens import PATHS, Calendar, Composer, Screen, picture
from tests.momentum.ui.site import MomentumSite, in_two_days
from tests.ui.browser import strict_page
from tests.ui.test_accessibility import serious_problems

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

DESKTOP = {"width": 1360, "height": 860}
PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def post_paths(site: MomentumSite, member: Any) -> tuple[str, ...]:
    draft = site.add_post(member, "An accessible draft #a11y", labels=["launch"])
    planned = site.add_post(member, "An accessible post", in_two_days())
    return (f"/posts/{draft['id']}", f"/posts/{planned['id']}", f"/posts/{planned['id']}/edit")


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE)]
)
async def test_pages_have_no_serious_accessibility_problem(
    browser: Browser, site: MomentumSite, post_paths: tuple[str, ...], scheme: str, size: dict[str, int]
) -> None:
    found: dict[str, Any] = {}
    async with strict_page(browser, color_scheme=scheme, viewport=size, reduced_motion="reduce") as page:
        for path in (*PATHS, *post_paths):
            await Screen(page, site).open(path)
            await expect(page.locator(".mantine-Skeleton-root")).to_have_count(0)
            found |= {path: problems} if (problems := await serious_problems(page)) else {}
            wider = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            found |= {f"{path} is wider than the screen": wider} if wider > 0 else {}
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
    await calendar.open("/?view=list")
    await calendar.button("Import").click()
    await expect(calendar.dialog).to_be_visible()
    assert not await serious_problems(page)
    await calendar.open(post_paths[1])
    await calendar.button("Move").click()
    await expect(calendar.dialog).to_be_visible()
    assert not await serious_problems(page)
