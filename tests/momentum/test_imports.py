"""Momentum is an application like any other: it uses only what `duetime` and its two modules for applications
export."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import duetime
import duetime.egress
import duetime.serving
import momentum

PACKAGE = Path(momentum.__file__).parent
EXPORTED = {module.__name__: set(module.__all__) for module in (duetime, duetime.serving, duetime.egress)}
INNER = {"context", "store", "clock", "tasks"}  # attributes of an app that its documentation does not name


def violations(source: str) -> list[str]:
    tree = ast.parse(source)
    return [*_imports(tree), *_names(tree), *_inner_parts(tree)]


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("duetime") and (name.name, name.asname) != ("duetime", "dt"):
                    yield f"line {node.lineno}: write `import duetime as dt`, not {name.name}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "duetime":
            if node.module not in EXPORTED:
                yield f"line {node.lineno}: {node.module} is inside of duetime"
            yield from (
                f"line {node.lineno}: {node.module} does not export {name.name}"
                for name in node.names
                if name.name not in EXPORTED.get(node.module or "", ())
            )


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "dt"
            and node.attr not in duetime.__all__
        ):
            yield f"line {node.lineno}: duetime does not export {node.attr}"


def _inner_parts(tree: ast.Module) -> Iterator[str]:
    """`app.store` and the like, also `self.app.store`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in INNER:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", None)
            if name == "app":
                yield f"line {node.lineno}: app.{node.attr} is not documented"


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_module_uses_only_what_duetime_exports(path: Path) -> None:
    assert violations(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "planted",
    [
        "import duetime",
        "import duetime.stores",
        "from duetime.model import job",
        "from duetime import App, engine",
        "from duetime.serving import ApiServer",
        "def f():\n    from duetime.app import App",
        "import duetime as dt\ndt.stores.from_url('x')",
        "self.app.store.jobs()",
        "app.context",
    ],
)
def test_violation_is_reported(planted: str) -> None:
    assert violations(planted)
