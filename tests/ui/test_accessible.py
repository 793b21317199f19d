"""axe finds nothing serious on any page, in either scheme, in any state that a user meets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.ui.browser import strict_page
from tests.ui.screens import Screen
from tests.ui.site import ROOT, Site

pytestmark = pytest.mark.slow

AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
PATHS = ("/", "/schedules", "/schedules/new", "/jobs", "/jobs/new", "/calendar", "/dead", "/queues", "/nodes", "/keys", "/nowhere")
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def furnished(site: Site) -> dict[str, str]:
    """Addresses with something to see."""
    made = site.add_schedule("accessible", labels={"team": "billing"}, owner="ada")
    site.add_schedule("accessible-often", when={"every": "1h"})
    job = site.submit("loud", payload={"text": "words"})
    return {"schedule": f"/schedules/{made['id']}", "job": f"/jobs/{job}"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_page_has_a_serious_finding(browser: Browser, site: Site, furnished: dict[str, str], scheme: str) -> None:
    async with strict_page(browser, color_scheme=scheme, reduced_motion="reduce") as page:
        screen = Screen(page, site)
        tabs = (f"{furnished['schedule']}?tab={tab}" for tab in ("edit", "versions", "json"))
        found: dict[str, Any] = {}
        for path in (*PATHS, *furnished.values(), *tabs):
            await screen.open(path)
            found |= {path: problems} if (problems := await serious(page)) else {}
        assert not found


async def test_dialogs_and_the_palette_have_no_serious_finding(page: Page, site: Site, furnished: dict[str, str]) -> None:
    screen = Screen(page, site)
    await screen.open(furnished["schedule"])
    await screen.button("Pause").click()
    await expect(screen.dialog).to_be_visible()
    assert not await serious(page)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("option").first).to_be_visible()
    assert not await serious(page)


async def serious(page: Page) -> list[str]:
    await page.evaluate(Path(AXE).read_text())
    report = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for one in report["violations"]
        if one["impact"] in SERIOUS
        for node in one["nodes"][:3]
    ]
