"""`duetime copy`: what it prints and refuses, and a process that is killed in the middle of it."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from duetime.app import store_copy
from duetime.cli.commands.copy import place_of
from duetime.stores import from_url
from duetime.stores.sqlite import SqliteStore
from duetime.testing.conformance.drafts import HOUR, job, jobs, joined, started
from duetime.testing.conformance.rows import everything
from tests.cli.conftest import Duetime
from tests.cli.fleet import Past
from tests.cli.node import COMMAND
from tests.servers.postgres import PostgresServer

KILLED = """
import os, signal, sys
from duetime.app import store_copy
from duetime.cli.commands.copy import place_of
from duetime.app.store_copy import StoreCopy
from duetime.cli.program import program

store_copy.PAGE = 200
replace = StoreCopy._replace

async def die(self, walk, rows):
    await replace(self, walk, rows)
    if len(rows) == 200 and walk.until is not None:
        os.kill(os.getpid(), signal.SIGKILL)

StoreCopy._replace = die
program(sys.argv[1:])
"""


def rows_of(url: str) -> object:
    async def read() -> object:
        store = from_url(url)
        await store.open()
        try:
            return await everything(store)
        finally:
            await store.close()

    return asyncio.run(read())


def fill(folder: Path, number: int) -> None:
    async def write() -> None:
        store = SqliteStore(folder / "duetime.db")
        await store.open()
        await store.add_jobs(jobs(number, await store.time() + HOUR))
        await store.close()

    asyncio.run(write())


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[str]:
    yield postgres_server.create_database("cli_copy")
    postgres_server.drop_database("cli_copy")


def test_copy_into_a_new_database(duetime: Duetime, past: Past, database: str) -> None:
    """The schema is created; the old store is that of the settings."""
    done = duetime("copy", "--to", database)
    assert (done.status, done.err) == (0, "")
    assert [line.split()[-1] for line in done.out.splitlines()[1:8]] == ["equal"] * 7
    assert "start the nodes on the new store" in done.out
    assert duetime("job", "list", "--json", "--store", database).json == duetime("job", "list", "--json").json
    shown = [
        duetime("job", "show", past.dead[0], "--json", "--store", url).json for url in (past.url, database)
    ]
    assert shown[0] == shown[1]


def test_copy_back_and_compare(duetime: Duetime, past: Past) -> None:
    assert duetime("copy", "--from", past.url, "--to", "sqlite:///b.db").status == 0
    same = duetime("copy", "--from", past.url, "--to", "sqlite:///b.db", "--check", "--json")
    assert same.status == 0
    assert {one["kind"]: one["rows"] for one in same.json}["jobs"] == 4
    assert all(one["equal"] and one["checksum"] == one["checksum_of_target"] for one in same.json)
    duetime("job", "submit", "hello", "--store", "sqlite:///b.db")
    other = duetime("copy", "--from", past.url, "--to", "sqlite:///b.db", "--check")
    assert other.status == 1
    assert "is only in the target [copy_differs]" in other.err
    assert "4       5" in other.out


def test_copy_that_was_killed_is_resumed(
    duetime: Duetime, folder: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, 1_000)
    arguments = ["copy", "--from", "sqlite:///duetime.db", "--to", database]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, cwd=folder)
    assert killed.returncode == -9
    refused = duetime("job", "submit", "hello", "--store", database)
    assert refused.err.count("unfinished copy of sqlite:///") == 1
    assert refused.err.endswith("[copy_unfinished]\n")
    monkeypatch.setattr(store_copy, "PAGE", 200)
    done = duetime(*arguments, "--json")
    assert done.status == 0, done.err
    assert {one["kind"]: one["written"] for one in done.json}["jobs"] == 800
    assert rows_of(database) == rows_of("sqlite:///duetime.db")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_live_copy_lets_the_queues_work_again(
    duetime: Duetime, folder: Path, number: signal.Signals
) -> None:
    async def stay() -> None:
        store = SqliteStore(folder / "duetime.db")
        await store.open()
        await joined(store)
        await store.add_jobs(jobs(1, await store.time() + HOUR))
        await store.close()

    asyncio.run(stay())
    command = [COMMAND, "copy", "--live", "--to", "sqlite:///b.db"]
    copying = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert copying.stderr is not None
    try:
        assert "stop 1 node of the source now" in copying.stderr.readline()
        assert [one["paused"] for one in duetime("queue", "list", "--json").json] == [True]
        copying.send_signal(number)
        _, err = copying.communicate(timeout=60)
    finally:
        copying.kill()
        copying.communicate()
    assert copying.returncode == 130
    assert err == "interrupted: the queues of the source are as before; run it again to finish the copy\n"
    assert [one["paused"] for one in duetime("queue", "list", "--json").json] == [False]


def test_lost_jobs_are_reported(duetime: Duetime, folder: Path) -> None:
    """A node was killed: its job goes on as lost in the new store."""

    async def kill() -> None:
        store = SqliteStore(folder / "duetime.db")
        await store.open()
        node = await joined(store)
        await started(store, node, job(await store.time() - HOUR))
        await store.leave(node)
        await store.close()

    asyncio.run(kill())
    done = duetime("copy", "--to", "sqlite:///b.db")
    assert done.status == 0
    assert "1 job had no end when the source stopped" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "sqlite:///missing.db"], "--from: there is no file .*missing.db.*config_invalid"),
        (["--from", "memory://"], "--from: 'memory://' ends with its process: name a store that stays"),
        (["--from", "oracle://x"], "no store speaks 'oracle'.*store_unknown"),
        (["--from", "sqlite:///./b.db"], "--to: sqlite:///.*b.db is the source, too: name another store"),
        (["--check"], "--to: there is no file .*b.db"),
        (["--wait", "5m"], "--wait works only with --live.*usage"),
        (["--live", "--check"], "give --check or --live, not both.*usage"),
        (["--live", "--wait", "soon"], "--wait: .*soon.* is not a duration.*input_invalid"),
    ],
)
def test_wrong_use(duetime: Duetime, past: Past, arguments: list[str], message: str) -> None:
    wrong = duetime("copy", *arguments, "--to", "sqlite:///b.db")
    assert wrong.status == 2
    assert wrong.err.startswith("error: ")
    assert re.search(message, wrong.err), wrong.err
    assert not Path("missing.db").exists()


def test_target_is_required(duetime: Duetime) -> None:
    wrong = duetime("copy")
    assert wrong.status == 2
    assert "--to" in wrong.err


def test_passwords_are_not_stored() -> None:
    place = place_of("postgresql://me:secret@db:5432/duetime?sslpassword=secret&pooler=transaction")
    assert place == "postgresql://db:5432/duetime?sslpassword=***&pooler=transaction"
