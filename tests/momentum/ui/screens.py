"""The elements of Momentum's pages and the actions of a user."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO
from zoneinfo import ZoneInfo

from PIL import Image
from playwright.async_api import FilePayload, Locator, Page, expect

from tests.momentum.ui.site import MomentumSite
from tests.ui.browser import ZONE

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


class Screen:
    def __init__(self, page: Page, site: MomentumSite) -> None:
        self.page = page
        self.site = site

    async def open(self, path: str) -> None:
        await self.page.goto(f"{self.site.address}{path}")
        await expect(self.page.get_by_role("heading", level=1)).to_be_visible()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    async def sees_message(self, text: str) -> None:
        await expect(self.page.get_by_role("status").filter(has_text=text).first).to_be_visible()

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")


class Composer(Screen):
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


class Calendar(Screen):
    def post(self, title: str) -> Locator:
        return self.page.locator("[data-post]").filter(has_text=title)

    def day(self, date: str) -> Locator:
        return self.page.locator(f"[data-date='{date}']").first
