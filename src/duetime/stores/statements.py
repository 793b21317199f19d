"""Named SQL statements, read from the `.sql` files beside a store's code.

A statement begins with `-- name: its_name`; the comment lines right below the name describe it and are not sent to the server.
"""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: *(\S+) *$", re.MULTILINE)


def load(package: str, directory: str) -> dict[str, str]:
    """Every statement in `package`/`directory`/*.sql, by name."""
    statements: dict[str, str] = {}
    for name, text in scripts(package, directory).items():
        for statement, body in _parse(name, text).items():
            if statement in statements:
                raise ValueError(f"{package}/{directory}: the statement {statement!r} is defined twice")
            statements[statement] = body
    return statements


def scripts(package: str, directory: str) -> dict[str, str]:
    """The text of every `.sql` file in `package`/`directory`, by file name, sorted: migrations run in this order."""
    found = sorted(
        (entry for entry in files(package).joinpath(directory).iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name
    )
    return {entry.name: entry.read_text("utf-8") for entry in found}


def _parse(file: str, text: str) -> dict[str, str]:
    head, *rest = _NAME.split(text)
    if any(line and not line.startswith("--") for line in head.splitlines()):
        raise ValueError(f"{file}: text before the first '-- name:' line")
    names = rest[::2]
    if len(names) != len(set(names)):
        raise ValueError(f"{file}: a statement is defined twice")
    return {name: _body(file, name, body) for name, body in zip(names, rest[1::2], strict=True)}


def _body(file: str, name: str, text: str) -> str:
    lines = text.strip().splitlines()
    while lines and lines[0].startswith("--"):
        lines.pop(0)
    body = "\n".join(lines).strip().removesuffix(";")
    if not body:
        raise ValueError(f"{file}: the statement {name!r} is empty")
    return body
