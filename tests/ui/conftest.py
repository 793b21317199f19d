"""One browser and one service per test worker, and a new page for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, Page, expect

from tests.ui.browser import TIMEOUT, chromium, strict_page
from tests.ui.site import Site


@pytest.fixture(scope="session")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    expect.set_options(timeout=TIMEOUT)
    async with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as served:
        yield served


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    async with strict_page(browser) as opened:
        yield opened
