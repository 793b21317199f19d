"""No module imports itself through others, not even in a function or for type checking."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import duetime
from tests.layers.modules import circles, import_graph, parse_package

PACKAGE = Path(duetime.__file__).parent


@pytest.mark.slow
def test_package_has_no_import_circle() -> None:
    found = circles(import_graph(parse_package(PACKAGE)))
    assert not found, "\n" + "\n".join(" <-> ".join(group) for group in found)


@pytest.mark.parametrize(
    "second",
    [
        "import p.first",
        "from p.first import name",
        "from p import first",
        "def later():\n    from p.first import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.first import name",
        "from p.third import name",
    ],
)
def test_circle_is_found_wherever_the_import_stands(second: str) -> None:
    sources = {
        "p": "",
        "p.first": "import p.second",
        "p.second": second,
        "p.third": "from p.first import name",
    }
    found = circles(import_graph({name: ast.parse(source) for name, source in sources.items()}))
    assert [{"p.first", "p.second"} <= set(group) for group in found] == [True]


def test_shared_import_is_not_a_circle() -> None:
    sources = {
        "p": "",
        "p.first": "import p.second, p.third",
        "p.second": "from p.third import name",
        "p.third": "import p",
    }
    assert circles(import_graph({name: ast.parse(source) for name, source in sources.items()})) == []
