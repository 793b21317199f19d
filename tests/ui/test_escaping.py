"""HTML in user text is shown as text and creates no elements."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

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


async def test_html_in_what_jobs_nodes_and_keys_store_is_escaped(page: Page, tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        screen = Screen(page, site)
        for number, attack in enumerate(ATTACKS):
            done = site.submit("remember", payload={"text": attack})
            target = {
                "type": "http",
                "url": f"{site.address}/demo/echo",
                "headers": {"x-note": attack},
                "body": "raw",
            }
            called = site.request("POST", "/jobs", {"target": target, "payload": attack})["id"]
            waiting = site.submit("greet", delay="1h")
            site.request("DELETE", f"/jobs/{waiting}?reason={quote(attack)}")
            site.request("POST", "/keys", {"name": f"{attack}{number}", "scopes": ["read"]})
            site.rename_nodes(attack)
            for job in (done, called):
                site.request("GET", f"/jobs/{job}?wait=30s")
            shown = {
                f"/jobs/{done}": ("Payload", "Result", "Checkpoint", "JSON"),
                f"/jobs/{called}": ("Payload", "Response", "JSON"),
                f"/jobs/{waiting}": (),
                "/nodes": (),
                "/keys": (),
                "/tasks/remember": (),
            }
            for path, tabs in shown.items():
                await screen.open(path)
                for tab in tabs:
                    await page.get_by_role("tab", name=tab).click()
                    await expect(page.get_by_role("region", name=tab)).to_be_visible()
                    await nothing_was_created(page, f"{path} {tab}")
                await nothing_was_created(page, path)
            await screen.open("/nodes")
            await expect(page.get_by_text(attack).first).to_be_visible()


async def nothing_was_created(page: Page, where: str) -> None:
    await page.wait_for_load_state("load")
    assert await page.locator(CREATED_ELEMENTS).count() == 0, where
    assert await page.evaluate("window.stolen") is None, where


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
        await nothing_was_created(page, path)
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
