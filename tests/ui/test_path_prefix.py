"""The web UI works without settings behind a proxy that serves it below another path."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from playwright.async_api import Page, expect

from tests.ui.site import Site

pytestmark = pytest.mark.slow

PREFIX = "/tools/duetime"
FORWARDED_HEADERS = (
    "content-type",
    "content-encoding",
    "content-security-policy",
    "location",
    "cache-control",
    "etag",
)


@asynccontextmanager
async def proxy(site: Site) -> AsyncIterator[str]:
    """Removes the prefix and forwards everything, including streams."""

    async def forward(request: web.Request) -> web.StreamResponse:
        url = site.address + request.raw_path.removeprefix(PREFIX)
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in {"host", "origin"}
        }
        async with session.request(
            request.method, url, headers=headers, data=await request.read(), allow_redirects=False
        ) as response:
            kept = {name: response.headers[name] for name in FORWARDED_HEADERS if name in response.headers}
            forwarded = web.StreamResponse(status=response.status, headers=kept)
            await forwarded.prepare(request)
            async for chunk in response.content.iter_any():
                await forwarded.write(chunk)
            return forwarded

    application = web.Application()
    application.router.add_route("*", f"{PREFIX}/{{rest:.*}}", forward)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    async with ClientSession(auto_decompress=False) as session:
        await runner.setup()
        listener = web.TCPSite(runner, "127.0.0.1", 0)
        await listener.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        await runner.cleanup()


async def test_ui_works_below_a_path_prefix(page: Page, site: Site) -> None:
    schedule = site.add_schedule("below-a-path")
    async with proxy(site) as address:
        await page.goto(f"{address}{PREFIX}/")
        await expect(page).to_have_url(f"{address}{PREFIX}/ui/")
        await page.get_by_role("link", name="Schedules").first.click()
        await expect(page).to_have_url(f"{address}{PREFIX}/ui/schedules")
        await page.get_by_role("link", name="below-a-path", exact=True).click()
        await expect(page).to_have_url(f"{address}{PREFIX}/ui/schedules/{schedule['id']}")
        await page.reload()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("below-a-path")
        await page.goto("about:blank")
