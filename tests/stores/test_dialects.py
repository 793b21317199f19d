"""The SQL stores that share code define the statements that the code names, and each of them is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import duetime.stores.sql
from duetime.stores.mysql import session as mysql
from duetime.stores.sqlite import session as sqlite

CALLS = {
    "all", "all_each", "all_many", "change", "change_each", "change_many", "composed", "each_lane",
    "first_of_lanes", "one", "value",
}  # fmt: skip
SHARED = Path(duetime.stores.sql.__file__).parent
# Conditions that only the functions of SQLite's connections can check, and what belongs to its file.
OF_SQLITE = {
    "begin_to_write", "cancels", "extend_leases", "list_if_error", "list_if_error_group", "list_if_label",
    "list_if_payload", "no_longer_live", "raise_changes", "read_changes", "record_lock_file",
    "schedules_if_label", "schedules_if_text", "table_names", "read_version", "write_version",
}  # fmt: skip
OF_MYSQL = {
    "add_hints", "await_job", "create_versions", "due_lanes", "forget_hints", "last_hint", "lock_migration",
    "lock_permits", "read_hints", "read_version", "settle_plain", "table_names", "tables_made_at", "time",
    "unlock_migration", "write_version",
}  # fmt: skip


def named() -> Iterator[str]:
    """The statements that the shared code executes by name."""
    for file in SHARED.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CALLS
            ):
                for part in ast.walk(node.args[0]) if node.args else ():
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value


def test_dialects_define_the_same_statements() -> None:
    assert set(sqlite.STATEMENTS) - OF_SQLITE == set(mysql.STATEMENTS) - OF_MYSQL


def test_dialects_define_what_the_shared_code_names() -> None:
    names = {name for name in named() if name.isidentifier()}
    assert len(names) > 80
    assert names - set(sqlite.STATEMENTS) == set()
    assert names - set(mysql.STATEMENTS) - OF_SQLITE == set()
