"""Every Python that we support takes the parameters of SQLite's statements, and none warns about them."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from duetime.app import App
from duetime.errors import StoreError
from duetime.invoker import Context
from duetime.stores.sqlite import SqliteStore, errors, session
from duetime.testing.conformance import batching, fire, limits, rows, schedules, settle, transactions


def by_name(statement: str, parameters: Any) -> Any:
    assert "?1" not in statement or isinstance(parameters, dict), statement
    return parameters


class Python3121(sqlite3.Connection):
    """Python 3.12.0 to 3.12.3 warn about numbered parameters in a sequence."""

    def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(statement, by_name(statement, parameters))

    def executemany(self, statement: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        return super().executemany(statement, [by_name(statement, row) for row in parameters])


@pytest.fixture
def python_3_12_1(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Python3121))
    monkeypatch.setattr(session, "BY_NAME", True)


def test_every_statement_uses_its_parameters_from_1_on_without_gaps() -> None:
    """Bound by name, a number that is left out is a parameter without a name."""
    numbers = {
        name: {int(number) for number in re.findall(r"\?(\d+)", statement)}
        for name, statement in session.STATEMENTS.items()
    }
    assert [name for name, found in numbers.items() if found != set(range(1, len(found) + 1))] == []
    assert max(map(max, filter(None, numbers.values()))) > 20


@pytest.mark.usefixtures("python_3_12_1")
class TestBoundByName(
    schedules.ScheduleConformance,
    schedules.PauseConformance,
    batching.ScheduleBatchConformance,
    fire.FireConformance,
    rows.RowWriteConformance,
    limits.LimitConformance,
    settle.FencingConformance,
    transactions.TaskTransactionConformance,
    transactions.CallerTransactionConformance,
):
    """Parts of the contract that together execute each way of binding."""

    @pytest.fixture
    async def store(
        self, python_3_12_1: None, tmp_path: Path, sqlite_template: Path
    ) -> AsyncIterator[SqliteStore]:
        path = tmp_path / "duetime.db"
        shutil.copyfile(sqlite_template, path)
        opened = SqliteStore(path)
        await opened.open()
        yield opened
        await opened.close()

    @pytest.fixture
    async def second_store(self, store: SqliteStore) -> AsyncIterator[SqliteStore]:
        opened = store.clone()
        await opened.open()
        yield opened
        await opened.close()


def test_error_of_python_itself_keeps_its_cause() -> None:
    """It has no error code of SQLite."""
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.Error) as caught:
        connection.execute("SELECT ?2", {"2": 1})
    connection.close()
    assert not hasattr(caught.value, "sqlite_errorcode")
    translated = errors.translate(caught.value, Path("jobs.db"))
    assert isinstance(translated, StoreError)
    assert str(caught.value) in translated.message


@pytest.mark.usefixtures("python_3_12_1")
async def test_numbered_parameters_are_bound_by_name_where_python_wants_it(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task("note")
    async def note(ctx: Context, name: str) -> list[str]:
        await ctx.connection.execute("CREATE TABLE notes (name)")
        await ctx.connection.execute("INSERT INTO notes VALUES (?)", "plain")
        await ctx.connection.execute("INSERT INTO notes VALUES ($1)", name)
        await ctx.connection.executemany("INSERT INTO notes VALUES ($1)", [("one",), ("two",)])
        return [row["name"] for row in await ctx.connection.fetch("SELECT name FROM notes ORDER BY name")]

    async with app.running():
        job = await (await note.submit(name="numbered")).wait(timeout="60s")
        assert job.result == ["numbered", "one", "plain", "two"]
