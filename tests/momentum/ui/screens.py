"""The elements of Momentum's pages and the actions of a user."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO
from zoneinfo import ZoneInfo

from PIL import Image
from playwright.async_api import FilePayload, Locator, expect

from tests.momentum.ui.site import MomentumSite
from tests.ui.browser import ZONE
from tests.ui.screens import Screen

PATHS = (
    "/",
    "/?view=week",
    "/?view=day",
    "/?view=list",
    "/new",
    "/inbox",
    "/accounts",
    "/accounts?connect=1",
    "/log",
    "/nowhere",
)


def picture(name: str = "scope.png", colour: str = "#335577") -> FilePayload:
    file = BytesIO()
    Image.new("RGB", (640, 400), colour).save(file, "PNG")
    return {"name": name, "mimeType": "image/png", "buffer": file.getvalue()}


class Composer(Screen[MomentumSite]):
    @property
    def text(self) -> Locator:
        return self.page.get_by_role("textbox", name="Text", exact=True)

    @property
    def counter(self) -> Locator:
        return self.page.get_by_test_id("counter")

    @property
    def preview(self) -> Locator:
        return self.page.get_by_role("region", name="Preview")

    @property
    def files(self) -> Locator:
        return self.page.get_by_role("list", name="Files").get_by_role("listitem")

    async def choose(self, account: str) -> None:
        chip = self.page.get_by_role("group", name="Accounts").get_by_role("button", name=account)
        if await chip.get_attribute("aria-pressed") != "true":
            await chip.click()

    async def attach(self, *files: FilePayload) -> None:
        before = await self.files.count()
        await self.page.locator("input[type=file]").first.set_input_files(list(files))
        await expect(self.page.get_by_role("button", name="Alt text of")).to_have_count(before + len(files))

    async def plan(self, at: datetime) -> None:
        local = at.astimezone(ZoneInfo(ZONE))
        await self.page.get_by_label("Date", exact=True).fill(f"{local:%Y-%m-%d}")
        await self.page.get_by_label("Time", exact=True).fill(f"{local:%H:%M:%S}")


class Calendar(Screen[MomentumSite]):
    def post(self, title: str) -> Locator:
        return self.page.locator("[data-post]").filter(has_text=title)

    def day(self, date: str) -> Locator:
        return self.page.locator(f"[data-date='{date}']").first
