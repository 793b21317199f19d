"""Yesterday's backup next to production: nothing starts until it is adopted, and then what was decided."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from duetime.model.identity import MAX_LAG
from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.model.stored import JobRow, RowKind, row_key
from duetime.model.target import HTTP, HttpTarget
from duetime.model.url import parse
from duetime.model.when import Cron
from duetime.stores import from_url
from duetime.testing.conformance.drafts import HOUR, add, claim, job, joined, put, request, schedule
from tests.cli.conftest import Duetime
from tests.cli.node import COMMAND, Node
from tests.servers.agent import Agent
from tests.servers.postgres import PostgresServer, binaries

LEASE = 1  # seconds
BATCH = 100  # jobs of one transaction


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    folder = tmp_path / "agent"
    folder.mkdir()
    with Agent(folder) as started:
        yield started


def fill(url: str, agent: Agent) -> int:
    """A store as it was yesterday: an hourly schedule, a pending and a running job. Returns how many fires of
    the schedule are missed by now."""
    target = HttpTarget(parse(f"{agent.url}/call", "url"))

    async def write() -> int:
        store = from_url(url)
        await store.migrate()
        await store.open()
        now = await store.time()
        # No fire is near: the test would count it.
        when = Cron(f"{(to_datetime(now).minute + 30) % 60} * * * *")
        cursor = when.next_us(now - 24 * HOUR)
        assert cursor is not None
        http = {"target": HTTP, "target_spec": target.to_spec()}
        await put(store, schedule("hourly", when=when, **http), cursor)
        node = await joined(store, SECOND)
        running = await add(store, job(now - 24 * HOUR, **http))
        lanes = request(node, targets=(HTTP,))
        assert [one.id for one in await claim(store, lanes)] == [running.id]
        await add(store, job(now - 23 * HOUR, **http))
        await store.close()
        return _between(when, cursor, now)

    return asyncio.run(write())


def _between(when: Cron, first: Micros, until: Micros) -> int:
    count, moment = 0, first
    while moment < until:
        count += 1
        following = when.next_us(moment)
        assert following is not None
        moment = following
    return count


def refused(folder: Path, url: str) -> str:
    """A node on this store ends immediately, and says why."""
    done = subprocess.run(
        [COMMAND, "serve", "--store", url, "--port", "0"], cwd=folder, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert done.stderr.endswith("[store_not_adopted]\n"), done.stderr
    return done.stderr


def serve_until(folder: Path, url: str, agent: Agent, calls: int) -> None:
    """Run a node until it has made so many calls, and one more that is submitted meanwhile."""
    node = Node(folder, "serve", "--store", url)
    try:
        node.until("http://")
        subprocess.run(
            [COMMAND, "job", "submit", f"{agent.url}/fresh", "--store", url], cwd=folder, check=True,
            capture_output=True,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while len(agent) < calls + 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        node.end(signal.SIGTERM)
    finally:
        node.kill()
    assert len(agent) == calls + 1


def states(duetime: Duetime, url: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in duetime("job", "list", "--limit", "1000", "--json", "--store", url).json:
        found[one["state"]] = found.get(one["state"], 0) + 1
    return found


def test_backup_that_is_started_calls_nothing(duetime: Duetime, folder: Path, agent: Agent) -> None:
    missed = fill("sqlite:///production.db", agent)
    assert duetime("doctor", "--store", "sqlite:///production.db").out.startswith("store")
    done = duetime("backup", "backup.db", "--store", "sqlite:///production.db")
    assert (done.status, done.out.split(":")[0]) == (0, "backup.db"), done.err
    assert "backup of" in refused(folder, "sqlite:///backup.db")
    assert duetime("restore", "backup.db", "--to", "sqlite:///restored.db").status == 0
    assert "was restored from" in refused(folder, "sqlite:///restored.db")
    plan = duetime("adopt", "--plan", "--json", "--store", "sqlite:///restored.db").json
    assert [(one["schedule"], one["fires"]) for one in plan["missed"]] == [("hourly", missed)]
    assert (plan["late_jobs"], plan["running_jobs"]) == (1, 1)
    assert refused(folder, "sqlite:///restored.db")  # a plan changes nothing
    assert len(agent) == 0


@pytest.mark.parametrize(
    ("missed", "jobs", "calls", "skipped"),
    [("skip", "cancel", 0, 0), ("latest", "run", 3, -1), ("all", "run", 2, None)],
)
def test_adopted_store_does_what_was_decided(
    duetime: Duetime, folder: Path, agent: Agent, missed: str, jobs: str, calls: int, skipped: int | None
) -> None:
    fires = fill("sqlite:///production.db", agent)
    assert duetime("backup", "backup.db", "--store", "sqlite:///production.db").status == 0
    url = "sqlite:///restored.db"
    assert duetime("restore", "backup.db", "--to", url).status == 0
    undecided = duetime("adopt", "--store", url)
    assert (undecided.status, undecided.err.split(":")[1]) == (2, " --missed")
    assert f"{fires} fires missed" in undecided.out
    undecided = duetime("adopt", "--missed", missed, "--store", url)
    assert (undecided.status, undecided.err.split(":")[1]) == (2, " --jobs")
    assert duetime("adopt", "--missed", missed, "--jobs", jobs, "--store", url).status == 0
    for flags in ((), ("--plan",)):
        again = duetime("adopt", *flags, "--store", url)
        assert (again.status, again.out) == (0, "nothing to do: nodes can start\n")
    serve_until(folder, url, agent, calls + (fires if missed == "all" else 0))
    ended = states(duetime, url)
    assert ended.get("skipped", 0) == (0 if skipped is None else fires + skipped)
    assert ended.get("cancelled", 0) == (2 if jobs == "cancel" else 0)
    assert set(ended) <= {"succeeded", "skipped", "cancelled"}


def test_copied_file_is_refused(duetime: Duetime, folder: Path, agent: Agent) -> None:
    fill("sqlite:///production.db", agent)
    assert duetime("job", "list", "--store", "sqlite:///production.db").status == 0
    shutil.copy("production.db", "copy.db")
    listed = duetime("job", "list", "--store", "sqlite:///copy.db")
    assert (listed.status, "is a copy" in listed.err) == (1, True)
    (folder / "production.db").rename("moved.db")
    assert duetime("job", "list", "--store", "sqlite:///moved.db").status == 0


@pytest.mark.slow
def test_older_file_in_place_of_the_store_is_refused(duetime: Duetime, folder: Path) -> None:
    """The same inode: the file of the locks, which stays, tells that a node worked after the copy was made."""
    database, lock_file = folder / "duetime.db", folder / "duetime.db-nodes"
    work_until(folder, lock_file.exists)
    inode = database.stat().st_ino
    assert duetime("job", "list").status == 0
    subprocess.run(["cp", database, "old.db"], check=True)
    wanted = time.time() + LEASE + MAX_LAG / SECOND + 1
    work_until(folder, lambda: lock_file.stat().st_mtime > wanted)
    assert duetime("job", "list").status == 0
    subprocess.run(["cp", "old.db", database], check=True)
    assert database.stat().st_ino == inode
    listed = duetime("job", "list")
    assert (listed.status, "older than its last use" in listed.err) == (1, True), listed.err
    assert "older than its last use" in refused(folder, "sqlite:///duetime.db")
    assert duetime("adopt", "--missed", "skip", "--jobs", "run").status == 0
    assert duetime("job", "list").status == 0


def work_until(folder: Path, condition: Callable[[], bool]) -> None:
    """A node works on the store until then, and stops in order."""
    node = Node(folder, "serve", "--store", "sqlite:///duetime.db", "--lease", f"{LEASE}s")
    try:
        node.until("http://")
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert node.end(signal.SIGTERM)[0] == 0
    finally:
        node.kill()


def test_backup_under_load_is_complete(duetime: Duetime, folder: Path) -> None:
    """A process writes all the time. The backup is one state: all that was accepted before it began, then a
    part of what followed, in its order and in whole transactions."""
    assert duetime("migrate").status == 0
    before, during = asyncio.run(back_up_under_load(folder))
    assert len(before) >= 20
    assert during, "nothing was written while the backup ran"
    with closing(sqlite3.connect(folder / "backup.db")) as backup:
        assert backup.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    reason = duetime("adopt", "--plan", "--json", "--store", "sqlite:///backup.db").json["reason"]
    assert "backup of" in reason
    kept = asyncio.run(ids_of("sqlite:///backup.db"))
    assert {one for batch in before for one in batch} <= kept
    found = [len(kept & batch) for batch in during]
    assert set(found) <= {0, BATCH}, "a transaction is in the backup in part"
    assert found == sorted(found, reverse=True), "a later transaction is in the backup, an earlier one is not"
    assert len(kept) == len(before) * BATCH + sum(found)
    again = duetime("backup", "backup.db")
    assert (again.status, "exists already" in again.err) == (2, True)
    assert not list(folder.glob("*.partial"))


async def back_up_under_load(folder: Path) -> tuple[list[set[UUID]], list[set[UUID]]]:
    """The ids of the transactions that were accepted before the command began, and of later ones."""
    store = from_url("sqlite:///duetime.db")
    await store.open()
    batches: list[set[UUID]] = []
    ended = asyncio.Event()

    async def write() -> None:
        while not ended.is_set():
            drafts = [job(await store.time() + HOUR) for _ in range(BATCH)]
            await store.add_jobs(drafts)
            batches.append({draft.id for draft in drafts})

    writing = asyncio.create_task(write())
    while len(batches) < 20:
        await asyncio.sleep(0)
    begun = len(batches)
    process = await asyncio.create_subprocess_exec(COMMAND, "backup", "backup.db", cwd=folder)
    assert await process.wait() == 0
    ended.set()
    await writing
    await store.close()
    return batches[:begun], batches[begun:]


async def ids_of(url: str) -> set[UUID]:
    store = from_url(url)
    await store.open()
    found: set[UUID] = set()
    after = None
    while page := await store.read_rows(RowKind.JOBS, after, 1_000):
        found |= {row.id for row in page if isinstance(row, JobRow)}
        after = row_key(page[-1])
    await store.close()
    return found


def test_damaged_or_foreign_file_is_refused(duetime: Duetime, folder: Path) -> None:
    (folder / "other.db").write_text("this is not a database")
    done = duetime("restore", "other.db", "--to", "sqlite:///new.db")
    assert done.status == 1, done.err
    assert not (folder / "new.db").exists()
    missing = duetime("restore", "missing.db", "--to", "sqlite:///new.db")
    assert (missing.status, "there is no file" in missing.err) == (2, True)
    other = duetime("backup", "x.db", "--store", "postgresql://scheduler@db.example.org/duetime")
    assert (other.status, "pg_dump" in other.err) == (2, True)


@pytest.mark.parametrize(
    ("step", "problem", "status"),
    [
        ("tempfile.mkstemp", PermissionError(13, "Permission denied"), 2),
        ("name_file", OSError(30, "Read-only file system"), 2),
        ("_copy", sqlite3.OperationalError("database or disk is full"), 1),
    ],
)
def test_backup_that_cannot_be_written_names_its_file(
    duetime: Duetime,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    problem: Exception,
    status: int,
) -> None:
    def fail(*_: object, **more: object) -> None:
        raise problem

    if isinstance(problem, sqlite3.Error):
        problem.sqlite_errorcode = sqlite3.SQLITE_FULL
    duetime("migrate")
    with monkeypatch.context() as patched:
        patched.setattr(f"duetime.stores.sqlite.backup.{step}", fail)
        done = duetime("backup", "monday.db")
    assert done.status == status
    assert re.search(r"monday.db cannot be written \(.*\): make room", done.err), done.err
    assert sorted(file.name for file in folder.glob("monday*")) == []


def test_backup_on_a_file_system_without_hard_links(
    duetime: Duetime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    duetime("migrate")
    with monkeypatch.context() as patched:
        patched.setattr("os.link", fail)
        done = duetime("backup", "monday.db")
        assert done.status == 0, done.err
        again = duetime("backup", "monday.db")
    assert (again.status, "exists already" in again.err) == (2, True)
    assert [file.name for file in folder.glob("monday*")] == ["monday.db"]
    with closing(sqlite3.connect("monday.db")) as backup:
        assert backup.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# -- PostgreSQL
def dump(server: PostgresServer, database: str, file: Path) -> None:
    _run("pg_dump", "--format=custom", f"--file={file}", server.url(database))


def load(server: PostgresServer, file: Path, database: str, *options: str) -> None:
    _run("pg_restore", *options, f"--dbname={server.url(database)}", str(file))


def _run(program: str, *arguments: str) -> None:
    subprocess.run([str(binaries() / program), *arguments], check=True, capture_output=True)


@pytest.fixture
def databases(postgres_server: PostgresServer) -> Iterator[tuple[str, str]]:
    names = ("restore_production", "restore_copy")
    for name in names:
        postgres_server.create_database(name)
    yield names
    for name in names:
        postgres_server.drop_database(name)


def test_restored_dump_calls_nothing_until_it_is_adopted(
    duetime: Duetime, folder: Path, agent: Agent, postgres_server: PostgresServer, databases: tuple[str, str]
) -> None:
    """Next to production, with `pg_dump` and `pg_restore` and nothing else."""
    production, copy = databases
    urls = [postgres_server.url(name) for name in databases]
    missed = fill(urls[0], agent)
    assert duetime("job", "list", "--store", urls[0]).status == 0
    dump(postgres_server, production, folder / "dump")
    load(postgres_server, folder / "dump", copy)
    assert "is a copy or was restored" in refused(folder, urls[1])
    checked = duetime("doctor", "--store", urls[1])
    assert (checked.status, "[store_not_adopted]" in checked.out) == (1, True)
    assert duetime("job", "list", "--store", urls[0]).status == 0  # production is not affected
    assert len(agent) == 0
    plan = json.loads(duetime("adopt", "--plan", "--json", "--store", urls[1]).out)
    assert [one["fires"] for one in plan["missed"]] == [missed]
    done = duetime("adopt", "--missed", "latest", "--jobs", "run", "--store", urls[1])
    assert done.status == 0, done.err
    serve_until(folder, urls[1], agent, 3)


def test_dump_restored_into_the_same_database_is_noticed(
    duetime: Duetime, folder: Path, agent: Agent, postgres_server: PostgresServer, databases: tuple[str, str]
) -> None:
    production, _ = databases
    url = postgres_server.url(production)
    fill(url, agent)
    assert duetime("job", "list", "--store", url).status == 0
    dump(postgres_server, production, folder / "dump")
    load(postgres_server, folder / "dump", production, "--clean")
    assert refused(folder, url)
    assert duetime("adopt", "--missed", "skip", "--jobs", "cancel", "--store", url).status == 0
    assert duetime("job", "list", "--store", url).status == 0
    assert duetime("restore", "--to", url).status == 0  # a fence that an operator sets
    assert "was restored at" in refused(folder, url)
