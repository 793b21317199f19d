"""Chromium, and a browser page that fails the test on any script error or content policy violation."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from tests.servers.debian import program

ZONE = "Europe/Berlin"
TIMEOUT = 60_000  # milliseconds; enough for a busy machine
ERRORS = ("Content Security Policy", "Uncaught", "Each child in a list", "Maximum update depth")


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
    context = await browser.new_context(
        **{"timezone_id": ZONE, "locale": "en-GB", "viewport": {"width": 1360, "height": 860}, **options}
    )
    context.set_default_timeout(TIMEOUT)
    errors: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if any(error in message.text for error in ERRORS):
            errors.append(message.text)

    page = await context.new_page()
    page.on("console", on_console)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    await context.close()
    assert not errors, errors
