"""`make screenshots`: writes a light and a dark screenshot of every page to docs/images/."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.ui.browser import TIMEOUT, chromium, strict_page
from tests.ui.sample_data import Screenshot, add_sample_data
from tests.ui.site import ROOT, Site

FOLDER = ROOT / "docs" / "images"
SIZE = {"width": 1280, "height": 770}
MAX_SIZE = 180_000  # bytes of one screenshot; they are stored in the repository
TASKS = "tests.ui.sample_tasks:app"


async def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=TIMEOUT)
    with TemporaryDirectory() as folder, Site(Path(folder), "--grace", "1s", app=TASKS) as site:
        screenshots = await add_sample_data(site)
        async with chromium(Path(folder) / "browser") as browser:
            for scheme in ("light", "dark"):
                await take(browser, site, screenshots, scheme)


async def take(browser: Browser, site: Site, screenshots: list[Screenshot], scheme: str) -> None:
    options: dict[str, Any] = {"viewport": SIZE, "color_scheme": scheme, "reduced_motion": "reduce"}
    async with strict_page(browser, **options) as page:
        for name, path, text in screenshots:
            await page.goto(f"{site.ui}{path}")
            await expect(page.get_by_text(text).first).to_be_visible()
            await wait_until_drawn(page)
            file = FOLDER / f"{name}-{scheme}.png"
            await page.screenshot(path=file)
            size = file.stat().st_size
            sys.stdout.write(f"{file.relative_to(ROOT)} {size:,} bytes\n")
            assert size < MAX_SIZE, f"{file.name} is too large for the repository"


async def wait_until_drawn(page: Page) -> None:
    """Wait until the data is loaded and fonts and charts are drawn."""
    await page.evaluate("document.fonts.ready")
    await expect(page.locator(".mantine-Skeleton-root")).to_have_count(0)
    await page.wait_for_timeout(600)


if __name__ == "__main__":
    asyncio.run(main())
