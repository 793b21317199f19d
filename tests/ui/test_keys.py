"""Login by key, and what each scope may do (S4)."""

from __future__ import annotations

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
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that asks for keys."""
    with Site(tmp_path_factory.mktemp("guarded"), "--auth", "keys") as site:
        yield site


def key_of(site: Site, scope: str) -> str:
    command = [str(Path(sys.executable).with_name("duetime")), "--store", site.store, "key", "create", f"of-{scope}", "--scopes", scope]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return next(word for word in shown.split() if word.startswith("dt_"))


class Login(Screen):
    async def sign_in(self, key: str) -> None:
        await self.page.get_by_label("API key").fill(key)
        await self.button("Sign in").click()


async def test_a_wrong_key_is_refused_in_words(page: Page, guarded: Site) -> None:
    login = Login(page, guarded)
    await login.open("/jobs")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    await login.sign_in("dt_0000000000_wrong")
    await expect(page.locator("form")).to_contain_text("key_")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


async def test_a_key_leads_to_the_page_that_was_wanted_and_out_again(page: Page, guarded: Site) -> None:
    login = Login(page, guarded)
    await login.open("/queues")
    await login.sign_in(key_of(guarded, "read"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    await login.button("Account").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


async def test_who_may_only_read_can_press_nothing_that_changes(page: Page, guarded: Site) -> None:
    admin = key_of(guarded, "admin")
    wanted = {"name": "read-only", "when": {"every": "1d"}, "target": {"type": "task", "name": "greet"}}
    made = guarded.ask("POST", "/schedules", wanted, admin)
    login = Login(page, guarded)
    await login.open(f"/schedules/{made['id']}")
    await login.sign_in(key_of(guarded, "read"))
    for name in ("Pause", "Run now"):
        await expect(login.button(name)).to_be_disabled()
    await expect(page.get_by_role("link", name="Keys")).to_have_count(0)
    await page.get_by_role("link", name="Schedules").first.click()
    await expect(Schedules(page, guarded).row("read-only")).to_be_visible()
    await expect(page.get_by_label("Select all that match")).to_have_count(0)


async def test_an_admin_makes_a_key_that_is_shown_once_and_revokes_it(page: Page, guarded: Site) -> None:
    login = Login(page, guarded)
    await login.open("/keys")
    await login.sign_in(key_of(guarded, "admin"))
    await login.button("New key").click()
    await login.dialog.get_by_role("textbox", name="Name").fill("made-here")
    await login.button("Create key").click()
    made = await page.get_by_role("button", name="Copy key").inner_text()
    assert guarded.ask("GET", "/me", key=made.strip())["scopes"] == ["read"]
    await login.button("I have copied it").click()
    await expect(page.get_by_text(made.strip())).to_have_count(0)
    await login.button("Revoke made-here").click()
    await login.dialog.get_by_role("button", name="Revoke").click()
    await login.told("made-here is revoked")


async def test_a_key_that_ends_is_asked_for_on_top_of_what_is_being_typed(page: Page, guarded: Site) -> None:
    admin = key_of(guarded, "admin")
    made = guarded.ask("POST", "/keys", {"name": "short-lived", "scopes": ["manage", "read", "submit"]}, admin)
    login = Login(page, guarded)
    await login.open("/jobs/new")
    await login.sign_in(made["key"])
    await page.get_by_label("Payload (JSON)").fill('{"half": "written"')
    guarded.ask("DELETE", f"/keys/{made['prefix']}", key=admin)
    await expect(login.dialog.get_by_label("API key")).to_be_visible()
    await login.sign_in(admin)
    await expect(login.dialog).to_have_count(0)
    await expect(page.get_by_label("Payload (JSON)")).to_have_value('{"half": "written"')
    await expect(Jobs(page, guarded).button("Submit job")).to_be_visible()
