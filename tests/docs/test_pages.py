"""The documentation is tested: code runs, links have targets, public names are documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import duetime as dt
from tests.docs.page import ROOT, SERVER_URL, Reader, blocks

REFERENCE = ROOT / "docs" / "reference"  # generated, with its own tests
PAGES = sorted(
    path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if REFERENCE not in path.parents
)
NEEDS_SERVER = [path for path in PAGES if SERVER_URL in path.read_text("utf-8")]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"```.*?```", re.DOTALL)
MAX_NOT_RUN = 2


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", [path for path in PAGES if path not in NEEDS_SERVER], ids=name)
async def test_code_on_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await Reader(page, tmp_path).follow()


@pytest.mark.parametrize("page", NEEDS_SERVER, ids=name)
async def test_code_on_page_with_a_server_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    await Reader(page, tmp_path, postgres_url).follow()


def test_few_blocks_are_marked_as_not_run() -> None:
    marked = [
        f"{name(page)}:{block.line} {block.not_run}"
        for page in PAGES
        for block in blocks(page)
        if block.not_run
    ]
    assert len(marked) <= MAX_NOT_RUN, marked


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_have_a_target(page: Path) -> None:
    for link in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        if link.startswith(("https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{name(page)}: {link}"
        if anchor:
            assert anchor in anchors(file), f"{name(page)}: {link}"


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(CODE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 150


def test_every_public_name_is_documented() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    missing = [public for public in dt.__all__ if not re.search(rf"\b{public}\b", text)]
    assert missing == []


def test_index_links_to_every_page() -> None:
    """The index links to every page, and the page of decisions to every decision."""
    index = ROOT / "docs" / "index.md"
    decisions = ROOT / "docs" / "decisions" / "index.md"
    for start, pages in ((index, (ROOT / "docs").glob("*.md")), (decisions, decisions.parent.glob("0*.md"))):
        linked = {
            (start.parent / link.partition("#")[0]).resolve()
            for link in LINK.findall(start.read_text("utf-8"))
        }
        assert {path for path in pages if path != start} <= linked


def test_decisions_have_the_same_three_sections() -> None:
    for page in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        headings = HEADING.findall(page.read_text("utf-8"))
        assert headings[0].startswith(f"{page.name[:4]} "), page
        assert headings[1:] == ["Context", "Decision", "Consequences"], page
