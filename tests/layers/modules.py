"""The modules of the package as a graph of imports, and the classes they define."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

Graph = Mapping[str, set[str]]


def parse_package(folder: Path) -> dict[str, ast.Module]:
    """Syntax trees by module name; a package is its `__init__.py`."""
    return {
        _module_name(folder, path): ast.parse(path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.py"))
    }


def import_graph(trees: Mapping[str, ast.Module]) -> Graph:
    """Which modules each module imports: at its top, in functions, and for type checking only."""
    return {name: {one for one in _imports(tree, trees) if one != name} for name, tree in trees.items()}


def circles(graph: Graph) -> list[list[str]]:
    """Groups of modules that import one another, directly or through others: the strongly connected
    components (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for imported in graph[module]:
            if imported not in order:
                visit(imported)
            if imported in path:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == order[module]:
            group = path[path.index(module) :]
            del path[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in order:
            visit(module)
    return sorted(found)


def classes(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """The modules that define each class name."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    return found


def _module_name(folder: Path, path: Path) -> str:
    parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, known: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases if alias.name in known)
            case ast.ImportFrom(module=str(module), names=aliases) if module in known:
                for alias in aliases:
                    inner = f"{module}.{alias.name}"
                    yield inner if inner in known else module
