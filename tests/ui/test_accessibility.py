"""axe finds no serious accessibility problem on any page, in light and dark mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, expect

from tests.ui.browser import strict_page
from tests.ui.screens import PATHS, Screen
from tests.ui.site import ROOT, Site

pytestmark = pytest.mark.slow

AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
# With the rules of axe that matter: a theme changes only colours.
SCHEMES: tuple[tuple[Literal["light", "dark"], tuple[str, ...]], ...] = (
    ("light", ()),
    ("dark", ("color-contrast",)),
)
END_TRANSITIONS = "document.getAnimations().forEach((one) => one instanceof CSSTransition && one.finish())"


@pytest.fixture(scope="module")
def sample_paths(site: Site) -> dict[str, str]:
    """Paths of pages with content."""
    schedule = site.add_schedule("accessible", labels={"team": "billing"}, owner="ada")
    site.add_schedule("accessible-often", when={"every": "1h"})
    job = site.submit("failing", payload={"text": "words"})
    return {"schedule": f"/schedules/{schedule['id']}", "job": f"/jobs/{job}", "task": "/tasks/failing"}


async def test_pages_have_no_serious_accessibility_problem(
    browser: Browser, site: Site, sample_paths: dict[str, str]
) -> None:
    """Each page is loaded once and looked at in both themes."""
    found: dict[str, Any] = {}
    async with strict_page(browser, color_scheme="light", reduced_motion="reduce") as page:
        screen = Screen(page, site)
        tabs = (f"{sample_paths['schedule']}?tab={tab}" for tab in ("edit", "versions", "json"))
        for number, path in enumerate((*PATHS, *sample_paths.values(), *tabs)):
            await (screen.turn_to if 0 < number < len(PATHS) else screen.open)(path)
            await expect(page.locator(".mantine-Skeleton-root")).to_have_count(0)
            for scheme, rules in SCHEMES:
                await use_scheme(page, scheme)
                if problems := await serious_problems(page, *rules):
                    found[f"{path} {scheme}"] = problems
            await use_scheme(page, "light")
    assert not found


async def test_dialogs_and_command_palette_have_no_serious_accessibility_problem(
    page: Page, site: Site, sample_paths: dict[str, str]
) -> None:
    screen = Screen(page, site)
    await screen.open(sample_paths["schedule"])
    await screen.button("Pause").click()
    await expect(screen.dialog).to_be_visible()
    assert not await serious_problems(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("option").first).to_be_visible()
    assert not await serious_problems(page)


async def use_scheme(page: Page, scheme: Literal["light", "dark"]) -> None:
    await page.emulate_media(color_scheme=scheme)
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
    await page.evaluate(END_TRANSITIONS)


async def serious_problems(page: Page, *rules: str) -> list[str]:
    """By these rules of axe, or by all."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(Path(AXE).read_text())
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    report = await page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{rule['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for rule in report["violations"]
        if rule["impact"] in SERIOUS
        for node in rule["nodes"][:3]
    ]
