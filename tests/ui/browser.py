"""A page of the browser that is strict: an error of the script, or a breach of the content policy, fails the test that saw it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from tests.servers.debian import program

ZONE = "Europe/Berlin"
PATIENCE = 60_000  # milliseconds: two busy cores
FAULTS = ("Content Security Policy", "Uncaught", "Each child in a list", "Maximum update depth")


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Browser]:
    found = program("chromium", "chromium")
    environment: dict[str, str | float | bool] = {
        **os.environ,
        **found.environment,
        "XDG_CONFIG_HOME": str(folder),
        "XDG_CACHE_HOME": str(folder),
    }
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found.path, env=environment)
        yield browser
        await browser.close()


@asynccontextmanager
async def strict_page(browser: Browser, **options: Any) -> AsyncIterator[Page]:
    context = await browser.new_context(**{"timezone_id": ZONE, "locale": "en-GB", "viewport": {"width": 1360, "height": 860}, **options})
    context.set_default_timeout(PATIENCE)
    faults: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if any(fault in message.text for fault in FAULTS):
            faults.append(message.text)

    page = await context.new_page()
    page.on("console", heard)
    page.on("pageerror", lambda problem: faults.append(str(problem)))
    yield page
    await context.close()
    assert not faults, faults
