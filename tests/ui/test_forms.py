"""Forms say at the field what is wrong or missing, lose no input, and send a request once."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, expect

from tests.ui.screens import Editor
from tests.ui.site import Site

pytestmark = pytest.mark.slow

TARGET = {"type": "task", "name": "greet"}
DAILY = {"when": {"every": "1d"}, "target": TARGET}


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
