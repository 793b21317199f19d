"""`make screenshots`: writes the screenshots that the documentation shows to docs/images/."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
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
USED = re.compile(r"images/([a-z-]+)-(light|dark)\.png")
NODE = "shop-1"


def used() -> set[tuple[str, str]]:
    """Name and colour scheme of the images in the documentation."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {(name, scheme) for page in pages for name, scheme in USED.findall(page.read_text())}


def leaks(text: str) -> list[str]:
    """What the text says about the machine: its folders and its name."""
    return [word for word in (str(ROOT), str(Path.home()), f"{socket.gethostname()}-") if word in text]


async def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=TIMEOUT)
    with TemporaryDirectory(prefix="shop-") as name:
        folder = Path(name)
        # Errors show where the code is: it runs from a neutral folder.
        shutil.copy(ROOT / "tests" / "ui" / "sample_tasks.py", folder / "shop.py")
        with Site(folder, "--grace", "1s", app="shop:app", code=folder) as site:
            screenshots = await add_sample_data(site)
            site.rename_nodes(NODE)
            async with chromium(folder / "browser") as browser:
                for scheme in ("light", "dark"):
                    wanted = [one for one in screenshots if (one[0], scheme) in used()]
                    await take(browser, site, wanted, scheme)


async def take(browser: Browser, site: Site, screenshots: list[Screenshot], scheme: str) -> None:
    options: dict[str, Any] = {"viewport": SIZE, "color_scheme": scheme, "reduced_motion": "reduce"}
    async with strict_page(browser, **options) as page:
        for name, path, text in screenshots:
            await page.goto(f"{site.ui}{path}")
            await expect(page.get_by_text(text).first).to_be_visible()
            await wait_until_drawn(page)
            found = leaks(await page.locator("body").inner_text())
            assert not found, f"the page {name} shows {found[0]!r} of this machine"
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
