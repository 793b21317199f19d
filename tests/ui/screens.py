"""Page objects: the elements of each page and the actions of a user."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from playwright.async_api import Locator, Page, expect

from tests.ui.site import Site

GO = """(path) => {
  history.pushState(null, '', path);
  dispatchEvent(new PopStateEvent('popstate'));
}"""

# Every page, and an unknown one.
PATHS = (
    "/",
    "/schedules",
    "/schedules/new",
    "/jobs",
    "/jobs/new",
    "/tasks",
    "/calendar",
    "/dead",
    "/alerts",
    "/queues",
    "/nodes",
    "/keys",
    "/nowhere",
)


class Served(Protocol):
    @property
    def ui(self) -> str:
        """The address of the page."""
        ...


AnySite = TypeVar("AnySite", bound=Served)


class Screen(Generic[AnySite]):
    def __init__(self, page: Page, site: AnySite) -> None:
        self.page = page
        self.site = site

    async def open(self, path: str) -> None:
        await self.page.goto(f"{self.site.ui}{path}")
        await expect(self.page.get_by_role("heading", level=1)).to_be_visible()

    async def go(self, path: str) -> None:
        """Like a link of the page: nothing is loaded again, which is quicker than `open`."""
        await self.page.evaluate(GO, f"{self.site.ui}{path}")
        await expect(self.page.get_by_role("heading", level=1)).to_be_visible()

    async def turn_to(self, path: str) -> None:
        """As `go`, to a page of another kind; waits until the heading of the page before has gone."""
        await self.page.evaluate("document.querySelector('h1').dataset.before = ''")
        await self.page.evaluate(GO, f"{self.site.ui}{path}")
        await expect(self.page.locator("h1[data-before]")).to_have_count(0)
        await expect(self.page.get_by_role("heading", level=1)).to_be_visible()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    async def sees_message(self, text: str) -> None:
        await expect(self.page.get_by_role("status").filter(has_text=text).first).to_be_visible()

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")


class Schedules(Screen[Site]):
    @property
    def table(self) -> Locator:
        return self.page.get_by_role("table", name="Schedules")

    def row(self, name: str) -> Locator:
        return self.table.get_by_role("row").filter(has=self.page.get_by_role("link", name=name, exact=True))

    @property
    def search(self) -> Locator:
        return self.page.get_by_label("Search schedules by name")

    async def select_all(self) -> None:
        await self.page.get_by_label("Select all matches").check()


class Editor(Screen[Site]):
    @property
    def name(self) -> Locator:
        return self.page.get_by_role("textbox", name="Name", exact=True)

    @property
    def cron(self) -> Locator:
        return self.page.get_by_label("Cron expression")

    @property
    def preview(self) -> Locator:
        return self.page.get_by_role("region", name="Next fires")

    async def every(self, interval: str) -> None:
        await self.page.get_by_text("Interval", exact=True).click()
        await self.page.get_by_label("Interval").and_(self.page.get_by_role("textbox")).fill(interval)

    async def task(self, name: str) -> None:
        await self.page.get_by_text("Task", exact=True).first.click()
        await self.page.get_by_role("combobox", name="Task").fill(name)

    async def save(self) -> None:
        await self.button("Review and save").click()
        await self.dialog.get_by_role("button", name="Save").click()
        await self.sees_message("saved")


class Jobs(Screen[Site]):
    @property
    def table(self) -> Locator:
        return self.page.get_by_role("table", name="Jobs")

    async def state(self, name: str) -> None:
        await expect(self.page.get_by_role("heading", level=1)).to_contain_text(name)

    def fact(self, name: str) -> Locator:
        return (
            self.page.locator("dl > div")
            .filter(has=self.page.locator("dt").get_by_text(name, exact=True))
            .locator("dd")
        )
