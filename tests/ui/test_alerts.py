"""The page Alerts: channels and rules are edited, and what is wrong is snoozed, muted and closed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import pytest
from playwright.async_api import Locator, Page, expect

from tests.ui.screens import Screen
from tests.ui.site import Site
from tests.ui.test_accessibility import serious_problems

pytestmark = pytest.mark.slow

HOOK = "https://hooks.example.org/duetime"
DEADLINE = 60.0  # seconds
CONDITIONS = {
    "Silent": ("silent", "any schedule has no success 10m after its fire"),
    "Late": ("late", "a job has not started 5m after it was due"),
    "Failing": ("failing", "the last 3 jobs of any schedule failed"),
    "Dead letters": ("dead_letters", "a schedule or target has 1 open dead letter"),
    "Queue lag": ("queue_lag", "a job of any queue is due for more than 10m"),
    "No leader": ("no_leader", "no node has led for more than 1m"),
    "Node lost": ("node_lost", "a node died and was not replaced within 1m"),
    "Clock skew": ("clock_skew", "the clock of a node differs from the store's by more than 5s"),
}


class Kind(NamedTuple):
    """A type of channel: what a user enters, and what the API has then."""

    label: str
    fields: dict[str, str]
    settings: dict[str, Any]
    secrets: list[str]


SIGNING_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KINDS = {
    "webhook": Kind(
        "Webhook", {"URL": HOOK, "Signing secret": SIGNING_SECRET}, {"url": HOOK}, ["signing_secret"]
    ),
    "slack": Kind("Slack", {"Webhook URL": HOOK}, {}, ["url"]),
    "pagerduty": Kind(
        "PagerDuty",
        {"Integration key": "s3cret"},
        {"url": "https://events.pagerduty.com/v2/enqueue"},
        ["routing_key"],
    ),
    "alertmanager": Kind(
        "Alertmanager",
        {"URL": HOOK, "Authorization header": "Bearer s3cret"},
        {"url": HOOK},
        ["authorization"],
    ),
    "email": Kind(
        "E-mail",
        {
            "SMTP host": "mail.example.org",
            "Port": "2525",
            "From": "duetime@example.org",
            "To": "ops@example.org, dev@example.org",
            "User name": "duetime",
            "Password": "s3cret",
        },
        {
            "host": "mail.example.org",
            "port": 2525,
            "tls": "starttls",
            "sender": "duetime@example.org",
            "to": ["ops@example.org", "dev@example.org"],
            "username": "duetime",
        },
        ["password"],
    ),
}


class Alerts(Screen[Site]):
    def section(self, name: str) -> Locator:
        return self.page.get_by_role("table", name=name, exact=True)

    def row(self, section: str, text: str) -> Locator:
        return self.section(section).get_by_role("row").filter(has_text=text)

    def field(self, label: str) -> Locator:
        return self.dialog.get_by_label(re.compile(f"^{re.escape(label)}( \\*)?$"))

    async def fill(self, fields: dict[str, str]) -> None:
        for label, text in fields.items():
            await self.field(label).fill(text)

    async def submit(self, verb: str) -> None:
        await self.dialog.get_by_role("button", name=verb, exact=True).click()

    async def save(self, verb: str) -> None:
        """The dialog closes when the server has accepted it."""
        await self.submit(verb)
        await expect(self.dialog).to_have_count(0)

    async def sees_error_at(self, label: str, text: str) -> None:
        """At the field, which has the focus."""
        field = self.field(label)
        await expect(field).to_be_focused()
        await expect(field).to_have_attribute("aria-invalid", "true")
        await expect(field).to_have_accessible_description(re.compile(re.escape(text)))


@pytest.fixture(scope="module")
def alert_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service of its own, because with a channel a service watches everything."""
    with Site(tmp_path_factory.mktemp("alert_site"), "--alert-interval", "1s") as site:
        yield site


@pytest.fixture
async def alerts(page: Page, alert_site: Site) -> Alerts:
    for noun in ("channels", "rules"):
        for one in alert_site.request("GET", f"/alerts/{noun}")["items"]:
            if one["version"] > 0:
                alert_site.request("DELETE", f"/alerts/{noun}/{quote(one['name'])}")
    for mute in alert_site.request("GET", "/alerts/mutes")["items"]:
        alert_site.request("DELETE", f"/alerts/mutes/{mute['id']}")
    screen = Alerts(page, alert_site)
    await screen.open("/alerts")
    return screen


def one_named(site: Site, noun: str, name: str) -> dict[str, Any]:
    items = site.request("GET", f"/alerts/{noun}")["items"]
    found: dict[str, Any] = next(item for item in items if item["name"] == name)
    return found


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.1)


def wrong(site: Site) -> set[str]:
    return {alert["condition"] for alert in site.request("GET", "/alerts")["items"]}


async def add_everything(site: Site) -> None:
    """Channels, rules, a mute, and alerts that are open and snoozed."""
    accepting = f"{site.address}/demo/echo/status/200"
    quiet = [{"start": "22:00", "end": "07:00", "tz": "Europe/Berlin", "days": ["mon", "fri"]}]
    site.request("PUT", "/alerts/channels/ops", {"target": {"type": "webhook", "url": accepting}})
    site.request(
        "PUT", "/alerts/channels/chat", {"target": {"type": "slack", "url": accepting}, "quiet": quiet}
    )
    silent = {"condition": "silent", "schedule": "nightly-*", "after": "2h", "channels": ["ops"]}
    site.request("PUT", "/alerts/rules/nightly", silent)
    site.request("PUT", "/alerts/rules/noise", {**silent, "schedule": "test-*", "enabled": False})
    site.request("PUT", "/alerts/rules/any%20failure", {"condition": "failing", "count": 1})
    site.request("POST", "/alerts/mutes", {"for": "2h", "subject": "report-*", "note": "new database"})
    target = {"type": "task", "name": "failing"}
    site.add_schedule("broken", target=target, payload={"text": "the disk is full"})
    for _ in range(3):
        site.request("POST", "/schedules/broken/trigger")
    await wait_for(lambda: {"dead_letters", "failing"} <= wrong(site))


@pytest.mark.parametrize("kind", KINDS)
async def test_channel_is_created_edited_without_its_secrets_and_removed(alerts: Alerts, kind: str) -> None:
    site, page, (label, fields, settings, secrets) = alerts.site, alerts.page, KINDS[kind]
    await alerts.button("New channel").click()
    await alerts.field("Name").fill("ops")
    await alerts.field("Type").select_option(label)
    await alerts.fill(fields)
    await alerts.save("Create channel")
    made = one_named(site, "channels", "ops")
    assert (made["type"], made["settings"], made["secrets"]) == (kind, settings, secrets)
    await expect(alerts.row("Channels", "ops")).to_contain_text(label)
    assert "s3cret" not in await page.content()

    await alerts.button("Edit channel ops").click()
    await expect(alerts.dialog).to_be_visible()
    kept = alerts.dialog.get_by_placeholder("leave empty to keep it")
    await expect(kept).to_have_count(len(secrets))
    await expect(kept.first).to_have_value("")
    await alerts.button("Add quiet time").click()
    quiet = alerts.dialog.get_by_role("group", name="Quiet time 1")
    await quiet.get_by_label("From").fill("21:30")
    await quiet.get_by_label("To").fill("06:00")
    await quiet.get_by_label("Sun").uncheck()
    await alerts.save("Save channel")
    edited = one_named(site, "channels", "ops")
    days = ["mon", "tue", "wed", "thu", "fri", "sat"]
    assert edited["quiet"] == [{"start": "21:30", "end": "06:00", "tz": "Europe/Berlin", "days": days}]
    assert (edited["settings"], edited["secrets"]) == (settings, secrets)
    assert edited["version"] != made["version"]
    await expect(alerts.row("Channels", "ops")).to_contain_text(re.compile("21:30.06:00 Europe/Berlin"))

    await alerts.button("Remove channel ops").click()
    await expect(alerts.dialog).to_contain_text("It is the last channel")
    await alerts.submit("Remove")
    await alerts.sees_message("ops removed")
    assert site.request("GET", "/alerts/channels")["items"] == []
    await expect(page.get_by_role("heading", name="No channel yet")).to_be_visible()


async def test_test_notice_says_how_it_was_received_and_an_edit_keeps_the_secret(alerts: Alerts) -> None:
    site = alerts.site
    for name, status in (("good", 200), ("bad", 400)):
        target = {"type": "slack", "url": f"{site.address}/demo/echo/status/{status}"}
        site.request("PUT", f"/alerts/channels/{name}", {"target": target})
    await alerts.page.reload()
    for name, outcome in (
        ("good", "good accepted the test notice"),
        ("bad", "bad did not accept it: HTTP 400"),
    ):
        await alerts.button(f"Edit channel {name}").click()
        await alerts.save("Save channel")
        await alerts.button(f"Test {name}").click()
        await alerts.sees_message(outcome)
    await alerts.page.get_by_role("link", name="Delivery").click()
    await expect(alerts.page).to_have_url(re.compile("/jobs/"))


@pytest.mark.parametrize("kind", ["webhook", "alertmanager"])
async def test_optional_secret_is_removed_and_a_needed_one_cannot_be(alerts: Alerts, kind: str) -> None:
    site, secret = alerts.site, {"webhook": "Signing secret", "alertmanager": "Authorization header"}[kind]
    target = {"type": kind, "url": HOOK}
    field = {"webhook": "signing_secret", "alertmanager": "authorization"}[kind]
    site.request("PUT", "/alerts/channels/ops", {"target": target | {field: SIGNING_SECRET}})
    site.request("PUT", "/alerts/channels/chat", {"target": {"type": "slack", "url": HOOK}})
    await alerts.page.reload()
    await alerts.button("Edit channel ops").click()
    remove = alerts.dialog.get_by_label(f"Remove the stored {secret.lower()}")
    await remove.check()
    await expect(alerts.field(secret)).to_have_attribute("placeholder", "it will be removed")
    await expect(alerts.field(secret)).not_to_be_editable()
    await remove.uncheck()
    await alerts.save("Save channel")
    assert one_named(site, "channels", "ops")["secrets"] == [field]
    await alerts.button("Edit channel ops").click()
    await remove.check()
    await alerts.save("Save channel")
    assert one_named(site, "channels", "ops")["secrets"] == []
    for channel in ("ops", "chat"):  # nothing is stored; the channel needs it
        await alerts.button(f"Edit channel {channel}").click()
        await expect(alerts.dialog).to_be_visible()
        await expect(alerts.dialog.get_by_label("Remove the stored")).to_have_count(0)
        await alerts.page.keyboard.press("Escape")
        await expect(alerts.dialog).to_have_count(0)


async def test_channel_is_switched_off_and_another_edit_is_not_lost(alerts: Alerts) -> None:
    site = alerts.site
    site.request("PUT", "/alerts/channels/ops", {"target": {"type": "webhook", "url": HOOK}})
    await alerts.page.reload()
    await alerts.page.get_by_role("switch", name="Channel ops").click(force=True)
    await alerts.sees_message("ops is off")
    assert not one_named(site, "channels", "ops")["enabled"]
    await alerts.button("Edit channel ops").click()
    await expect(alerts.field("URL")).to_have_value(HOOK)
    site.request("PUT", "/alerts/channels/ops", {"target": {"type": "webhook", "url": f"{HOOK}/other"}})
    await alerts.submit("Save channel")
    await expect(alerts.dialog.get_by_role("alert")).to_contain_text("has been changed in between")
    assert one_named(site, "channels", "ops")["settings"]["url"] == f"{HOOK}/other"


async def test_wrong_channel_shows_the_error_at_its_field(alerts: Alerts) -> None:
    alerts.site.request("PUT", "/alerts/channels/taken", {"target": {"type": "webhook", "url": HOOK}})
    await alerts.page.reload()
    await alerts.button("New channel").click()
    await alerts.submit("Create channel")
    await alerts.sees_error_at("Name", "Enter a name for the channel")
    mail = {"SMTP host": "mail.example.org", "From": "a@example.org", "To": "ops@example.org"}
    for name, kind, fields, label, error in (
        ("taken", "Webhook", {"URL": HOOK}, "Name", "There is already a channel taken"),
        ("@ops", "Webhook", {"URL": HOOK}, "Name", "is reserved"),
        ("ops", "Webhook", {"URL": "ftp://files"}, "URL", "must begin with https:// or http://"),
        ("ops", "Webhook", {"URL": HOOK, "Signing secret": "short"}, "Signing secret", "whsec_"),
        ("ops", "Slack", {}, "Webhook URL", "is missing"),
        ("ops", "PagerDuty", {}, "Integration key", "is missing"),
        ("ops", "Alertmanager", {"URL": "nowhere"}, "URL", "must begin with"),
        ("ops", "E-mail", {**mail, "Port": "many"}, "Port", "must be a port"),
        ("ops", "E-mail", {**mail, "To": "ops"}, "To", "is not an e-mail address"),
        ("ops", "E-mail", {**mail, "Password": "x"}, "Password", "needs a username"),
        ("ops", "E-mail", {**mail, "User name": "x"}, "Password", "is missing"),
    ):
        await alerts.field("Name").fill(name)
        await alerts.field("Type").select_option("Slack")  # empties the fields
        await alerts.field("Type").select_option("PagerDuty")
        await alerts.field("Type").select_option(kind)
        await alerts.fill(fields)
        await alerts.submit("Create channel")
        await alerts.sees_error_at(label, error)
    await alerts.button("Add quiet time").click()
    await alerts.field("Password").fill("x")
    begins = alerts.dialog.get_by_role("group", name="Quiet time 1").get_by_label("From")
    await begins.fill("")
    await alerts.submit("Create channel")
    await expect(begins).to_have_attribute("aria-invalid", "true")
    assert [one["name"] for one in alerts.site.request("GET", "/alerts/channels")["items"]] == ["taken"]


async def test_every_condition_says_what_will_happen_with_the_defaults_of_the_api(alerts: Alerts) -> None:
    picture = alerts.dialog.get_by_role("note", name="What will happen")
    for condition, sentence in CONDITIONS.values():
        if condition != "late":  # there is no built-in rule
            await expect(alerts.row("Rules", condition)).to_contain_text(sentence)
    await alerts.button("New rule").click()
    for label, (_, sentence) in CONDITIONS.items():
        await alerts.field("Condition").select_option(label)
        await expect(picture).to_contain_text(f"Tells all channels when {sentence}")
    for label in ("Late", "Failing", "Clock skew"):
        await alerts.field("Name").fill(f"my {label}")
        await alerts.field("Condition").select_option(label)
        await alerts.save("Create rule")
        condition, sentence = CONDITIONS[label]
        await expect(alerts.row("Rules", f"my {label}")).to_contain_text(sentence)
        assert one_named(alerts.site, "rules", f"my {label}")["condition"] == condition
        await alerts.button("New rule").click()


async def test_rule_of_a_schedule_shows_when_it_is_told_and_is_edited_and_removed(alerts: Alerts) -> None:
    site, page = alerts.site, alerts.page
    for name in ("ops", "chat"):
        site.request("PUT", f"/alerts/channels/{name}", {"target": {"type": "webhook", "url": HOOK}})
    site.add_schedule("yearly", when={"cron": "30 2 1 7 *", "tz": "Europe/Berlin"})
    await page.reload()
    await alerts.button("New rule").click()
    picture = alerts.dialog.get_by_role("note", name="What will happen")
    await alerts.fill({"Name": "my year", "Schedule": "year"})
    await page.get_by_role("option", name="yearly").click()
    await alerts.field("Without a success for").fill("90m")
    await expect(picture).to_contain_text(re.compile("fires next at .*1 Jul 2027 02:30:00 CEST"))
    await expect(picture).to_contain_text(re.compile("it is told at .*1 Jul 2027 04:00:00 CEST"))
    await alerts.field("Channels").click()
    await page.get_by_role("option", name="chat").click()
    await expect(picture).to_contain_text(
        "Tells chat when schedule yearly has no success 90m after its fire."
    )
    await page.keyboard.press("Escape")  # closes the list, not the dialog
    await alerts.dialog.get_by_text("Info", exact=True).click()
    await alerts.save("Create rule")
    made = one_named(site, "rules", "my year")
    assert (made["schedule"], made["after"], made["channels"]) == ("yearly", "1h30m", ["chat"])
    assert made["severity"] == "info"

    await alerts.button("Edit rule my year").click()
    await alerts.field("Condition").select_option("Failing")
    await alerts.dialog.get_by_text("A share of all").click()
    await alerts.fill({"Failed jobs": "12.5", "Within": "2h"})
    await expect(picture).to_contain_text("12.5 % of the jobs of schedule yearly failed within 2h")
    await alerts.save("Save rule")
    edited = one_named(site, "rules", "my year")
    assert (edited["condition"], edited["ratio"], edited["window"]) == ("failing", 0.125, "2h")

    await page.get_by_role("switch", name="Rule my year").click(force=True)
    await alerts.sees_message("my year is off")
    off = one_named(site, "rules", "my year")
    assert off == {**edited, "enabled": False, "version": off["version"]}
    await alerts.button("Remove rule my year").click()
    await alerts.submit("Remove")
    await alerts.sees_message("my year removed")
    await expect(alerts.row("Rules", "my year")).to_have_count(0)


async def test_built_in_rule_is_replaced_and_reset(alerts: Alerts) -> None:
    await expect(alerts.button("Reset rule queue_lag")).to_have_count(0)
    await alerts.button("Edit rule queue_lag").click()
    await alerts.fill({"Queue": "mail", "A job waits for": "45m"})
    await alerts.page.keyboard.press("Enter")
    await expect(alerts.dialog).to_have_count(0)
    await expect(alerts.row("Rules", "queue_lag")).to_contain_text("replaces the built-in rule")
    assert one_named(alerts.site, "rules", "queue_lag")["after"] == "45m"
    await alerts.button("Reset rule queue_lag").click()
    await alerts.submit("Reset")
    await alerts.sees_message("queue_lag reset")
    assert one_named(alerts.site, "rules", "queue_lag")["after"] == "10m"


async def test_wrong_rule_shows_the_error_at_its_field(alerts: Alerts) -> None:
    alerts.site.request("PUT", "/alerts/rules/taken", {"condition": "silent"})
    await alerts.page.reload()
    await alerts.button("New rule").click()
    for name, condition, fields, label, error in (
        ("taken", "Silent", {}, "Name", "There is already a rule taken"),
        ("x", "Silent", {"Without a success for": "soon"}, "Without a success for", "is not a duration"),
        ("x", "Failing", {"Dead letters in a row": "0"}, "Dead letters in a row", "greater than or equal"),
        ("x", "Dead letters", {"Open dead letters": "5000"}, "Open dead letters", "less than or equal"),
        ("x", "Clock skew", {"A difference of": "0s"}, "A difference of", "longer than zero"),
    ):
        await alerts.field("Name").fill(name)
        await alerts.field("Condition").select_option(condition)
        await alerts.fill(fields)
        await alerts.submit("Create rule")
        await alerts.sees_error_at(label, error)
    await alerts.field("Condition").select_option("Failing")
    await alerts.dialog.get_by_text("A share of all").click()
    for fields, label, error in (
        ({"Failed jobs": "200"}, "Failed jobs", "less than or equal to 1"),
        ({"Failed jobs": "20", "Queue": "mail-*"}, "Failed jobs", "a pattern is not counted"),
        ({"Queue": "mail", "Within": "x"}, "Within", "is not a duration"),
    ):
        await alerts.fill(fields)
        await alerts.submit("Create rule")
        await alerts.sees_error_at(label, error)


async def test_alert_is_snoozed_and_closed_and_a_maintenance_window_is_planned_and_ended(
    alerts: Alerts,
) -> None:
    site, page = alerts.site, alerts.page
    site.request("PUT", "/alerts/channels/ops", {"target": {"type": "webhook", "url": HOOK}})
    site.request("PUT", "/alerts/rules/dead_letters", {"condition": "dead_letters", "enabled": False})
    site.request("PUT", "/alerts/rules/failing", {"condition": "failing", "count": 1})
    site.add_schedule("fails", target={"type": "task", "name": "failing"}, payload={"text": "no space"})
    site.request("POST", "/schedules/fails/trigger")
    await wait_for(lambda: "failing" in wrong(site))
    await page.reload()
    await alerts.button("Snooze fails").click()
    await alerts.fill({"For": "soon"})
    await alerts.submit("Snooze")
    await alerts.sees_error_at("For", "is not a duration")
    await alerts.fill({"For": "4h", "Reason": "disk ordered"})
    await alerts.submit("Snooze")
    await expect(alerts.row("Muted", "fails")).to_contain_text("disk ordered")
    await expect(alerts.row("Open", "fails")).to_contain_text("snoozed until")
    [mute] = site.request("GET", "/alerts/mutes")["items"]
    assert (mute["subject"], mute["condition"]) == ("fails", "failing")

    await alerts.button("Maintenance window").click()
    await alerts.fill({"For": "90m", "Start (Europe/Berlin)": "2037-07-01T12:00", "Subject": "report of *"})
    await alerts.field("Condition").select_option("Silent")
    await expect(alerts.dialog).to_contain_text("Ends at Wed 1 Jul 2037 13:30:00 CEST")
    await alerts.submit("Plan")
    await expect(alerts.row("Muted", "report of *")).to_contain_text("Wed 1 Jul 2037 12:00:00 CEST")
    planned = next(one for one in site.request("GET", "/alerts/mutes")["items"] if one["id"] != mute["id"])
    assert (planned["start"], planned["until"]) == ("2037-07-01T10:00:00Z", "2037-07-01T11:30:00Z")
    assert planned["condition"] == "silent"
    await alerts.button("End mute of report of *").click()
    await expect(alerts.row("Muted", "report of *")).to_have_count(0)

    site.request("POST", "/schedules/fails/pause")  # or it would open again
    await alerts.button("Close fails").click()
    await expect(alerts.row("Over", "fails")).to_contain_text(re.compile("closed by hand|paused"))


async def test_page_with_alerts_is_accessible_and_fits_every_screen(alerts: Alerts) -> None:
    page = alerts.page
    await add_everything(alerts.site)
    await page.reload()
    for section in ("Open", "Muted", "Channels", "Rules"):
        await expect(alerts.section(section)).to_be_visible()
    sizes: tuple[tuple[int, Literal["light", "dark"]], ...] = (
        (1360, "light"),
        (1360, "dark"),
        (360, "dark"),
        (360, "light"),
    )
    for width, scheme in sizes:
        await page.set_viewport_size({"width": width, "height": 844})
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
        assert not await serious_problems(page), (width, scheme)
        edges = (
            await page.get_by_role("table")
            .get_by_role("button")
            .evaluate_all("buttons => buttons.map((button) => button.getBoundingClientRect().right)")
        )
        assert max(edges) <= width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        dialog = "Edit channel chat" if width == 360 else "New rule"
        await alerts.button(dialog).click()
        await expect(alerts.dialog.get_by_role("button", name="Cancel")).to_be_visible()
        assert not await serious_problems(page), (width, scheme, dialog)
        await page.keyboard.press("Escape")
        await expect(alerts.dialog).to_have_count(0)
    alerts.site.request("DELETE", "/schedules/broken")
