"""axe finds no serious accessibility problem on any page, in light and dark mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.ui.browser import strict_page
from tests.ui.screens import PATHS, Screen
from tests.ui.site import ROOT, Site

pytestmark = pytest.mark.slow

AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def sample_paths(site: Site) -> dict[str, str]:
    """Paths of pages with content."""
    schedule = site.add_schedule("accessible", labels={"team": "billing"}, owner="ada")
    site.add_schedule("accessible-often", when={"every": "1h"})
    job = site.submit("failing", payload={"text": "words"})
    return {"schedule": f"/schedules/{schedule['id']}", "job": f"/jobs/{job}", "task": "/tasks/failing"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_pages_have_no_serious_accessibility_problem(
    browser: Browser, site: Site, sample_paths: dict[str, str], scheme: str
) -> None:
    async with strict_page(browser, color_scheme=scheme, reduced_motion="reduce") as page:
        screen = Screen(page, site)
        tabs = (f"{sample_paths['schedule']}?tab={tab}" for tab in ("edit", "versions", "json"))
        found: dict[str, Any] = {}
        for path in (*PATHS, *sample_paths.values(), *tabs):
            await screen.open(path)
            found |= {path: problems} if (problems := await serious_problems(page)) else {}
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
