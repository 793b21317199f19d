"""The composer counts, previews, checks and keeps what a person writes."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.momentum.ui.screens import Composer, picture
from tests.momentum.ui.site import MomentumSite, in_two_days

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

MENTION = "@[Northwind Coffee](urn:li:organization:1)"
PASTE = """async ([bytes, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, { type: 'image/png' }));
  const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
  document.querySelector('textarea').dispatchEvent(event);
}"""
DROP = """async ([bytes, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, { type: 'image/png' }));
  const options = { dataTransfer: data, bubbles: true, cancelable: true };
  document.body.dispatchEvent(new DragEvent('dragover', options));
  document.body.dispatchEvent(new DragEvent('drop', options));
}"""


@pytest.fixture
async def composer(page: Page, site: MomentumSite, accounts: list[Any]) -> Composer:
    opened = Composer(page, site)
    await opened.open("/new")
    await opened.choose("Maya Lindqvist")
    return opened


async def test_counter_counts_characters_as_the_server_does(composer: Composer) -> None:
    await composer.text.fill(f"Hi {MENTION} 👋🏽")
    await expect(composer.counter).to_have_text("22 / 3,000")
    checked = composer.site.request(
        "POST",
        "/posts/check",
        {
            "account_id": composer.site.request("GET", "/accounts")["items"][0]["id"],
            "text": f"Hi {MENTION} 👋🏽",
        },
    )
    assert checked["length"] == 22


async def test_preview_shows_a_mention_by_its_name_and_folds_a_long_text(composer: Composer) -> None:
    await composer.text.fill(f"Thanks, {MENTION}! " + "word " * 60 + "the end")
    await expect(composer.preview).to_contain_text("Thanks, Northwind Coffee!")
    await expect(composer.preview).not_to_contain_text("the end")
    await expect(composer.page.get_by_text("The feed shows the first 210 characters")).to_be_visible()
    await composer.preview.get_by_role("button", name="see more").click()
    await expect(composer.preview).to_contain_text("the end")


async def test_mention_is_inserted_at_the_cursor(composer: Composer) -> None:
    await composer.text.fill("Thanks to ")
    await composer.button("Mention").click()
    await composer.page.get_by_label("Name", exact=True).fill("Northwind Coffee")
    await composer.page.get_by_label("Page number or URN").fill("1337")
    await composer.button("Insert").click()
    await expect(composer.text).to_have_value("Thanks to Northwind Coffee ")
    chip = composer.page.locator("[data-kind=mention]")
    await expect(chip).to_have_text("Northwind Coffee")
    await expect(composer.preview).to_contain_text("Thanks to Northwind Coffee")
    await composer.text.press_sequentially("and all")
    await composer.text.press("Home")
    await composer.text.press_sequentially("Many ")
    await composer.button("Save draft").click()
    await composer.sees_message("saved as a draft")
    (post,) = composer.site.request("GET", "/posts?q=and+all")["items"]
    assert post["text"] == "Many Thanks to @[Northwind Coffee](urn:li:organization:1337) and all"
    await composer.go(f"/posts/{post['id']}/edit")
    await expect(composer.text).to_have_value("Many Thanks to Northwind Coffee and all")


async def test_mention_keeps_its_target_until_its_name_is_changed(composer: Composer) -> None:
    chip = composer.page.locator("[data-kind=mention]")
    await composer.text.fill(f"{MENTION} and {MENTION}")  # as if pasted
    await expect(composer.text).to_have_value("Northwind Coffee and Northwind Coffee")
    await expect(chip).to_have_count(2)
    await composer.text.press("Home")
    await composer.text.press_sequentially("N")  # the first letter of the name, before it
    await expect(chip).to_have_count(2)
    await composer.text.press("End")
    await composer.text.press("Backspace")
    await expect(composer.text).to_have_value("NNorthwind Coffee and Northwind Coffe")
    await expect(chip).to_have_count(1)
    await composer.text.press_sequentially("e!")
    await expect(chip).to_have_count(1)
    await expect(composer.counter).to_have_text("39 / 3,000")


async def test_problem_of_the_server_is_shown_at_its_field(composer: Composer) -> None:
    await composer.text.fill("x" * 3_001)
    await expect(composer.counter).to_have_text("1 too many")
    await expect(composer.text).to_have_attribute("aria-invalid", "true")
    await composer.text.fill("x")
    await expect(composer.text).to_have_attribute("aria-invalid", "false")


async def test_unsaved_post_survives_a_reload(composer: Composer) -> None:
    await composer.text.fill("Not yet finished")
    await composer.attach(picture("kept.png"))
    await composer.page.reload()
    await expect(composer.text).to_have_value("Not yet finished")
    await expect(composer.files).to_have_count(1)
    await composer.button("Clear").click()
    await expect(composer.text).to_have_value("")


async def test_files_can_be_pasted_dropped_described_and_reordered(composer: Composer) -> None:
    page = composer.page
    first, second = picture("first.png", "#aa3333"), picture("second.png", "#33aa33")
    await page.evaluate(PASTE, [list(first["buffer"]), "first.png"])
    await expect(page.get_by_role("button", name="Alt text of first.png")).to_be_visible()
    await page.evaluate(DROP, [list(second["buffer"]), "second.png"])
    await expect(page.get_by_role("button", name="Alt text of second.png")).to_be_visible()
    await page.get_by_role("button", name="Move second.png forward").click()
    await expect(composer.files.first).to_contain_text("second.png")
    await page.get_by_role("button", name="Alt text of second.png").click()
    await composer.dialog.get_by_label("Alt text").fill("A green field")
    await composer.dialog.get_by_role("button", name="Save").click()
    await expect(composer.preview.get_by_role("img", name="A green field")).to_be_visible()


async def test_refused_file_says_why(composer: Composer) -> None:
    await composer.page.locator("input[type=file]").first.set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"only text"}
    )
    await expect(composer.files.get_by_role("alert")).to_be_visible()


async def test_local_time_that_does_not_exist_or_exists_twice_is_named(composer: Composer) -> None:
    page = composer.page
    await page.get_by_label("Date", exact=True).fill("2027-03-28")
    await page.get_by_label("Time", exact=True).fill("02:30")
    await expect(page.get_by_text("02:30 does not exist on this day")).to_be_visible()
    await page.get_by_label("Date", exact=True).fill("2027-10-31")
    await expect(page.get_by_text("02:30 happens twice on this day")).to_be_visible()
    await expect(page.get_by_text("00:30 UTC")).to_be_visible()
    await page.get_by_text("Second: 02:30 CET").click()
    await expect(page.get_by_text("01:30 UTC")).to_be_visible()


async def test_control_and_enter_schedules_the_post(composer: Composer) -> None:
    await composer.text.fill("Scheduled by keyboard")
    await composer.text.press("Control+Enter")
    await expect(composer.page.get_by_text("Choose a date and a time")).to_be_visible()
    await composer.plan(in_two_days())
    await composer.text.press("Control+Enter")
    await composer.sees_message("Post scheduled")
    (post,) = composer.site.request("GET", "/posts?q=Scheduled+by+keyboard")["items"]
    assert (post["state"], post["zone"]) == ("scheduled", "Europe/Berlin")


async def test_button_says_what_is_missing_and_moves_to_it(
    page: Page, site: MomentumSite, accounts: list[Any]
) -> None:
    composer = Composer(page, site)
    await composer.open("/new")
    group = page.get_by_role("group", name="Accounts")
    for verb in ("Save draft", "Publish now", "Schedule"):
        await composer.text.focus()
        await composer.button(verb).click()
        await expect(group).to_be_focused()
        await expect(group).to_have_accessible_description("Choose an account.")
        await expect(composer.text).to_have_accessible_description("Write a text, or add a file or a link.")
    date = page.get_by_label("Date", exact=True)
    await expect(date).to_have_accessible_description("Choose a date and a time.")
    await composer.text.fill("For one account, once it is chosen")
    await composer.plan(in_two_days())
    for field in (composer.text, date):
        await expect(field).not_to_have_attribute("aria-invalid", "true")
    await composer.text.press("Control+Enter")
    await expect(group).to_be_focused()
    assert site.request("GET", "/posts?q=once+it+is+chosen")["items"] == []
    await expect(composer.text).to_have_value("For one account, once it is chosen")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Space")
    await expect(page.get_by_text("Choose an account")).to_have_count(0)
    await composer.button("Schedule").click()
    await composer.sees_message("Post scheduled")


async def test_each_chosen_account_gets_its_own_post(composer: Composer) -> None:
    await composer.choose("Northwind Coffee")
    await composer.text.fill("For both accounts")
    await composer.button("Save draft").click()
    await composer.sees_message("2 posts saved as a draft")
    items = composer.site.request("GET", "/posts?q=For+both+accounts")["items"]
    assert len({item["account_id"] for item in items}) == 2


async def test_edited_post_keeps_its_time(
    composer: Composer, page: Page, site: MomentumSite, member: Any
) -> None:
    post = site.add_post(member, "Before the edit", in_two_days())
    await composer.open(f"/posts/{post['id']}/edit")
    await composer.text.fill("After the edit")
    await composer.button("Schedule").click()
    await composer.sees_message("Post scheduled")
    edited = site.request("GET", f"/posts/{post['id']}")
    assert (edited["text"], edited["scheduled_at"]) == ("After the edit", post["scheduled_at"])


async def test_edit_does_not_overwrite_what_another_user_changed(
    composer: Composer, page: Page, site: MomentumSite, member: Any
) -> None:
    post = site.add_post(member, "Before both edits", in_two_days())
    path = f"/posts/{post['id']}"
    await composer.open(f"{path}/edit")
    await composer.text.fill("My edit")
    site.request("PATCH", path, {"text": "Another user's edit", "version": post["version"]})
    await expect(page.get_by_text("The post was changed by another user")).to_be_visible()
    await expect(composer.text).to_have_value("My edit")
    await composer.button("Schedule").click()
    await expect(page.get_by_role("alert", name="The post was not stored")).to_be_visible()
    assert site.request("GET", path)["text"] == "Another user's edit"
