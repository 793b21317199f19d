"""A newcomer connects an account, writes a post with a picture, schedules it and sees it published."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.momentum.ui.screens import Composer, picture
from tests.momentum.ui.site import MomentumSite

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TEXT = "Good morning from Momentum (first post) #hello"


@pytest.fixture
def new_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MomentumSite]:
    with MomentumSite(tmp_path_factory.mktemp("new")) as served:
        yield served


async def test_newcomer_publishes_a_post_with_a_picture(page: Page, new_site: MomentumSite) -> None:
    composer = Composer(page, new_site)
    await composer.open("/")
    await page.get_by_role("link", name="Connect an account").click()
    await page.get_by_role("button", name="Continue to LinkedIn").click()
    await page.get_by_role("button", name="Allow").click()
    await expect(page.get_by_text("Connected: Maya Lindqvist")).to_be_visible()

    await page.get_by_role("link", name="Write a post").click()
    await composer.choose("Maya Lindqvist")
    await composer.text.fill(TEXT)
    await composer.attach(picture())
    await expect(composer.preview.get_by_role("img", name="scope.png")).to_be_visible()
    await composer.plan(datetime.now(UTC) + timedelta(seconds=2))
    await composer.button("Schedule").click()
    await composer.sees_message("Post scheduled")

    await expect(page.get_by_role("heading", level=1)).to_have_text(TEXT)
    await expect(page.get_by_text("Accepted by LinkedIn").first).to_be_visible()
    await expect(page.get_by_role("link", name="Open the post")).to_be_visible()
    await expect(
        page.get_by_role("region", name="Timeline").get_by_text("Attempt 1: Accepted")
    ).to_be_visible()
    (published,) = new_site.sandbox("GET", "/posts")["posts"]
    assert published["text"] == TEXT
    assert "image" in str(published["content"])


async def test_post_is_published_now_after_a_confirmation(
    page: Page, site: MomentumSite, accounts: list[Any]
) -> None:
    composer = Composer(page, site)
    await composer.open("/new")
    await composer.choose("Maya Lindqvist")
    await composer.text.fill("Out it goes")
    await composer.button("Publish now").click()
    await composer.dialog.get_by_role("button", name="Publish now").click()
    await expect(page.get_by_text("Accepted by LinkedIn").first).to_be_visible()
    texts = [post["text"] for post in site.sandbox("GET", "/posts")["posts"]]
    assert texts.count("Out it goes") == 1
