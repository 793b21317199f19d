"""Archives as JSON lines and as Parquet, read by DuckDB: a program that knows nothing of Duetime."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duetime as dt
from duetime.archives import archive_for
from duetime.engine.plan.archiver import Archiver
from duetime.model.history import KeepRules
from duetime.model.instant import to_iso, to_micros
from duetime.model.stored import JobRow, RowKind
from duetime.stores.memory import MemoryStore
from tests.cli.conftest import Duetime
from tests.cli.node import COMMAND
from tests.cli.test_archive import fill, ids_in
from tests.docs.page import ROOT, blocks

URL = "sqlite:///duetime.db"
PARQUET = "read_parquet('archive/jobs/*/*.parquet')"
LINES = "read_json_objects('archive/jobs/*/*.jsonl.gz')"
INSTANTS = ("fire_time", "due_at", "created_at", "claimed_at", "started_at", "finished_at")
JSON_COLUMNS = ("target", "payload", "labels", "result")


@pytest.fixture
def duck(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    (folder / "archive").mkdir()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def rows_of(duck: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    answer = duck.sql(query)
    return [] if answer is None else list(answer.to_arrow_table().to_pylist())


async def real_jobs() -> list[JobRow]:
    """One that succeeded, one that needed two attempts, one that is dead, one that was cancelled."""
    app = dt.App("memory://")

    @app.task("invoice.send", retry=dt.Retry(max_attempts=2, first_delay="1ms"))
    async def send(ctx: dt.Context, customer: str, fails: int = 0) -> dict[str, str]:
        if ctx.attempt <= fails:
            raise RuntimeError(f"no address for “{customer}”")
        return {"sent": customer}

    async with app.running():
        jobs = [
            await send.submit(customer="c1", labels={"month": "2026-11"}, priority=8, queue="billing"),
            await send.submit(customer="ü2", fails=1, owner="anna"),
            await send.submit(customer="c3", fails=2),
        ]
        cancelled = await send.submit(customer="c4", delay="1h")
        await cancelled.cancel()
        for job in jobs:
            await job.wait(timeout="60s")
        rows = await app.store.read_rows(RowKind.JOBS, None, 100)
    assert len(rows) == 4
    return [row for row in rows if isinstance(row, JobRow)]


async def archive_both_ways(jobs: list[JobRow]) -> None:
    for form in ("jsonl", "parquet"):
        store = MemoryStore()
        await store.write_rows(RowKind.JOBS, jobs, None, None)
        done = await Archiver(store, archive_for("archive", form), KeepRules(0)).run()
        assert done.jobs == 4
        assert await store.read_rows(RowKind.JOBS, None, 1) == []


async def test_both_formats_say_the_same(duck: duckdb.DuckDBPyConnection) -> None:
    await archive_both_ways(await real_jobs())
    columns = {row["column_name"]: row["column_type"] for row in rows_of(duck, f"DESCRIBE FROM {PARQUET}")}
    assert {columns[name] for name in INSTANTS} == {"TIMESTAMP WITH TIME ZONE"}
    assert columns["day"] == "DATE"
    parquet = {row["id"]: as_line(row) for row in rows_of(duck, f"FROM {PARQUET}")}
    lines = {line["id"]: line for row in rows_of(duck, f"FROM {LINES}") if (line := json.loads(row["json"]))}
    assert parquet == lines
    assert sorted((line["state"], len(line["attempts"])) for line in lines.values()) == [
        ("cancelled", 0),
        ("dead", 2),
        ("succeeded", 0),
        ("succeeded", 1),
    ]


def as_line(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the Parquet file as the line of JSON of the same job."""
    ran = row["finished_at"] - row["started_at"] if row["started_at"] else None
    assert row.pop("run_seconds") == (ran.total_seconds() if ran else None)
    waited = row["started_at"] - row["due_at"] if row["started_at"] else None
    assert row.pop("wait_seconds") == (waited.total_seconds() if waited else None)
    assert row.pop("day") == row["finished_at"].date()
    line = {name: iso(value) for name, value in row.items()}
    for name in JSON_COLUMNS:
        line[name] = None if row[name] is None else json.loads(row[name])
    assert line.pop("task") == line["target"]["name"]
    line["labels"] = line["labels"] or {}
    line["attempts"] = [{name: iso(value) for name, value in one.items()} for one in row["attempts"]]
    return {"format": 1, **line}


def iso(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return to_iso(to_micros(value))


async def test_documented_queries_answer(duck: duckdb.DuckDBPyConnection) -> None:
    """The statements of docs/history.md, in their order."""
    await archive_both_ways(await real_jobs())
    (Path("archive") / "jobs" / "day=2026-01-01").mkdir()
    (Path("archive") / "jobs" / "day=2026-01-01" / "killed.parquet").write_bytes(
        b"no manifest: does not count"
    )
    statements = [
        statement
        for block in blocks(ROOT / "docs" / "history.md")
        if block.language == "sql"
        for statement in block.text.split(";")
        if statement.strip()
    ]
    answers = [rows_of(duck, one) for one in statements]
    queues, failures, customer, lines = (answer for answer in answers if answer)
    assert sorted((row["queue"], row["jobs"]) for row in queues) == [("billing", 1), ("default", 3)]
    assert [(row["ending"], row["attempts"]) for row in failures] == [("failed", 2), ("failed", 1)]
    assert [(row["state"], json.loads(row["result"])) for row in customer] == [("succeeded", {"sent": "c1"})]
    assert sum(row["jobs"] for row in lines) == 4


@pytest.mark.parametrize("later", ["parquet", "jsonl"])
def test_killed_parquet_run_is_continued(
    duetime: Duetime, folder: Path, duck: duckdb.DuckDBPyConnection, later: str
) -> None:
    """Also by a run that writes the other format."""
    old, kept = fill(URL)
    killed = subprocess.run(
        [COMMAND, "archive", "--to", "archive", "--format", "parquet"], cwd=folder, check=False,
        capture_output=True, env={**os.environ, "DUETIME_FAILPOINTS": "archive.after_manifest=kill"},
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr
    assert ids_in(URL, unlock=True) == old | kept
    assert duetime("archive", "--to", "archive", "--format", later).status == 0
    assert ids_in(URL) == kept
    found = [row["id"] for row in rows_of(duck, f"SELECT id FROM {PARQUET}")]
    if later == "jsonl":
        found += [json.loads(row["json"])["id"] for row in rows_of(duck, f"FROM {LINES}")]
    assert sorted(found) == sorted(old)


async def test_leader_archives_as_parquet(folder: Path, duck: duckdb.DuckDBPyConnection) -> None:
    old, kept = await asyncio.to_thread(fill, URL)
    app = dt.App(URL)
    async with app.running(archive="archive", archive_format="parquet"):
        async with asyncio.timeout(60):
            while len(await app.store.read_rows(RowKind.JOBS, None, 100)) > len(kept):
                await asyncio.sleep(0.05)
    assert {row["id"] for row in rows_of(duck, f"SELECT id FROM {PARQUET}")} == old


def test_unknown_format_and_missing_package_are_named(duetime: Duetime, folder: Path) -> None:
    fill(URL)
    unknown = duetime("archive", "--to", "archive", "--format", "csv")  # there is no such folder, either
    assert (unknown.status, "use one of jsonl, parquet" in unknown.err) == (2, True), unknown.err
    (folder / "archive").mkdir()
    without = "import sys; sys.modules['pyarrow'] = None; from duetime.cli import main; main()"
    missing = subprocess.run(
        [sys.executable, "-c", without, "archive", "--to", "archive", "--format", "parquet"],
        cwd=folder, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert missing.returncode == 2
    assert "needs the package pyarrow: pip install 'duetime[parquet]'" in missing.stderr
    assert list((folder / "archive").iterdir()) == []
