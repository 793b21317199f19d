"""One browser and one demo per test worker, with a connected account, and a new page for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.momentum.ui.site import MomentumSite
from tests.ui.browser import TIMEOUT, chromium, strict_page


@pytest.fixture(scope="session")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    expect.set_options(timeout=TIMEOUT)
    async with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MomentumSite]:
    with MomentumSite(tmp_path_factory.mktemp("momentum-site")) as served:
        yield served


@pytest.fixture(scope="session")
def accounts(site: MomentumSite) -> list[Any]:
    """A member and an organization."""
    return site.connect()


@pytest.fixture(scope="session")
def member(accounts: list[Any]) -> Any:
    return next(account for account in accounts if account["author"]["kind"] == "member")


@pytest.fixture(scope="module")
async def window(browser: Browser) -> AsyncIterator[Page]:
    """One for all tests of a module: its cache has the files of the page."""
    async with strict_page(browser) as opened:
        yield opened


@pytest.fixture
async def page(window: Page) -> Page:
    """As in a new window: nothing is loaded, and nothing is remembered."""
    if window.url.startswith("http"):
        await window.evaluate("localStorage.clear(); sessionStorage.clear()")
        await window.goto("about:blank")
    await window.context.clear_cookies()
    return window
