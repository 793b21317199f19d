"""HTML in user text is shown as text and creates no elements."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Page, expect

from tests.ui.screens import Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow

# One text with all of them: where it is shown, each would create its element.
ATTACKS = (
    "<img src=x onerror=window.stolen=1>"
    "</script><script>window.stolen=1</script>"
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


async def test_html_in_alerts_channels_rules_and_mutes_is_escaped(page: Page, tmp_path: Path) -> None:
    with Site(tmp_path, "--alert-interval", "1s") as site:
        screen = Screen(page, site)
        for attack in ATTACKS:
            add_alert_attacks(site, attack)
        async with asyncio.timeout(60):
            while len(site.request("GET", "/alerts")["items"]) < 2 * len(ATTACKS):
                await asyncio.sleep(0.1)
        await screen.open("/alerts")
        for attack in ATTACKS:
            for section in ("Open", "Muted", "Channels", "Rules"):
                table = page.get_by_role("table", name=section, exact=True)
                await expect(table.get_by_text(attack).first).to_be_visible()
            # The receiver answers with what it received, and the error shows it.
            await screen.button(f"Test {attack}").click()
            outcome = page.get_by_role("status").filter(has_text="did not accept it")
            await expect(outcome.filter(has_text=attack)).to_be_visible()
            await nothing_was_created(page, "/alerts")
            for button in (f"Edit channel {attack}", f"Edit channel {attack} mail", f"Edit rule {attack}"):
                await screen.button(button).click()
                await expect(screen.dialog).to_contain_text(attack)
                await nothing_was_created(page, button)
                await page.keyboard.press("Escape")
                await expect(screen.dialog).to_have_count(0)
        subject = page.get_by_role("table", name="Open").get_by_role("link", name=ATTACKS[0], exact=True)
        await subject.first.click()
        await nothing_was_created(page, "the subject of an alert")


def add_alert_attacks(site: Site, attack: str) -> None:
    """Channels, a rule, a mute and open alerts with the attack in every field that takes it."""
    echo = f"{site.address}/demo/echo/status/400"
    name = quote(attack, safe="")
    channels: dict[str, dict[str, Any]] = {
        name: {"type": "webhook", "url": f"{echo}?{name}"},
        f"{name}%20am": {"type": "alertmanager", "url": echo, "authorization": attack},
        f"{name}%20pager": {"type": "pagerduty", "url": echo, "routing_key": attack},
        f"{name}%20mail": {
            "type": "email",
            "host": "localhost",
            "sender": "svg/onload=1@example.org",
            "to": ["svg/onload=1@example.org"],
            "username": attack,
            "password": attack,
        },
    }
    for channel, target in channels.items():
        site.request("PUT", f"/alerts/channels/{channel}", {"target": target})
    rule = {"condition": "failing", "schedule": attack, "queue": attack, "count": 1, "channels": [attack]}
    site.request("PUT", f"/alerts/rules/{name}", rule)
    site.request("POST", "/alerts/mutes", {"for": "1h", "subject": attack, "note": attack})
    target = {"type": "task", "name": "failing"}
    schedule = site.add_schedule(attack, queue=attack, target=target, payload={"text": attack})
    site.request("POST", f"/schedules/{schedule['id']}/trigger")


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
