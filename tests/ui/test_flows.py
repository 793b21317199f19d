"""The main user flows, one test each, on a real server."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.ui.screens import Editor, Jobs, Schedules, Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow


async def test_new_schedule_is_created_and_its_first_job_appears_live(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/schedules/new")
    await editor.name.fill("first-light")
    await editor.every("2s")
    await expect(editor.preview).to_contain_text("every 2 seconds", ignore_case=True)
    await editor.task("greet")
    await editor.button("Create schedule").click()
    await editor.sees_message("first-light created")
    assert site.request("GET", "/schedules/first-light")["overlap"] == "allow", "the default of the API"
    jobs = page.get_by_role("table", name="Jobs of first-light")
    await expect(jobs.get_by_text("Succeeded").first).to_be_visible()
    site.request("DELETE", "/schedules/first-light")


async def test_editor_shows_cron_in_words_and_ten_fires_while_typing(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/schedules/new")
    await editor.cron.fill("30 2 * * MON-FRI")
    await expect(editor.preview).to_contain_text("at 02:30, Monday to Friday", ignore_case=True)
    await expect(editor.preview.get_by_role("listitem")).to_have_count(10)
    await editor.cron.fill("30 2 28 3 *")  # this time does not exist in Berlin in 2027
    await expect(editor.preview.get_by_text(re.compile("jump|does not exist")).first).to_be_visible()
    await editor.cron.fill("61 * * * *")
    await expect(page.get_by_role("alert")).to_contain_text("61")


async def test_schedule_is_paused_with_a_reason_and_resumed(page: Page, site: Site) -> None:
    schedule = site.add_schedule("to-pause")
    screen = Screen(page, site)
    await screen.open(f"/schedules/{schedule['id']}")
    await screen.button("Pause").click()
    await screen.dialog.get_by_label("Reason").fill("database migration")
    await screen.dialog.get_by_role("button", name="Pause").click()
    await screen.sees_message("to-pause paused")
    await expect(page.get_by_role("note", name="Why")).to_contain_text("database migration")
    assert site.request("GET", "/schedules/to-pause")["pause_note"] == "database migration"
    await screen.button("Resume").click()
    await screen.sees_message("to-pause resumed")
    assert not site.request("GET", "/schedules/to-pause")["paused"]


async def test_edit_shows_its_plan_before_it_is_saved(page: Page, site: Site) -> None:
    schedule = site.add_schedule("to-edit", when={"cron": "0 4 * * *", "tz": "Europe/Berlin"})
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await editor.cron.fill("0 5 * * *")
    await editor.button("Review and save").click()
    await expect(editor.dialog.get_by_role("table", name="Changes")).to_contain_text("0 5 * * *")
    await expect(editor.dialog).to_contain_text("at 05:00")
    await expect(editor.dialog).to_contain_text("moved")
    assert site.request("GET", "/schedules/to-edit")["version"] == 1, "the plan changes nothing"
    await editor.dialog.get_by_role("button", name="Save").click()
    await editor.sees_message("to-edit saved")
    assert site.request("GET", "/schedules/to-edit")["when"]["cron"] == "0 5 * * *"


async def test_old_version_is_restored(page: Page, site: Site) -> None:
    schedule = site.add_schedule("to-restore", payload={"name": "before"})
    site.request("PATCH", "/schedules/to-restore", {"payload": {"name": "after"}})
    screen = Screen(page, site)
    await screen.open(f"/schedules/{schedule['id']}?tab=versions")
    await page.get_by_role("button", name=re.compile("^Version 2")).click()
    await expect(page.get_by_role("table", name="Changes")).to_contain_text("after")
    await page.get_by_role("button", name=re.compile("^Version 1")).click()
    await screen.button("Restore version 1").click()
    await screen.dialog.get_by_role("button", name="Restore").click()
    await screen.sees_message("Version 1 restored")
    assert site.request("GET", "/schedules/to-restore")["payload"] == {"name": "before"}


async def test_editor_reports_a_concurrent_edit_and_keeps_it(page: Page, site: Site) -> None:
    schedule = site.add_schedule("contested")
    editor = Editor(page, site)
    await editor.open(f"/schedules/{schedule['id']}?tab=edit")
    await editor.cron.fill("0 5 * * *")
    site.request("PATCH", "/schedules/contested", {"queue": "elsewhere"})
    await expect(page.get_by_text("This schedule has changed")).to_be_visible()
    await expect(editor.button("Review and save")).to_be_disabled()
    await editor.button("Keep my changes").click()
    await editor.save()
    saved = site.request("GET", "/schedules/contested")
    assert (saved["when"]["cron"], saved["queue"]) == ("0 5 * * *", "elsewhere")


async def test_editor_input_survives_a_reload(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/schedules/new")
    await editor.name.fill("half-written")
    await editor.cron.fill("5 4 * * *")
    await page.reload()
    await expect(editor.name).to_have_value("half-written")
    await expect(editor.cron).to_have_value("5 4 * * *")
    await editor.button("Discard").click()
    await expect(editor.name).to_have_value("")


async def test_schedule_is_created_from_json(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/schedules/new")
    await editor.name.fill("as-json")
    view = page.get_by_label("View", exact=True)
    await view.get_by_text("JSON", exact=True).click()
    text = page.get_by_role("textbox", name="JSON")
    await expect(text).to_have_value(re.compile('"name": "as-json"'))
    await text.fill(
        '{"name": "as-json", "when": {"every": "1h"}, "target": {"type": "task", "name": "greet"}}'
    )
    await expect(editor.preview).to_contain_text("every hour", ignore_case=True)
    await view.get_by_text("Form", exact=True).click()
    await expect(page.get_by_role("textbox", name="Interval")).to_have_value("1h")
    await editor.button("Create schedule").click()
    await editor.sees_message("as-json created")


async def test_test_call_shows_the_response(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/schedules/new")
    await page.get_by_label("URL").fill(f"{site.address}/healthz")
    await page.get_by_role("combobox", name="Method").click()
    await page.get_by_role("option", name="GET", exact=True).click()
    await editor.button("Test call").click()
    await expect(page.get_by_role("region", name="Response")).to_contain_text("status")


async def test_submitted_job_shows_its_result(page: Page, site: Site) -> None:
    jobs = Jobs(page, site)
    await jobs.open("/jobs/new")
    await Editor(page, site).task("greet")
    await page.get_by_label("Payload (JSON)").fill('{"name": "Ada"}')
    await jobs.button("Submit job").click()
    await jobs.state("Succeeded")
    await page.get_by_role("tab", name="Result").click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text('"hello": "Ada"')


async def test_running_job_shows_progress_and_is_cancelled(page: Page, site: Site) -> None:
    job_id = site.submit("endless")
    jobs = Jobs(page, site)
    await jobs.open(f"/jobs/{job_id}")
    await jobs.state("Running")
    await expect(page.get_by_text("3 of 10", exact=True)).to_be_visible()
    await expect(page.get_by_text("Attempt 1 claimed")).to_be_visible()
    await expect(page.get_by_text("Attempt 1 started")).to_be_visible()
    await expect(jobs.fact("Started").locator("time")).to_be_visible()
    await jobs.button("Cancel").click()
    await jobs.dialog.get_by_label("Reason").fill("wrong month")
    async with page.expect_request(re.compile("reason=wrong")):
        await jobs.dialog.get_by_role("button", name="Cancel job").click()
    await jobs.state("Cancelled")
    assert site.request("GET", f"/jobs/{job_id}")["state"] == "cancelled"


async def test_job_shows_claim_and_start_separately(page: Page, site: Site) -> None:
    job_id = site.submit("greet", delay="2s")  # claimed early, it waits on its node
    jobs = Jobs(page, site)
    await jobs.open(f"/jobs/{job_id}")
    await jobs.state("Succeeded")
    job = site.request("GET", f"/jobs/{job_id}")
    for name in ("claimed", "started"):
        step = page.locator(".mantine-Timeline-item").filter(has_text=f"Attempt 1 {name}")
        await expect(step.locator("time")).to_have_attribute("datetime", job[f"{name}_at"])
        await expect(jobs.fact(name.title()).locator("time")).to_have_attribute("datetime", job[f"{name}_at"])


async def test_external_job_shows_when_its_report_is_due(page: Page, site: Site) -> None:
    target = {"type": "http", "url": f"{site.address}/demo/echo/status/202", "async": True, "timeout": "1h"}
    job_id = site.request("POST", "/jobs", {"target": target, "queue": "elsewhere"})["id"]
    jobs = Jobs(page, site)
    await jobs.open("/jobs?queue=elsewhere")
    await expect(jobs.table.get_by_role("cell").filter(has_text="report due in")).to_be_visible()
    await jobs.open(f"/jobs/{job_id}")
    await expect(jobs.fact("Report due").locator("time")).to_have_attribute(
        "datetime", site.request("GET", f"/jobs/{job_id}")["due_at"]
    )
    await expect(jobs.fact("Due")).to_have_count(0)
    site.request("DELETE", f"/jobs/{job_id}")


async def test_finished_external_job_is_listed_by_its_fire_time(page: Page, site: Site) -> None:
    target = {"type": "http", "url": f"{site.address}/demo/echo/later/1", "async": True, "timeout": "1h"}
    job_id = site.request("POST", "/jobs", {"target": target, "queue": "reported"})["id"]
    jobs = Jobs(page, site)
    await jobs.open(f"/jobs/{job_id}")
    await jobs.state("Succeeded")
    job = site.request("GET", f"/jobs/{job_id}")
    assert job["due_at"] > job["finished_at"]
    await expect(jobs.fact("Report due").locator("time")).to_have_attribute("datetime", job["due_at"])
    await jobs.open("/jobs?queue=reported")
    await expect(jobs.table.locator("time").first).to_have_attribute("datetime", job["fire_time"])


async def test_pending_job_is_run_now(page: Page, site: Site) -> None:
    job_id = site.submit("greet", delay="1h")
    jobs = Jobs(page, site)
    await jobs.open(f"/jobs/{job_id}")
    await jobs.state("Pending")
    await jobs.button("Run now").click()
    await jobs.state("Succeeded")


async def test_pending_job_is_rescheduled(page: Page, site: Site) -> None:
    job_id = site.submit("greet", delay="1h")
    jobs = Jobs(page, site)
    await jobs.open(f"/jobs/{job_id}")
    await jobs.button("Reschedule").click()
    await jobs.dialog.get_by_label("Due (Europe/Berlin)").fill("2030-07-01T12:00:00")
    await jobs.dialog.get_by_role("button", name="Save").click()
    await jobs.sees_message("Job rescheduled")
    assert site.request("GET", f"/jobs/{job_id}")["due_at"] == "2030-07-01T10:00:00Z"


async def test_dead_letter_is_retried_with_a_changed_payload(page: Page, site: Site) -> None:
    job_id = site.submit("fragile", payload={"number": -1})
    screen = Jobs(page, site)
    await screen.open("/dead")
    await page.get_by_role("button", name=re.compile("the number is negative")).click()
    await page.get_by_role("button", name="Edit and retry").first.click()
    payload = screen.dialog.get_by_label("Payload (JSON)")
    await expect(payload).to_have_value(re.compile("-1"))
    await payload.fill('{"number": 7}')
    await screen.dialog.get_by_role("button", name="Retry with this payload").click()
    await screen.state("Succeeded")
    assert site.request("GET", f"/jobs/{job_id}")["disposition"] == "retried"


async def test_skipped_job_is_run_again(page: Page, site: Site) -> None:
    job_id = site.submit("greet", payload={"name": "ann"}, at="2020-01-01T00:00:00Z", expires="1s")
    assert site.request("GET", f"/jobs/{job_id}?wait=20s")["state"] == "skipped"
    screen = Jobs(page, site)
    await screen.open(f"/jobs/{job_id}")
    await expect(page.get_by_role("button", name="Discard")).to_have_count(0)
    await page.get_by_role("button", name="Retry").click()
    await screen.dialog.get_by_role("button", name="Retry").click()
    await screen.state("Succeeded")
    assert site.request("GET", f"/jobs/{job_id}")["disposition"] == "retried"


async def test_filters_are_kept_in_the_url(page: Page, site: Site) -> None:
    for name in ("harvest-apples", "harvest-pears", "sowing"):
        site.add_schedule(name, owner="ada" if name.endswith("apples") else "ben")
    schedules = Schedules(page, site)
    await schedules.open("/schedules")
    await schedules.search.fill("harvest")
    await expect(schedules.row("sowing")).to_have_count(0)
    await expect(page).to_have_url(re.compile("text=harvest"))
    await schedules.button("Filters").click()
    await page.get_by_role("textbox", name="Owner").fill("ada")
    await expect(schedules.row("harvest-pears")).to_have_count(0)
    url = page.url
    await page.goto("about:blank")
    await page.goto(url)
    await expect(schedules.row("harvest-apples")).to_be_visible()
    await expect(schedules.row("harvest-pears")).to_have_count(0)
    await expect(schedules.search).to_have_value("harvest")


async def test_all_matches_cannot_be_selected_with_a_node_filter(page: Page, site: Site) -> None:
    """Bulk actions have no node filter, so they would reach more jobs than the list shows."""
    site.submit("greet", queue="by-node")
    node = site.request("GET", "/nodes")["items"][0]["name"]
    jobs = Jobs(page, site)
    await jobs.open("/jobs?queue=by-node")
    await expect(jobs.table.get_by_text("Succeeded")).to_be_visible()
    select_all = page.get_by_label("Select all matches")
    await expect(select_all).to_be_enabled()
    await jobs.open(f"/jobs?queue=by-node&worker={node}")
    await expect(jobs.table.get_by_text("Succeeded")).to_be_visible()
    await expect(select_all).to_be_disabled()


async def test_paused_page_does_not_update(page: Page, site: Site) -> None:
    jobs = Jobs(page, site)
    await jobs.open("/jobs?queue=paused-page")
    await expect(page.get_by_role("button", name=re.compile("^Live"))).to_be_visible()
    await page.keyboard.press("Shift+P")
    await expect(page.get_by_role("button", name=re.compile("^Paused"))).to_be_visible()
    site.submit("greet", queue="paused-page")
    other_page = await page.context.new_page()
    await other_page.goto(f"{site.ui}/jobs?queue=paused-page")
    await expect(other_page.get_by_role("table", name="Jobs").get_by_text("Succeeded")).to_be_visible()
    await expect(page.get_by_text("No matching jobs")).to_be_visible()
    await page.keyboard.press("Shift+P")
    await expect(jobs.table.get_by_text("Succeeded")).to_be_visible()


async def test_command_palette_finds_tasks_and_jobs_by_part_of_their_id(page: Page, site: Site) -> None:
    job_id = site.submit("greet")
    screen = Screen(page, site)
    for text, found, address in (
        ("gree", "greet", r"/tasks/greet"),
        (f"…{job_id[-8:]}", f"Job {job_id}", job_id),
        (job_id[:23], f"Job {job_id}", job_id),
    ):
        await screen.open("/")
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
        await page.keyboard.type(text)
        await page.get_by_role("option", name=re.compile(found)).click()
        await expect(page).to_have_url(re.compile(address))


async def test_enter_before_anything_is_found_opens_the_first_result(page: Page, site: Site) -> None:
    schedule = site.add_schedule("early-enter")
    screen = Screen(page, site)
    answers = asyncio.Event()

    async def answer_later(route: Route) -> None:
        await answers.wait()
        await route.continue_()

    await page.route(re.compile(r"/schedules\?text="), answer_later)
    await screen.open("/")
    await page.keyboard.press("Control+k")
    search = page.get_by_role("combobox", name="Search and commands")
    await expect(search).to_be_focused()
    await page.keyboard.type("nothing-like-it")
    await page.keyboard.press("Enter")
    await search.fill("early-e")
    await page.keyboard.press("Enter")
    answers.set()
    await expect(page).to_have_url(re.compile(schedule["id"]))
    await expect(screen.dialog).to_have_count(0)


async def test_results_stay_while_the_text_grows_if_they_still_match(page: Page, site: Site) -> None:
    for name in ("stay-here", "stay-away"):
        site.add_schedule(name)
    screen = Screen(page, site)
    asked, answers = asyncio.Event(), asyncio.Event()

    async def answer_later(route: Route) -> None:
        asked.set()
        await answers.wait()
        await route.continue_()

    await screen.open("/")
    await page.keyboard.press("Control+k")
    search = page.get_by_role("combobox", name="Search and commands")
    await expect(search).to_be_focused()
    await page.keyboard.type("stay-")
    here, away = (page.get_by_role("option", name=re.compile(name)) for name in ("stay-here", "stay-away"))
    await expect(here).to_be_visible()
    await expect(away).to_be_visible()
    await page.route(re.compile(r"/schedules\?text="), answer_later)
    await page.keyboard.type("h")
    await asked.wait()
    await expect(away).to_have_count(0)
    await expect(here).to_be_visible()
    answers.set()


async def test_command_palette_finds_schedules_and_shortcuts_open_pages(page: Page, site: Site) -> None:
    schedule = site.add_schedule("palette-target")
    screen = Screen(page, site)
    await screen.open("/")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
    await page.keyboard.type("palette-t")
    await expect(page.get_by_role("option", name=re.compile("palette-target"))).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(schedule["id"]))
    await expect(screen.dialog).to_have_count(0)
    for key, heading in (
        ("j", "Jobs"),
        ("c", "Calendar"),
        ("d", "Dead letters"),
        ("q", "Queues"),
        ("n", "Nodes"),
    ):
        await page.keyboard.press("g")
        await page.keyboard.press(key)
        await expect(page.get_by_role("heading", level=1)).to_have_text(heading)
