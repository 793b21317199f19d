"""Behind a proxy that serves us below another path, nothing has to be set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from playwright.async_api import Page, expect

from tests.ui.site import Site

pytestmark = pytest.mark.slow

PREFIX = "/tools/duetime"
PASSED_ON = ("content-type", "content-encoding", "content-security-policy", "location", "cache-control", "etag")


@asynccontextmanager
async def proxy(site: Site) -> AsyncIterator[str]:
    """Takes the prefix away and passes everything on, streams included."""

    async def pass_on(request: web.Request) -> web.StreamResponse:
        url = site.address + request.raw_path.removeprefix(PREFIX)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in {"host", "origin"}}
        async with session.request(request.method, url, headers=headers, data=await request.read(), allow_redirects=False) as answer:
            kept = {name: answer.headers[name] for name in PASSED_ON if name in answer.headers}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    outside = web.Application()
    outside.router.add_route("*", f"{PREFIX}/{{rest:.*}}", pass_on)
    runner = web.AppRunner(outside, shutdown_timeout=0.1)
    async with ClientSession(auto_decompress=False) as session:
        await runner.setup()
        listener = web.TCPSite(runner, "127.0.0.1", 0)
        await listener.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        await runner.cleanup()


async def test_the_ui_works_below_the_path_a_proxy_gives_it(page: Page, site: Site) -> None:
    made = site.add_schedule("below-a-path")
    async with proxy(site) as address:
        await page.goto(f"{address}{PREFIX}/")
        await expect(page).to_have_url(f"{address}{PREFIX}/ui/")
        await page.get_by_role("link", name="Schedules").first.click()
        await expect(page).to_have_url(f"{address}{PREFIX}/ui/schedules")
        await page.get_by_role("link", name="below-a-path", exact=True).click()
        await expect(page).to_have_url(f"{address}{PREFIX}/ui/schedules/{made['id']}")
        await page.reload()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("below-a-path")
        await page.goto("about:blank")
