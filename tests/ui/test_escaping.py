"""HTML in user text is shown as text and creates no elements."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.ui.screens import Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow

ATTACKS = (
    "<img src=x onerror=window.stolen=1>",
    "</script><script>window.stolen=1</script>",
    "<svg/onload=window.stolen=1>{{7*7}}",
)
CREATED_ELEMENTS = "img[src='x'], svg[onload], a[href^='javascript'], script:not([src])"


async def test_html_in_user_text_is_escaped_on_every_page(page: Page, site: Site) -> None:
    ids = [add_attack(site, attack, number) for number, attack in enumerate(ATTACKS)]
    screen = Screen(page, site)
    paths = ["/", "/schedules", "/jobs", "/dead", "/queues", "/calendar"]
    for schedule, job in ids:
        paths += [
            f"/schedules/{schedule}",
            f"/schedules/{schedule}?tab=edit",
            f"/schedules/{schedule}?tab=versions",
            f"/jobs/{job}",
        ]
    for path in paths:
        await screen.open(path)
        await page.wait_for_load_state("load")
        assert await page.locator(CREATED_ELEMENTS).count() == 0, path
        assert await page.evaluate("window.stolen") is None, path
    await screen.open(f"/schedules/{ids[0][0]}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text(ATTACKS[0])


def add_attack(site: Site, attack: str, number: int) -> tuple[str, str]:
    """Adds a schedule and jobs with the attack in every text field."""
    text = {"payload": {"name": attack}, "owner": attack, "labels": {"note": attack}, "queue": attack}
    schedule = site.add_schedule(attack, **text)
    site.request("POST", f"/schedules/{schedule['id']}/pause", {"note": attack})
    site.submit("failing", payload={"text": attack}, owner=attack, labels={"note": attack})
    job = site.request(
        "POST",
        "/jobs",
        {"target": {"type": "task", "name": attack}, **text, "unique_key": f"{number}{attack}"},
    )
    return schedule["id"], job["id"]
