"""Named SQL statements, read from the `.sql` files beside a store's code.

A statement begins with `-- name: its_name`; the comment lines right below the name describe it and are not
sent to the server. Columns that several statements list together begin with `-- columns: their_name`, and
`{their_name}` stands for them, `{j.their_name}` for `j.id, ...`. Other text that several statements share
begins with `-- part: its_name`; `{its_name}` stands for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

_HEAD = re.compile(r"^-- (name|columns|part): *(\S+) *$", re.MULTILINE)
TABLES = (
    "jobs", "history", "attempts", "limits", "queues", "schedules", "schedule_versions", "nodes",
    "records", "events",
)  # fmt: skip
_COLUMNS = re.compile(r"\{(?:(\w+)\.)?(\w+)\}")


def load(package: str, directory: str, shared: str | None = None, prefix: str = "") -> dict[str, str]:
    """Every statement in `package`/`directory`/*.sql, by name, and those of the package `shared`, in which
    {jobs} stands for the table of that name with the prefix."""
    tables = {table: prefix + table for table in TABLES}
    found: dict[str, dict[str, str]] = {"name": {}, "columns": tables, "part": {}}
    common = {} if shared is None else scripts(shared, "")
    for file, text in [*common.items(), *scripts(package, directory).items()]:
        for kind, name, body in _parse(file, text):
            if name in found[kind]:
                raise ValueError(f"{file}: {name!r} is defined twice")
            found[kind][name] = body
    columns: dict[str, str] = {}
    for name, body in [*found["columns"].items(), *found["part"].items()]:
        columns[name] = " ".join(_fill(body, columns).split())
    return {name: _fill(body, columns) for name, body in found["name"].items()}


def scripts(package: str, directory: str) -> dict[str, str]:
    """The text of every `.sql` file in `package`/`directory`, by file name, sorted: migrations run in this
    order."""
    found = sorted(
        (entry for entry in files(package).joinpath(directory).iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return {entry.name: entry.read_text("utf-8") for entry in found}


def _parse(file: str, text: str) -> list[tuple[str, str, str]]:
    """Kind, name and text of each."""
    top, *rest = _HEAD.split(text)
    if any(line and not line.startswith("--") for line in top.splitlines()):
        raise ValueError(f"{file}: text before the first '-- name:' line")
    return [
        (kind, name, _body(file, name, body))
        for kind, name, body in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    ]


def _body(file: str, name: str, text: str) -> str:
    lines = text.strip().splitlines()
    while lines and lines[0].startswith("--"):
        lines.pop(0)
    body = "\n".join(lines).strip().removesuffix(";")
    if not body:
        raise ValueError(f"{file}: {name!r} is empty")
    return body


def _fill(text: str, columns: Mapping[str, str]) -> str:
    def listed(found: re.Match[str]) -> str:
        table, name = found.groups()
        if name not in columns:
            raise ValueError(f"no columns are called {name!r} in: {text}")
        return (
            columns[name]
            if table is None
            else ", ".join(f"{table}.{column}" for column in columns[name].split(", "))
        )

    return _COLUMNS.sub(listed, text)
