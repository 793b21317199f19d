"""The calendar: dragging, moving by keyboard, filters, live updates and the import of a file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.momentum.ui.screens import Calendar
from tests.momentum.ui.site import MomentumSite, in_two_days
from tests.ui.browser import ZONE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
async def calendar(page: Page, site: MomentumSite, accounts: list[Any]) -> Calendar:
    return Calendar(page, site)


def local_date(at: datetime) -> str:
    return f"{at.astimezone(ZoneInfo(ZONE)):%Y-%m-%d}"


async def test_dragged_post_keeps_its_time_on_the_new_day(calendar: Calendar, member: Any) -> None:
    at = in_two_days(7)
    is_sunday = at.astimezone(ZoneInfo(ZONE)).weekday() == 6
    target = at + timedelta(days=-1 if is_sunday else 1)  # in the same week
    post = calendar.site.add_post(member, "Drag me", at)
    await calendar.open(f"/?view=week&date={local_date(at)}&q=Drag+me")
    hour = at.astimezone(ZoneInfo(ZONE)).hour
    cell = calendar.page.locator(f"[data-date='{local_date(target)}'][data-hour='{hour}']")
    await calendar.post("Drag me").drag_to(cell)
    await calendar.sees_message("Planned for")
    await expect(cell.locator("[data-post]")).to_have_count(1)
    moved = calendar.site.request("GET", f"/posts/{post['id']}")
    assert datetime.fromisoformat(moved["scheduled_at"]) == target


async def test_month_view_moves_a_post_to_another_day(calendar: Calendar, member: Any) -> None:
    at = in_two_days(8)
    target = at + timedelta(days=3)
    post = calendar.site.add_post(member, "From day to day", at)
    await calendar.open(f"/?date={local_date(at)}&q=From+day")
    day = calendar.day(local_date(target))
    await day.scroll_into_view_if_needed()  # a page that scrolls under the pressed button begins no drag
    await calendar.post("From day to day").drag_to(day)
    await calendar.sees_message("Planned for")
    moved = calendar.site.request("GET", f"/posts/{post['id']}")
    assert datetime.fromisoformat(moved["scheduled_at"]) == target


async def test_post_is_moved_by_keyboard(calendar: Calendar, member: Any) -> None:
    at = in_two_days(10)
    post = calendar.site.add_post(member, "Move me by keyboard", at)
    await calendar.open(f"/?view=day&date={local_date(at)}&q=Move+me")
    await calendar.post("Move me").get_by_role("link").focus()
    await calendar.page.keyboard.press("m")
    await calendar.dialog.get_by_label("Time", exact=True).fill("23:45")
    await calendar.page.keyboard.press("Enter")
    await calendar.sees_message("Planned for")
    moved = datetime.fromisoformat(calendar.site.request("GET", f"/posts/{post['id']}")["scheduled_at"])
    assert f"{moved.astimezone(ZoneInfo(ZONE)):%H:%M}" == "23:45"


async def test_filters_choose_by_text_label_state_and_account(
    calendar: Calendar, accounts: list[Any]
) -> None:
    at = in_two_days(11)
    first, second = accounts[:2]
    calendar.site.add_post(first, "Filter apple", at, labels=["fruit"])
    calendar.site.add_post(second, "Filter carrot", at)
    await calendar.open(f"/?view=day&date={local_date(at)}&q=Filter")
    await expect(calendar.post("Filter carrot")).to_be_visible()
    await calendar.page.get_by_label("Label", exact=True).fill("fruit")
    await expect(calendar.post("Filter carrot")).to_have_count(0)
    await expect(calendar.post("Filter apple")).to_be_visible()
    await calendar.go(f"/?view=day&date={local_date(at)}&q=Filter&account={second['id']}")
    await expect(calendar.post("Filter carrot")).to_be_visible()
    await expect(calendar.post("Filter apple")).to_have_count(0)
    await calendar.go("/?view=list&q=Filter&state=draft")
    await expect(calendar.page.get_by_text("No posts match")).to_be_visible()


async def test_change_elsewhere_appears_without_a_reload(calendar: Calendar, member: Any) -> None:
    at = in_two_days(12)
    await calendar.open(f"/?view=day&date={local_date(at)}&q=Live")
    await expect(calendar.page.get_by_role("button", name="Live.")).to_be_visible()
    calendar.site.add_post(member, "Live from another window", at)
    await expect(calendar.post("Live from another window")).to_be_visible(timeout=10_000)


async def test_file_is_checked_and_then_imported(calendar: Calendar, member: Any) -> None:
    at = f"{datetime.now(UTC) + timedelta(days=9):%Y-%m-%dT09:00}"
    name = member["author"]["name"]
    good = f"account,text,scheduled_at,zone\n{name},Imported one,{at},Europe/Berlin\n"
    await calendar.open("/?view=list")
    await calendar.button("Import").click()
    chooser = calendar.dialog.locator("input[type=file]")
    bad: FilePayload = {
        "name": "bad.csv",
        "mimeType": "text/csv",
        "buffer": f"{good}{name},Two,never,Europe/Berlin\n".encode(),
    }
    await chooser.set_input_files(bad)
    await expect(calendar.dialog.get_by_role("table", name="Problems")).to_be_visible()
    await expect(calendar.dialog.get_by_text("1 row can be imported, 1 row cannot")).to_be_visible()
    assert calendar.site.request("GET", "/posts?q=Imported+one")["items"] == []
    await chooser.set_input_files({"name": "good.csv", "mimeType": "text/csv", "buffer": good.encode()})
    await calendar.dialog.get_by_role("button", name="Import 1 post").click()
    await calendar.sees_message("1 post imported")
    (post,) = calendar.site.request("GET", "/posts?q=Imported+one")["items"]
    assert post["state"] == "scheduled"


async def test_move_without_a_date_asks_for_it(calendar: Calendar, member: Any) -> None:
    at = in_two_days(11)
    calendar.site.add_post(member, "Without a date", at)
    await calendar.open(f"/?view=day&date={local_date(at)}&q=Without+a+date")
    await calendar.post("Without a date").get_by_role("link").focus()
    await calendar.page.keyboard.press("m")
    await calendar.dialog.get_by_label("Date").fill("")
    await calendar.dialog.get_by_role("button", name="Move").click()
    date = calendar.dialog.get_by_label("Date")
    await expect(date).to_be_focused()
    assert await date.evaluate("field => field.validity.valueMissing")
    await expect(calendar.dialog).to_be_visible()
