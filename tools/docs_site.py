"""Builds the documentation as a static site with search in build/documentation/site/. It needs no network,
and neither do its readers.

python tools/docs_site.py [FOLDER]
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SOURCE = "https://github.com/duetime/duetime/blob/main/"
LINK = re.compile(r"(?<=\]\()(\.\./[^)\s]*)(?=\))")
SECTION = re.compile(r"\| ([^|]+) \| \|")
ENTRY = re.compile(r"\| \[([^\]]+)\]\(([^)]+)\) \|")
REFERENCE = {
    "Command line": "reference/cli.md",
    "Settings": "reference/settings.md",
    "Errors": "reference/errors.md",
}
SETTINGS = """\
[project]
site_name = "Duetime"
site_description = "The scheduler and job queue for Python"
docs_dir = "docs"
site_dir = "site"
use_directory_urls = false
nav = {nav}

[project.theme]
font = false # of this site, not fetched from elsewhere
features = ["search.highlight", "content.code.copy", "navigation.sections", "toc.follow"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/moon"
toggle.name = "Dark"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/sun"
toggle.name = "Light"
"""


def navigation(index: str) -> list[dict[str, object]]:
    """The tables of the index page: a section each."""
    sections: list[tuple[str, dict[str, str]]] = []
    for line in index.splitlines():
        if section := SECTION.fullmatch(line):
            sections.append((section[1].capitalize(), {}))
        elif entry := ENTRY.match(line):
            sections[-1][1][entry[1]] = entry[2]
    sections.append(("Reference", REFERENCE))
    pages: list[dict[str, object]] = [
        {title: [{name: page} for name, page in entries.items()]} for title, entries in sections
    ]
    return [{"Duetime": "index.md"}, *pages]


def with_outside_links(page: Path) -> str:
    """What is not in docs/ is read where the source is."""

    def absolute(match: re.Match[str]) -> str:
        target, hash_sign, anchor = match[1].partition("#")
        path = (page.parent / target).resolve()
        if path.is_relative_to(DOCS):
            return match[1]
        return f"{SOURCE}{path.relative_to(ROOT)}{hash_sign}{anchor}"

    return LINK.sub(absolute, page.read_text("utf-8"))


def build(folder: Path) -> Path:
    """Returns the folder of the site, which can be served by any web server or opened from the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder / "docs")
    for page in DOCS.rglob("*.md"):
        (folder / "docs" / page.relative_to(DOCS)).write_text(with_outside_links(page), "utf-8")
    nav = _toml(navigation((DOCS / "index.md").read_text("utf-8")))
    (folder / "zensical.toml").write_text(SETTINGS.format(nav=nav), "utf-8")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)  # noqa: S603  our own words
    if done.returncode:
        sys.exit(f"the site could not be built:\n{done.stdout}{done.stderr}")
    return folder / "site"


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(name)} = {_toml(one)}' for name, one in value.items())} }}"
    return json.dumps(value)


if __name__ == "__main__":
    made = build(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "documentation")
    sys.stdout.write(f"{made / 'index.html'}\n")
