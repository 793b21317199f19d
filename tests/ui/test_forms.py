"""Forms say at the field what is wrong or missing, lose no input, and send a request once."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.ui.screens import Editor, Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow

TARGET = {"type": "task", "name": "greet"}
DAILY = {"when": {"every": "1d"}, "target": TARGET}


async def sees_error_at(field: Locator, text: str) -> None:
    await expect(field).to_be_focused()
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field.page.get_by_text(text).first).to_be_visible()


async def write_json(editor: Editor, text: str) -> None:
    await editor.page.get_by_label("View", exact=True).get_by_text("JSON", exact=True).click()
    await editor.page.get_by_role("textbox", name="JSON").fill(text)


async def to_form(page: Page) -> None:
    await page.get_by_label("View", exact=True).get_by_text("Form", exact=True).click()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "cannot show this JSON"),
        ("[1]", "cannot show this JSON"),
        (json.dumps({**DAILY, "name": 5}), "cannot show this JSON"),
        (json.dumps({**DAILY, "name": "asleep", "paused": True}), "cannot show paused"),
        (json.dumps({**DAILY, "name": "asleep", "missed": {"within": "1h", "size": 3}}), "missed.size"),
    ],
)
async def test_json_that_no_form_can_show_stays_json(page: Page, site: Site, text: str, message: str) -> None:
    editor = Editor(page, site)
    await editor.open("/schedules/new")
    await write_json(editor, text)
    await to_form(page)
    await editor.sees_message(message)
    await expect(page.get_by_role("textbox", name="JSON")).to_have_value(text)


async def test_json_without_a_name_becomes_a_form_that_asks_for_it(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/schedules/new")
    await write_json(editor, json.dumps(DAILY))
    await to_form(page)
    await expect(editor.name).to_have_value("")
    await editor.button("Create schedule").click()
    await sees_error_at(editor.name, "Enter a name")


async def test_form_keeps_expiry_start_of_counting_and_exact_retries(page: Page, site: Site) -> None:
    when = {"every": "1h", "anchor": "2026-01-01T00:07:00Z"}
    retry = {"max_attempts": 3, "jitter": False}
    schedule = site.add_schedule("kept-as-it-was", when=when, retry=retry, expires="5m")
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await expect(page.get_by_label("Expires")).to_have_value("5m")
    await expect(page.get_by_label("Counted from")).to_have_value("2026-01-01T00:07:00Z")
    await expect(page.get_by_label("Random delays")).not_to_be_checked()
    await editor.every("2h")
    await page.get_by_label("First delay").fill("7s")
    await editor.save()
    saved = site.request("GET", "/schedules/kept-as-it-was")
    assert saved["when"] == {**when, "every": "2h"}
    assert (saved["retry"]["first_delay"], saved["retry"]["jitter"]) == ("7s", False)
    assert saved["expires"] == "5m"
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await page.get_by_label("Expires").fill("")
    await page.get_by_label("Counted from").fill("")
    await editor.save()
    saved = site.request("GET", "/schedules/kept-as-it-was")
    assert (saved["when"], saved["expires"]) == ({"every": "2h"}, None)


async def test_wrong_json_is_said_at_its_field(page: Page, site: Site) -> None:
    schedule = site.add_schedule("wrong-payload")
    job = site.submit("failing", payload={"text": "x"})
    editor = Editor(page, site)
    for path, label, button in (
        ("/schedules/new", "Payload (JSON)", "Create schedule"),
        (f"/schedules/{schedule['id']}?tab=edit", "Payload (JSON)", "Review and save"),
        ("/jobs/new", "Payload (JSON)", "Submit job"),
        ("/tasks/greet", "Arguments (JSON)", "Submit job"),
    ):
        await editor.open(path)
        await page.get_by_label(label).fill("{oops")
        await editor.button(button).click()
        await sees_error_at(page.get_by_label(label), "Invalid JSON")
    await editor.open(f"/jobs/{job}")
    await editor.button("Retry").click()
    await editor.dialog.get_by_label("Payload (JSON)").fill("{oops")
    await editor.dialog.get_by_role("button", name="Retry with this payload").click()
    await sees_error_at(editor.dialog.get_by_label("Payload (JSON)"), "Invalid JSON")


async def test_key_without_name_or_scopes_says_what_is_missing(page: Page, site: Site) -> None:
    screen = Screen(page, site)
    await screen.open("/keys")
    await screen.button("New key").click()
    create = screen.dialog.get_by_role("button", name="Create key")
    await create.click()
    name = screen.dialog.get_by_label("Name")
    await sees_error_at(name, "Enter a name")
    await name.fill("ci")
    await screen.dialog.get_by_label("Read:").uncheck()
    await create.click()
    await expect(screen.dialog.get_by_text("Choose at least one scope").first).to_be_visible()
    await expect(screen.dialog.locator("[data-error-group='true']")).to_be_focused()


async def test_wrong_limit_keeps_the_dialog_and_its_input(page: Page, site: Site) -> None:
    site.submit("greet", queue="limited", delay="1h")
    screen = Screen(page, site)
    await screen.open("/queues")
    await screen.button("Limits of limited").click()
    rate = screen.dialog.get_by_label("Rate")
    await rate.fill("100 a minute")
    await screen.dialog.get_by_role("button", name="Save limits").click()
    await sees_error_at(rate, "100/1m")
    await expect(rate).to_have_value("100 a minute")


async def test_refused_reason_keeps_the_dialog_and_its_text(page: Page, site: Site) -> None:
    schedule = site.add_schedule("refused-pause")
    job = site.submit("greet", queue="refused", delay="1h")
    screen = Screen(page, site)
    long = "x" * 1001
    for path, button, verb in (
        (f"/jobs/{job}", "Cancel", "Cancel job"),
        (f"/schedules/{schedule['id']}", "Pause", "Pause"),
        ("/queues", "Pause refused", "Pause"),
    ):
        await screen.open(path)
        await screen.button(button).click()
        reason = screen.dialog.get_by_label("Reason")
        await reason.fill(long)
        act = screen.dialog.get_by_role("button", name=verb, exact=True)
        await act.click()
        await sees_error_at(reason, "characters")
        await expect(reason).to_have_value(long)
        await reason.fill("wrong month")
        await act.click()
        await expect(screen.dialog).to_have_count(0)
    assert site.request("GET", f"/jobs/{job}")["state"] == "cancelled"
    assert site.request("GET", "/schedules/refused-pause")["pause_note"] == "wrong month"


async def test_reschedule_without_a_time_or_priority_says_so(page: Page, site: Site) -> None:
    job = site.submit("greet", delay="1h")
    screen = Screen(page, site)
    await screen.open(f"/jobs/{job}")
    await screen.button("Reschedule").click()
    due = screen.dialog.get_by_label("Due")
    priority = screen.dialog.get_by_label("Priority")
    await priority.fill("7")
    await due.fill("")
    await screen.dialog.get_by_role("button", name="Save").click()
    await sees_error_at(due, "timestamp")
    assert site.request("GET", f"/jobs/{job}")["priority"] == 5


async def test_number_that_is_typed_again_is_that_number(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/jobs/new")
    await editor.task("greet")
    await page.get_by_role("switch", name="Custom retry policy").check()
    for label, digit in (("Max attempts", "3"), ("Multiplier", "4")):
        field = page.get_by_label(label)
        await field.press("Control+a")
        await field.press("Backspace")
        await field.press_sequentially(digit)
        await expect(field).to_have_value(digit)
    await page.get_by_label("Max attempts").fill("")
    await editor.button("Submit job").click()
    await editor.sees_message("submitted")
    retry = site.request("GET", f"/jobs/{page.url.rpartition('/')[2]}")["retry"]
    assert (retry["max_attempts"], retry["multiplier"]) == (5, 4)  # empty: the default


async def test_header_without_a_name_is_not_left_out(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/jobs/new")
    await page.get_by_label("URL").fill("https://agent.example.org/run")
    await editor.button("Add").first.click()
    await page.get_by_label("Headers: value 1", exact=True).fill("billing")
    await editor.button("Submit job").click()
    await expect(page.get_by_text("'' is not a header name").first).to_be_visible()


async def test_form_that_is_sent_again_after_a_lost_answer_acts_once(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    for path, fill, button, route in _forms(editor):
        await page.route(f"**/api/v1{route}", _lose_the_answer, times=1)
        await editor.open(path)
        await fill()
        await editor.button(button).click()
        await expect(page.get_by_text("Try again when it is back").first).to_be_visible()
        await editor.button(button).click()
        await editor.sees_message("created" if "schedule" in route else "submitted")
    once = site.request("GET", "/jobs?queue=once")["items"]
    assert len(once) == 1
    assert len(site.request("GET", "/jobs?target=careful&payload=amount:4711")["items"]) == 1


def _forms(editor: Editor) -> list[tuple[str, Callable[[], Awaitable[Any]], str, str]]:
    page = editor.page

    async def job() -> None:
        await editor.task("greet")
        await page.get_by_role("combobox", name="Queue").fill("once")

    async def schedule() -> None:
        await editor.name.fill("once-only")
        await editor.task("greet")

    async def arguments() -> None:
        await page.get_by_label("Arguments (JSON)").fill('{"amount": 4711}')

    return [
        ("/jobs/new", job, "Submit job", "/jobs"),
        ("/schedules/new", schedule, "Create schedule", "/schedules"),
        ("/tasks/careful", arguments, "Submit job", "/jobs"),
    ]


async def _lose_the_answer(route: Route) -> None:
    if route.request.method != "POST":
        await route.fallback()
        return
    await route.fetch()
    await route.abort()


GROWING = {"first_delay": "7s", "max_delay": "10m", "backoff": "linear"}
LISTED = {"delays": ["10s", "1m"]}
OTHER_PARTS = {"max_attempts": 4, "jitter": True, "max_age": "2h", "max_losses": 2}
MISSED = {"policy": "all", "within": "1h", "max": 3}


@pytest.mark.parametrize("delays", [GROWING, LISTED], ids=["growing", "listed"])
async def test_edit_of_one_part_keeps_the_others_of_a_policy(
    page: Page, site: Site, delays: dict[str, Any]
) -> None:
    name = f"kept-policies-{len(delays)}"
    schedule = site.add_schedule(name, retry=OTHER_PARTS | delays, missed=MISSED)
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await page.get_by_label("Max attempts").fill("6")
    await page.get_by_label("Maximum age of missed fires").fill("2h")
    await editor.save()
    saved = site.request("GET", f"/schedules/{name}")
    assert saved["retry"] == schedule["retry"] | {"max_attempts": 6}
    assert saved["retry"].items() >= delays.items()
    assert saved["missed"] == {**MISSED, "within": "2h"}


async def test_form_shows_every_part_of_a_retry_policy(page: Page, site: Site) -> None:
    schedule = site.add_schedule("shown-policy", retry=OTHER_PARTS | LISTED)
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await expect(page.get_by_label("Random delays")).to_be_checked()
    await expect(page.get_by_label("Max losses")).to_have_value("2")
    await page.get_by_label("Delays", exact=True).fill("5s, 30s,")
    await page.get_by_label("Max age", exact=True).fill("")
    await editor.save()
    expected = schedule["retry"] | {"delays": ["5s", "30s"]}
    del expected["max_age"]
    saved = site.request("GET", "/schedules/shown-policy")["retry"]
    assert {name: part for name, part in saved.items() if part is not None} == expected


async def test_delays_in_place_of_a_first_delay_leave_it_out(page: Page, site: Site) -> None:
    """The server refuses settings that have no effect next to the others."""
    schedule = site.add_schedule("replaced-delays", retry=OTHER_PARTS | GROWING)
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await expect(page.get_by_label("Multiplier")).to_be_disabled()
    await page.get_by_label("Delays", exact=True).fill("5s")
    await expect(page.get_by_label("First delay")).to_be_disabled()
    await editor.save()
    saved = site.request("GET", "/schedules/replaced-delays")["retry"]
    assert saved["delays"] == ["5s"]
    assert saved.items() >= OTHER_PARTS.items()


async def test_delays_without_jitter_are_shown_as_exact_and_stay_so(page: Page, site: Site) -> None:
    schedule = site.add_schedule("exact-delays", retry={"delays": ["10s", "1m"]})
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await expect(page.get_by_label("Random delays")).not_to_be_checked()
    await page.get_by_label("Max attempts").fill("6")
    await editor.save()
    saved = site.request("GET", "/schedules/exact-delays")["retry"]
    assert saved == {**schedule["retry"], "max_attempts": 6}


async def test_all_missed_fires_without_a_maximum_stay_without_one(page: Page, site: Site) -> None:
    schedule = site.add_schedule("all-missed", missed={"policy": "all"})
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await expect(page.get_by_label("Maximum number of missed fires")).to_have_value("")
    await page.get_by_label("Maximum age of missed fires").fill("2h")
    await page.get_by_label("A fire that waits for a limit counts as missed, too").check()
    await editor.save()
    saved = site.request("GET", "/schedules/all-missed")["missed"]
    assert saved == {"policy": "all", "within": "2h", "max": None, "waiting": True}


async def test_parts_of_a_newer_service_are_sent_back(page: Page, site: Site) -> None:
    schedule = site.add_schedule("newer", retry=OTHER_PARTS | LISTED, missed=MISSED)
    extra = {"size": 3}
    stored = {**schedule, **{name: schedule[name] | extra for name in ("when", "target", "retry", "missed")}}
    sent: dict[str, Any] = {}

    async def answer(route: Route) -> None:
        if route.request.method == "GET":
            await route.fulfill(json=stored)
        else:
            sent.update(route.request.post_data_json or {})
            await route.continue_()

    await page.route(f"**/schedules/{schedule['id']}", answer)
    await page.route(f"**/schedules/{schedule['id']}/plan?*", answer)
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await page.get_by_label("View", exact=True).get_by_text("JSON", exact=True).click()
    await to_form(page)
    await page.get_by_label("Cron expression").fill("0 5 1 1 *")
    await page.get_by_label("Max attempts").fill("6")
    await page.get_by_label("Maximum age of missed fires").fill("2h")
    await page.get_by_role("combobox", name="Task").fill("careful")
    await editor.button("Review and save").click()
    await expect(page.get_by_role("alert").first).to_be_visible()
    assert [sent[name]["size"] for name in ("when", "target", "retry", "missed")] == [3, 3, 3, 3]
