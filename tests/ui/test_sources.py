"""The UI matches the API, and its locked packages can be installed on every platform."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.ui.screenshots import FOLDER, leaks, used
from tests.ui.site import ROOT
from tools.build_ui import PACKAGES, Interface
from tools.ui_types import FILE, document, text_of, type_of

LOCK = json.loads((ROOT / "ui" / "package-lock.json").read_text())


def test_ui_types_match_the_api() -> None:
    assert FILE.read_text() == text_of(document()), "run `make ui`"


def test_json_schema_becomes_a_typescript_type() -> None:
    assert (
        type_of({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}})
        == "Array<number | null>"
    )
    closed = {
        "type": "object",
        "additionalProperties": False,
        "required": ["a"],
        "properties": {"a": {"const": "x"}, "b-c": {"$ref": "#/d/E"}},
    }
    assert type_of(closed) == '{ a: "x"; "b-c"?: E }'
    assert (
        type_of({"type": "object", "additionalProperties": {"type": "string"}}) == "{ [key: string]: string }"
    )


def test_package_lock_names_no_registry() -> None:
    assert not [name for name, package in LOCK["packages"].items() if "resolved" in package]


def test_every_locked_package_has_a_checksum() -> None:
    assert not [name for name, package in LOCK["packages"].items() if name and "integrity" not in package]


def test_package_lock_has_the_binaries_of_every_platform() -> None:
    families = Counter(
        re.sub(r"(@[^/]+/)?([a-z]+).*", r"\1\2", name.removeprefix("node_modules/"))
        for name in LOCK["packages"]
    )
    assert families["@rolldown/binding"] >= 12
    assert families["lightningcss"] >= 10
    assert families["@oxlint/binding"] >= 12
    assert families["@typescript/typescript"] >= 12


@pytest.mark.parametrize("folder", Interface().built, ids=PACKAGES)
def test_own_styles_come_after_those_of_the_component_library(folder: Path) -> None:
    """Of two rules for the same element the later one applies."""
    link = re.search(r'href="\./(assets/[^"]+\.css)"', (folder / "index.html").read_text())
    assert link is not None
    styles = (folder / link[1]).read_text()
    of_library = [match.start() for match in re.finditer(r"\.m_[0-9a-f]+\b", styles)]
    own = [match.start() for match in re.finditer(r"\._[a-zA-Z]+_\w{5}_\d+\b", styles)]
    assert max(of_library) < min(own)


def test_images_of_the_documentation_are_those_it_shows() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {f"{name}-{scheme}" for name, scheme in used()}


def test_images_of_the_documentation_name_no_machine() -> None:
    for file in FOLDER.iterdir():
        data = file.read_bytes()
        assert not [kind for kind in (b"tEXt", b"iTXt", b"zTXt") if kind in data], file.name
    assert leaks(f'File "{ROOT}/tests/ui/sample_tasks.py", line 1') == [str(ROOT)]
    assert leaks('File "/srv/shop/shop.py", line 1') == []


def test_built_ui_is_current() -> None:
    assert Interface().is_current(), "run `make ui`"
