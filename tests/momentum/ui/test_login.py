"""With keys, the page asks for one and keeps only a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.momentum.ui.site import MomentumSite
from tests.ui.screens import Screen
from tests.ui.test_accessibility import serious_problems

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def locked_site(tmp_path: Path) -> Iterator[MomentumSite]:
    (tmp_path / "data").mkdir()
    database = f"sqlite:///{tmp_path / 'data' / 'momentum.db'}"
    options = ("--database", database, "--media", f"file://{tmp_path / 'media'}", "--auth", "keys")
    with MomentumSite(tmp_path, *options) as served:
        yield served


async def test_user_signs_in_with_a_key_and_out_again(page: Page, locked_site: MomentumSite) -> None:
    key = locked_site.run("key", "create", "laptop", "--database", locked_site.database)
    screen = Screen(page, locked_site)
    await screen.open("/")
    assert not await serious_problems(page)
    await page.get_by_placeholder("mo_…").fill("mo_wrong")
    await screen.button("Sign in").click()
    await expect(page.get_by_text("is not a valid API key")).to_be_visible()
    await page.get_by_placeholder("mo_…").fill(key)
    await screen.button("Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Welcome to Momentum")
    stored = await page.evaluate(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])"
    )
    assert key not in stored
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Welcome to Momentum")
    await screen.button("Settings").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
