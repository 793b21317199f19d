"""Sign-in by API key, and what each scope allows."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.ui.screens import Jobs, Schedules, Screen
from tests.ui.site import Site

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def keyed_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that requires API keys."""
    with Site(tmp_path_factory.mktemp("keyed_site"), "--auth", "keys") as site:
        yield site


def key_of(site: Site, scope: str) -> str:
    command = [
        str(Path(sys.executable).with_name("duetime")),
        "--store",
        site.store,
        "key",
        "create",
        f"of-{scope}",
        "--scopes",
        scope,
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return next(word for word in output.split() if word.startswith("dt_"))


class Login(Screen[Site]):
    async def sign_in(self, key: str) -> None:
        await self.page.get_by_label("API key").fill(key)
        await self.button("Sign in").click()


async def test_wrong_key_is_rejected_with_an_error_code(page: Page, keyed_site: Site) -> None:
    login = Login(page, keyed_site)
    await login.open("/jobs")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    await login.sign_in("dt_0000000000_wrong")
    await expect(page.locator("form")).to_contain_text("key_")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


async def test_sign_in_opens_the_requested_page_and_sign_out_closes_it(page: Page, keyed_site: Site) -> None:
    login = Login(page, keyed_site)
    await login.open("/queues")
    await login.sign_in(key_of(keyed_site, "read"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    await login.button("Account").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


async def test_read_only_key_disables_all_changes(page: Page, keyed_site: Site) -> None:
    admin = key_of(keyed_site, "admin")
    body = {"name": "read-only", "when": {"every": "1d"}, "target": {"type": "task", "name": "greet"}}
    schedule = keyed_site.request("POST", "/schedules", body, admin)
    login = Login(page, keyed_site)
    await login.open(f"/schedules/{schedule['id']}")
    await login.sign_in(key_of(keyed_site, "read"))
    for name in ("Pause", "Run now"):
        await expect(login.button(name)).to_be_disabled()
    await expect(page.get_by_role("link", name="Keys")).to_have_count(0)
    await page.get_by_role("link", name="Schedules").first.click()
    await expect(Schedules(page, keyed_site).row("read-only")).to_be_visible()
    await expect(page.get_by_label("Select all matches")).to_have_count(0)


async def test_read_only_key_sees_alerts_and_changes_none(page: Page, keyed_site: Site) -> None:
    target = {"type": "webhook", "url": "https://hooks.example.org"}
    keyed_site.request("PUT", "/alerts/channels/ops", {"target": target}, key_of(keyed_site, "manage"))
    login = Login(page, keyed_site)
    await login.open("/alerts")
    await login.sign_in(key_of(keyed_site, "read"))
    await expect(page.get_by_role("table", name="Channels").get_by_text("ops")).to_be_visible()
    for name in ("Maintenance window", "New channel", "Edit channel ops", "Remove channel ops", "Test ops"):
        await expect(login.button(name)).to_be_disabled()
    for name in ("New rule", "Edit rule silent"):
        await expect(login.button(name)).to_be_disabled()
    for name in ("Channel ops", "Rule silent"):
        await expect(page.get_by_role("switch", name=name)).to_be_disabled()


async def test_admin_creates_a_key_that_is_shown_once_and_revokes_it(page: Page, keyed_site: Site) -> None:
    login = Login(page, keyed_site)
    await login.open("/keys")
    await login.sign_in(key_of(keyed_site, "admin"))
    await login.button("New key").click()
    await login.dialog.get_by_role("textbox", name="Name").fill("test-key")
    await login.button("Create key").click()
    key = (await page.get_by_role("button", name="Copy key").inner_text()).strip()
    assert keyed_site.request("GET", "/me", key=key)["scopes"] == ["read"]
    await login.button("I have copied it").click()
    await expect(page.get_by_text(key)).to_have_count(0)
    await login.button("Revoke test-key").click()
    await login.dialog.get_by_role("button", name="Revoke").click()
    await login.sees_message("test-key revoked")


async def test_admin_reads_the_signing_secret_of_a_receiver(page: Page, site: Site) -> None:
    screen = Screen(page, site)
    await screen.open("/keys")
    url = page.get_by_label("URL of the receiver")
    await url.fill("ftp://files")
    await screen.button("Show secret").click()
    await expect(url).to_have_accessible_description(re.compile("must begin with https://"))
    await url.fill("https://agent.example.org/run")
    await page.keyboard.press("Enter")
    read = site.request("GET", "/targets/signing-secrets?url=https://agent.example.org")
    shown = page.get_by_role("button", name="Copy signing secret")
    await expect(shown).to_contain_text(read["secrets"][0])


async def test_revoked_key_opens_a_sign_in_dialog_and_keeps_the_input(page: Page, keyed_site: Site) -> None:
    admin = key_of(keyed_site, "admin")
    created = keyed_site.request(
        "POST", "/keys", {"name": "short-lived", "scopes": ["manage", "read", "submit"]}, admin
    )
    login = Login(page, keyed_site)
    await login.open("/jobs/new")
    await login.sign_in(created["key"])
    await page.get_by_label("Payload (JSON)").fill('{"half": "written"')
    keyed_site.request("DELETE", f"/keys/{created['prefix']}", key=admin)
    await expect(login.dialog.get_by_label("API key")).to_be_visible()
    await login.sign_in(admin)
    await expect(login.dialog).to_have_count(0)
    await expect(page.get_by_label("Payload (JSON)")).to_have_value('{"half": "written"')
    await expect(Jobs(page, keyed_site).button("Submit job")).to_be_visible()
