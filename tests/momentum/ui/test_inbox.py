"""A person decides in the inbox; accounts are switched and disconnected; the log shows what happened."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.momentum.ui.site import MomentumSite
from tests.ui.screens import Screen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def lose_the_answer(site: MomentumSite, account: Any, text: str) -> Any:
    """A post that LinkedIn takes, and whose answer never arrives."""
    site.sandbox("POST", "/faults", {"kind": "reset_after", "author": account["author"]["urn"]})
    post = site.add_post(account, text)
    return site.request("POST", f"/posts/{post['id']}/publish", {"version": post["version"]})


async def test_post_in_doubt_is_resolved_by_a_person(page: Page, site: MomentumSite, member: Any) -> None:
    post = lose_the_answer(site, member, "Was it published?")
    screen = Screen(page, site)
    await screen.open("/inbox")
    card = page.get_by_role("listitem").filter(has_text="Was it published?")
    await expect(card.get_by_text("Did LinkedIn publish this post?")).to_be_visible()
    await card.get_by_role("button", name="It is there").click()
    await screen.dialog.get_by_label("Address of the post").fill(
        "https://www.linkedin.com/feed/update/urn:li:share:1/"
    )
    await screen.dialog.get_by_role("button", name="Mark as published").click()
    await screen.sees_message("Marked as published")
    await expect(card).to_have_count(0)
    resolved = site.request("GET", f"/posts/{post['id']}")
    assert (resolved["state"], resolved["url"]) == (
        "published",
        "https://www.linkedin.com/feed/update/urn:li:share:1/",
    )
    assert [one["text"] for one in site.sandbox("GET", "/posts")["posts"]].count("Was it published?") == 1


async def test_post_that_is_not_there_becomes_a_draft(page: Page, site: MomentumSite, member: Any) -> None:
    post = lose_the_answer(site, member, "Back to the desk")
    screen = Screen(page, site)
    await screen.open("/inbox")
    card = page.get_by_role("listitem").filter(has_text="Back to the desk")
    await card.get_by_role("button", name="It is not there").click()
    await page.get_by_role("menuitem", name="Back to draft").click()
    await screen.sees_message("Back to draft")
    await expect(card).to_have_count(0)
    assert site.request("GET", f"/posts/{post['id']}")["state"] == "draft"


async def test_probe_is_turned_on_only_after_its_risk_is_accepted(
    page: Page, site: MomentumSite, member: Any
) -> None:
    screen = Screen(page, site)
    await screen.open("/accounts")
    switch = page.get_by_role("region", name=member["author"]["name"]).get_by_role("switch")
    await switch.click(force=True)
    await expect(screen.dialog.get_by_text("your readers see the post twice")).to_be_visible()
    await screen.dialog.get_by_role("button", name="Cancel").click()
    await expect(switch).not_to_be_checked()
    await switch.click(force=True)
    await screen.dialog.get_by_role("button", name="I accept the risk").click()
    await expect(switch).to_be_checked()
    await switch.click(force=True)
    await expect(switch).not_to_be_checked()


async def test_log_lists_attempts_and_downloads_them(page: Page, site: MomentumSite, member: Any) -> None:
    lose_the_answer(site, member, "For the log")
    screen = Screen(page, site)
    await screen.open("/log?outcome=unknown")
    table = page.get_by_role("table", name="Attempts")
    await expect(table.get_by_text("In doubt").first).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="CSV").click()
    path = await (await download.value).path()
    assert "unknown" in path.read_text()
