"""`make screenshots`: every page of a lively service, light and dark, into docs/images/."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.ui.browser import chromium, strict_page
from tests.ui.liveliness import Address, furnish
from tests.ui.site import ROOT, Site

FOLDER = ROOT / "docs" / "images"
SIZE = {"width": 1280, "height": 770}
LARGEST = 180_000  # bytes of one picture: they live in the repository
TASKS = "tests.ui.lively:app"


async def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, Site(Path(folder), "--grace", "1s", app=TASKS) as site:
        addresses = await furnish(site)
        async with chromium(Path(folder) / "browser") as browser:
            for scheme in ("light", "dark"):
                await take(browser, site, addresses, scheme)


async def take(browser: Browser, site: Site, addresses: list[Address], scheme: str) -> None:
    options: dict[str, Any] = {"viewport": SIZE, "color_scheme": scheme, "reduced_motion": "reduce"}
    async with strict_page(browser, **options) as page:
        for name, path, waited in addresses:
            await page.goto(f"{site.ui}{path}")
            await expect(page.get_by_text(waited).first).to_be_visible()
            await settle(page)
            file = FOLDER / f"{name}-{scheme}.png"
            await page.screenshot(path=file)
            size = file.stat().st_size
            sys.stdout.write(f"{file.relative_to(ROOT)} {size:,} bytes\n")
            assert size < LARGEST, f"{file.name} is too large for the repository"


async def settle(page: Page) -> None:
    """Until nothing is being fetched but the stream of events, and fonts and charts are drawn."""
    await page.evaluate("document.fonts.ready")
    await expect(page.locator(".mantine-Skeleton-root")).to_have_count(0)
    await page.wait_for_timeout(600)


if __name__ == "__main__":
    asyncio.run(main())
