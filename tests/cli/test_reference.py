"""The pages under docs/reference are generated from the present code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from duetime import errors
from duetime.config import TABLE

ROOT = Path(__file__).parents[2]


def test_reference_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.reference", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_error_page_lists_every_error() -> None:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.DuetimeError)
    ]
    assert [
        kind.__name__
        for kind in kinds
        if f"| `{kind.__name__}` |" not in page or f"`{kind.code}`" not in page
    ] == []
    assert len({kind.code for kind in kinds}) == len(kinds)


def test_options_of_nodes_are_settings() -> None:
    """A page says of them that flags, variables and files can set them, too."""
    page = (ROOT / "docs" / "running-nodes.md").read_text("utf-8")
    options = page.split("## Options")[1].split("## Roles")[0]
    rows = re.findall(r"^\| `(\w+)` (.*)", options, re.MULTILINE)
    assert {name for name, text in rows if "only of a program" not in text} <= set(TABLE)


def test_health_checks_of_the_pages_exist() -> None:
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert set(re.findall(r"`(/(?:health|ready)\w*)`", pages)) == {"/healthz", "/readyz"}
