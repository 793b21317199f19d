"""No Python that we support warns about the parameters of SQLite's statements."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from duetime.app import App
from duetime.invoker import Context
from duetime.stores.sqlite import session


class Python3121(sqlite3.Connection):
    """Python 3.12.0 to 3.12.3 warn about numbered parameters in a sequence."""

    def execute(self, statement: str, parameters: object = (), /) -> sqlite3.Cursor:
        assert "?1" not in statement or isinstance(parameters, dict), statement
        return super().execute(statement, parameters)  # type: ignore[arg-type]


async def test_numbered_parameters_are_bound_by_name_where_python_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Python3121))
    monkeypatch.setattr(session, "BY_NAME", True)
    app = App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task("note")
    async def note(ctx: Context, name: str) -> list[str]:
        await ctx.connection.execute("CREATE TABLE notes (name)")
        await ctx.connection.execute("INSERT INTO notes VALUES (?)", "plain")
        await ctx.connection.execute("INSERT INTO notes VALUES ($1)", name)
        return [row["name"] for row in await ctx.connection.fetch("SELECT name FROM notes ORDER BY name")]

    async with app.running():
        job = await (await note.submit(name="numbered")).wait(timeout="60s")
        assert job.result == ["numbered", "plain"]
