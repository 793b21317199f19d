"""What pages show of jobs, tasks, schedules and queues, and what forms send."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Page, expect

from tests.ui.sample_data import wait_until
from tests.ui.screens import Editor, Jobs, Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow


async def sent(page: Page, path: str, screen: Screen[Site], button: str) -> Any:
    """The body of the request that a button sends."""
    async with page.expect_request(lambda request: request.method == "POST" and path in request.url) as made:
        await screen.button(button).click()
    return (await made.value).post_data_json


async def test_submitted_job_sends_only_what_the_user_set(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/jobs/new")
    await editor.task("careful")
    await expect(page.get_by_placeholder("vault, as declared by the task")).to_be_visible()
    await expect(page.get_by_placeholder("5m, as declared by the task")).to_be_visible()
    await page.get_by_label("Payload (JSON)").fill('{"amount": 5}')
    body = await sent(page, "/jobs", editor, "Submit job")
    assert body == {"target": {"type": "task", "name": "careful"}, "payload": {"amount": 5}}
    await Jobs(page, site).state("Succeeded")
    job = site.request("GET", "/jobs?target=careful")["items"][0]
    assert (job["queue"], job["priority"]) == ("vault", 8)
    assert site.request("GET", f"/jobs/{job['id']}")["delivery"] == "at_most_once"


async def test_new_schedule_keeps_what_its_task_declares(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/schedules/new")
    await editor.name.fill("careful-one")
    await editor.task("careful")
    await page.get_by_label("Payload (JSON)").fill('{"amount": 5}')
    await page.get_by_label("Priority").fill("3")
    body = await sent(page, "/schedules", editor, "Create schedule")
    assert {"queue", "delivery", "timeout", "retry"}.isdisjoint(body)
    await editor.sees_message("careful-one created")
    stored = site.request("GET", "/schedules/careful-one")
    assert (stored["queue"], stored["priority"], stored["delivery"]) == ("vault", 3, "at_most_once")
    await expect(Jobs(page, site).fact("Timeout")).to_have_text("5m, as declared by the task")


async def test_schedule_with_a_command_is_edited(page: Page, tmp_path: Path) -> None:
    """Other fields change without its target, and its words can be changed."""
    argv = ["/bin/sh", "-c", 'echo "a  b" &&\nexit 0']
    with Site(tmp_path, "--allow-commands", "yes") as site:
        target = {"type": "command", "argv": argv, "cwd": "/tmp"}
        schedule = site.add_schedule("backup", target=target)
        editor = Editor(page, site)
        await editor.open(f"/schedules/{schedule['id']}?tab=edit")
        words = page.get_by_label("Program and arguments (JSON)")
        await expect(words).to_have_value(json.dumps(argv, separators=(",", ":")))
        await editor.cron.fill("0 5 * * *")
        await editor.save()
        saved = site.request("GET", "/schedules/backup")
        assert (saved["when"]["cron"], saved["target"]) == ("0 5 * * *", target)
        await editor.open(f"/schedules/{schedule['id']}?tab=edit")
        await words.fill('["/bin/true"]')
        await page.get_by_label("Folder").fill("")
        await editor.save()
        saved = site.request("GET", "/schedules/backup")
        assert (saved["version"], saved["target"]) == (3, {"type": "command", "argv": ["/bin/true"]})


async def test_schedule_that_publishes_is_edited(page: Page, tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        target = {"type": "publish", "destination": "orders", "key": "new.de", "report": "required"}
        schedule = site.add_schedule("announce", target=target)
        editor = Editor(page, site)
        await editor.open(f"/schedules/{schedule['id']}")
        await expect(page.get_by_text("orders new.de").first).to_be_visible()
        await editor.open(f"/schedules/{schedule['id']}?tab=edit")
        await expect(page.get_by_label("Destination")).to_have_value("orders")
        await page.get_by_label("Destination").fill("audit")
        await page.get_by_role("textbox", name="Key", exact=True).fill("")
        await editor.save()
        saved = site.request("GET", "/schedules/announce")
        assert saved["target"] == {"type": "publish", "destination": "audit", "report": "required"}


async def test_rows_show_the_size_of_a_large_payload(page: Page, site: Site) -> None:
    site.submit("greet", payload={"name": "x" * 5_000}, queue="large", at="2099-01-01T00:00:00Z")
    jobs = Jobs(page, site)
    await jobs.open("/jobs?queue=large")
    await expect(jobs.table).to_contain_text("payload of 5 KB")


async def test_page_shows_all_times_in_one_zone(page: Page, site: Site) -> None:
    when = {"cron": "30 23 * * MON", "tz": "America/New_York"}
    schedule = site.add_schedule("late-monday", when=when)
    screen = Screen(page, site)
    await screen.open(f"/schedules/{schedule['id']}")
    await expect(page.get_by_role("note", name="Why")).to_contain_text(
        re.compile("05:30(:00)? Europe/Berlin")
    )
    fire = page.get_by_role("listitem").filter(has_text="Mon 23:30 E").first
    await expect(fire).to_contain_text("Tue")
    job = site.submit("greet", delay="1h", queue="one-zone")
    await screen.open(f"/jobs/{job}")
    await expect(page.get_by_role("note", name="Why")).to_contain_text("Europe/Berlin")


async def test_job_shows_the_name_of_its_node_and_the_timeout_of_its_task(page: Page, site: Site) -> None:
    job = site.submit("careful", payload={"amount": 1})
    jobs = Jobs(page, site)
    await jobs.open(f"/jobs/{job}")
    await jobs.state("Succeeded")
    [node] = site.request("GET", "/nodes")["items"]
    await expect(jobs.fact("Node")).to_have_text(node["name"])
    await expect(page.get_by_text(f"on {node['name']}", exact=False).first).to_be_visible()
    await expect(jobs.fact("Timeout")).to_have_text("5m, as declared by the task")


async def test_job_shows_its_output_while_it_runs(page: Page, site: Site) -> None:
    job = site.submit("endless", queue="output")
    jobs = Jobs(page, site)
    await jobs.open(f"/jobs/{job}")
    lines = page.get_by_role("region", name="Lines of output")
    await expect(lines).to_contain_text("counts pages")
    await expect(lines).to_contain_text("warning")
    await expect(page.get_by_role("button", name="Copy output")).to_be_visible()
    await expect(jobs.fact("Trace")).to_contain_text("…")
    site.request("DELETE", f"/jobs/{job}")


async def test_rejected_form_shows_its_error(page: Page, site: Site) -> None:
    editor = Editor(page, site)
    await editor.open("/jobs/new")
    await editor.task("greet")
    await page.get_by_label("Payload (JSON)").fill('{"name": 17}')
    await editor.button("Submit job").click()
    await expect(page.get_by_role("alert")).to_be_in_viewport()  # above the fields, far from the button
    await page.get_by_label("Payload (JSON)").fill('{"name": "Ada"}')
    timeout = page.get_by_role("textbox", name="Timeout")
    await timeout.fill("5 minuts")
    await editor.button("Submit job").click()
    await expect(timeout).to_be_focused()
    await expect(timeout).to_be_in_viewport()


async def test_dead_letters_of_one_cause_are_one_group(page: Page, tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        for number in range(18):
            site.submit("failing", payload={"text": f"order {number} has no address"})
        site.submit("failing", payload={"text": "the printer is out of paper"})
        await wait_until(lambda: sum(group["count"] for group in site.request("GET", "/dead")["items"]) == 19)
        screen = Screen(page, site)
        await screen.open("/dead")
        groups = page.locator(".mantine-Accordion-item")
        await expect(groups).to_have_count(2)
        await expect(groups.first).to_contain_text("18")
        await expect(groups.first).to_contain_text(
            "ValueError: order N has no address (in failing, tasks.py)"
        )
        await page.get_by_label("Error contains").fill("PRINTER")
        await expect(groups).to_have_count(1)
        await page.get_by_label("Error contains").fill("")
        await page.get_by_label("Payload field").fill("text:order 7 has no address")
        await expect(groups).to_have_count(1)
        await expect(groups.first.get_by_text("1", exact=True)).to_be_visible()
        await page.get_by_label("Payload field").fill("")
        await expect(groups).to_have_count(2)
        orders = groups.filter(has_text="order N")
        await orders.get_by_role("button").first.click()
        rows = orders.get_by_role("row")
        await expect(rows.first).to_contain_text('text: "order')
        for position in (0, 1):
            await rows.nth(position).get_by_role("checkbox").check()
        await screen.button("Discard selected").click()
        await screen.dialog.get_by_role("button", name="Discard (2)").click()
        await expect(screen.dialog.get_by_role("status")).to_contain_text("2 of 2")
        assert sum(group["count"] for group in site.request("GET", "/dead")["items"]) == 17


async def test_task_page_shows_the_task_and_submits_a_job(page: Page, site: Site) -> None:
    for text in ("order 1 is lost", "order 2 is lost"):
        site.submit("failing", payload={"text": text})
    screen = Screen(page, site)
    await screen.open("/tasks")
    await page.get_by_role("link", name="failing").click()
    errors = page.get_by_role("region", name="Errors")
    await expect(errors).to_contain_text("ValueError: order N is lost (in failing, tasks.py)")
    await screen.open("/tasks/careful")
    arguments = page.get_by_role("table", name="Arguments")
    await expect(arguments.get_by_role("row").first).to_contain_text("amountintrequired")
    await expect(arguments.get_by_role("row").last).to_contain_text('currencystrdefault "EUR"')
    await expect(Jobs(page, site).fact("Delivery")).to_have_text("at most once")
    await page.get_by_label("Arguments (JSON)").fill('{"amount": 12}')
    await screen.button("Submit job").click()
    await Jobs(page, site).state("Succeeded")
    await screen.open("/tasks/careful")
    jobs = page.get_by_role("table", name="Jobs of careful")
    await expect(jobs.get_by_text("Succeeded").first).to_be_visible()


async def test_schedule_shows_its_runs_over_time_and_compares_two(page: Page, site: Site) -> None:
    schedule = site.add_schedule("often", when={"every": "1s"}, max_runs=3)
    await wait_until(lambda: len(site.request("GET", "/jobs?schedule=often&state=succeeded")["items"]) == 3)
    screen = Screen(page, site)
    await screen.open(f"/schedules/{schedule['id']}")
    await expect(page.get_by_role("img", name="Duration of the latest jobs")).to_be_visible()
    await expect(page.get_by_role("img", name="Lateness of the latest jobs")).to_be_visible()
    checkboxes = page.get_by_role("table", name="Jobs of often").get_by_role("checkbox")
    await checkboxes.nth(0).check()
    await checkboxes.nth(1).check()
    await screen.button("Compare").click()
    runs = page.get_by_role("table", name="Two runs")
    await expect(runs.get_by_role("row").filter(has_text="Result")).to_contain_text("hello")
    await expect(runs.locator("[data-differs=false]").filter(has_text="Payload")).to_be_visible()


async def test_limits_of_a_queue_are_set_and_removed(page: Page, site: Site) -> None:
    site.submit("greet", queue="narrow", delay="1h")
    screen = Screen(page, site)
    await screen.open("/queues")
    row = page.get_by_role("row").filter(has_text="narrow")
    await screen.button("Limits of narrow").click()
    await screen.dialog.get_by_label("Max running").fill("2")
    await screen.dialog.get_by_label("Rate").fill("100/1m")
    await screen.dialog.get_by_role("button", name="Save limits").click()
    await expect(row).to_contain_text("max 2 running, 100/1m")
    await screen.button("Limits of narrow").click()
    await screen.dialog.get_by_label("Max running").fill("")
    await screen.dialog.get_by_label("Rate").fill("")
    await screen.dialog.get_by_role("button", name="Save limits").click()
    await expect(row).to_contain_text("none")


async def test_tab_of_the_browser_names_the_page(page: Page, site: Site) -> None:
    schedule = site.add_schedule("named-tab")
    job = site.submit("greet")
    jobs = Jobs(page, site)
    await jobs.open("/")
    await expect(page).to_have_title("Overview · Duetime")
    await jobs.go(f"/schedules/{schedule['id']}")
    await expect(page).to_have_title("named-tab · Duetime")
    await jobs.go("/tasks/greet")
    await expect(page).to_have_title("greet · Duetime")
    await jobs.go(f"/jobs/{job}")
    await expect(page).to_have_title("greet succeeded · Duetime")
    await jobs.go("/nowhere")
    await expect(page).to_have_title("Duetime")


@pytest.mark.parametrize("name", ["50% off", "100%", "a/b 5%"])
async def test_page_of_a_name_with_a_percent_sign_opens(page: Page, site: Site, name: str) -> None:
    site.add_schedule(name)
    screen = Screen(page, site)
    await screen.open(f"/schedules/{quote(name, safe='')}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text(name)
