"""The pages under docs/reference are generated from the present code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from duetime import errors

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
