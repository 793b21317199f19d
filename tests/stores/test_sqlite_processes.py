"""Several processes on one SQLite file: hints between them, and the effects of death, forks and full
disks."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from duetime.errors import StoreFull
from duetime.model.hint import DoneHint, Hint, JobHint
from duetime.model.job import HIGHEST_PRIORITY, Claimed, JobFilter, State
from duetime.model.lease import NodeId
from duetime.store import OfDeadNodes
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.connection import connect
from duetime.testing.conformance.drafts import (
    HOUR,
    TENANT,
    add,
    announce,
    claim,
    job,
    jobs,
    joined,
    limit,
    live_counts,
    loss,
    request,
    set_limits,
    settle,
    started,
)

pytestmark = pytest.mark.slow

TIMEOUT_SECONDS = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "duetime.db"


@pytest.fixture
async def store(path: Path, sqlite_template: Path) -> AsyncIterator[SqliteStore]:
    shutil.copyfile(sqlite_template, path)
    opened = SqliteStore(path)
    await opened.open()
    yield opened
    await opened.close()


class TestProcesses:
    async def test_changes_of_another_process_are_noticed(self, store: SqliteStore, path: Path) -> None:
        heard, woken = list[Hint](), asyncio.Event()

        def listen(hint: Hint) -> None:
            heard.append(hint)
            woken.set()

        unsubscribe = store.subscribe(listen)
        with script(path, "await store.add_jobs([job(await store.time())])") as process:
            await asyncio.wait_for(woken.wait(), TIMEOUT_SECONDS)
            assert process.wait(TIMEOUT_SECONDS) == 0
        assert heard[:2] == [JobHint("queue", 5, 0), JobHint("*", HIGHEST_PRIORITY, 0)]
        unsubscribe()
        assert store._notifier.poller is None

    async def test_end_of_an_awaited_job_in_another_process_is_announced(
        self, store: SqliteStore, path: Path
    ) -> None:
        """Only jobs that a caller waits for; also a job that ends before there is a listener."""
        node, now = await joined(store), await store.time()
        early, awaited, other = [await started(store, node, job(now)) for _ in range(3)]
        assert await announce(store, early.id)
        await settled_elsewhere(path, early)
        heard, woken = list[Hint](), asyncio.Event()

        def listen(hint: Hint) -> None:
            if isinstance(hint, DoneHint):
                heard.append(hint)
                woken.set()

        store.subscribe(listen)
        await asyncio.wait_for(woken.wait(), TIMEOUT_SECONDS)
        woken.clear()
        assert await announce(store, awaited.id)
        await settled_elsewhere(path, other)
        await settled_elsewhere(path, awaited)
        await asyncio.wait_for(woken.wait(), TIMEOUT_SECONDS)
        assert heard == [DoneHint(early.id), DoneHint(awaited.id)]
        assert not store._notifier.awaited

    async def test_freed_permit_is_noticed_in_another_process(self, store: SqliteStore, path: Path) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(max_running=1))
        running = await started(store, node, job(now, limit_key="a"))
        await add(store, job(now, limit_key="a"))
        assert await claim(store, request(node)) == []
        woken = asyncio.Event()
        store.subscribe(lambda hint: woken.set() if hint == JobHint("*", HIGHEST_PRIORITY, 0) else None)
        await settled_elsewhere(path, running)
        await asyncio.wait_for(woken.wait(), TIMEOUT_SECONDS)

    async def test_node_of_a_dead_process_expires_immediately(self, store: SqliteStore, path: Path) -> None:
        """The kernel releases the lock of a dead process, so other nodes need not wait for the end of its
        lease."""
        me = await joined(store)
        with script(path, "print(await joined(store), flush=True); sys.stdin.read()") as process:
            node = NodeId(int(read_line(process)))
            assert await store.expire_nodes(me) == []
            os.kill(process.pid, signal.SIGSTOP)
            assert await store.expire_nodes(me) == []
            process.kill()
            process.wait(TIMEOUT_SECONDS)
        assert await store.expire_nodes(node) == []
        assert await store.expire_nodes(me) == [node]
        assert await store.expire_nodes(me) == []

    async def test_forked_child_does_not_keep_the_lock_of_its_parent(
        self, store: SqliteStore, path: Path
    ) -> None:
        me = await joined(store)
        body = (
            "print(await joined(store), flush=True); "
            "os.fork() or print(os.getpid(), flush=True); signal.pause()"
        )
        with script(path, body) as process:
            node, child = int(read_line(process)), int(read_line(process))
            process.kill()
            process.wait(TIMEOUT_SECONDS)
            assert await store.expire_nodes(me) == [node]
            os.kill(child, signal.SIGKILL)

    async def test_replaced_lock_file_does_not_expire_nodes(self, store: SqliteStore, path: Path) -> None:
        me, other = await joined(store), await joined(store)
        path.with_name(f"{path.name}-nodes").unlink()
        another = await joined(store)
        assert await store.expire_nodes(me) == []
        assert {node.id for node in await store.nodes() if not node.dead} == {me, other, another}

    def test_lock_file_is_private(self, path: Path) -> None:
        with script(path, "await joined(store)") as process:
            assert process.wait(TIMEOUT_SECONDS) == 0
        assert path.with_name(f"{path.name}-nodes").stat().st_mode & 0o777 == 0o600

    def test_store_is_refused_in_a_forked_child(self, path: Path) -> None:
        body = """
            child = os.fork()
            if child == 0:
                try:
                    await store.add_jobs([job(0)])
                except StoreError as refused:
                    os._exit(0 if "fork" in str(refused) else 1)
                os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
            await store.add_jobs([job(0)])
        """
        with script(path, body) as process:
            assert process.wait(TIMEOUT_SECONDS) == 0

    def test_unclosed_store_does_not_block_the_exit(self, path: Path) -> None:
        with script(
            path, "store.subscribe(print); await store.add_jobs([job(0)]); await store.queues(); sys.exit(7)"
        ) as process:
            assert process.wait(TIMEOUT_SECONDS) == 7

    @pytest.mark.slow
    async def test_eight_processes_lose_no_job_and_run_none_twice(
        self, store: SqliteStore, path: Path
    ) -> None:
        """And no process gets an error because the file is locked."""
        body = """
            node, now = await joined(store), await store.time()
            drafts = jobs(150, now)
            await asyncio.gather(*(store.add_jobs([draft]) for draft in drafts[:50]))
            for draft in drafts[50:100]:
                await store.add_jobs([draft])
            await store.add_jobs(drafts[100:])
            print("added", *(draft.id for draft in drafts), flush=True)
            sys.stdin.readline()
            while claimed := (await store.claim(request(node, room=7))).jobs:
                assert await settle(store, [success(one, now) for one in claimed]) == []
                print("ran", *(one.id for one in claimed), flush=True)
        """
        processes = [script(path, body) for _ in range(8)]
        added = [
            line
            for process in processes
            for line in (await asyncio.to_thread(read_line, process)).split()[1:]
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = await asyncio.gather(*(asyncio.to_thread(read_rest, process) for process in processes))
        assert [process.returncode for process in processes] == [0] * 8
        ran = [word for output in said for word in output.split() if word != "ran"]
        assert len(added) == 1_200
        assert sorted(ran) == sorted(added)
        assert (
            len(await store.list_jobs(JobFilter(TENANT, states=frozenset({State.SUCCEEDED})), 2_000)) == 1_200
        )

    @pytest.mark.slow
    async def test_acknowledged_jobs_survive_kills(self, store: SqliteStore, path: Path) -> None:
        """Thirty kills, three writers at a time, each at another instant."""
        body = """
            while True:
                drafts = jobs(3, await store.time())
                await asyncio.gather(*(store.add_jobs([draft]) for draft in drafts))
                print(*(draft.id for draft in drafts), flush=True)
        """
        acknowledged: list[UUID] = []
        for round_number in range(10):
            processes = [script(path, body) for _ in range(3)]
            for position, process in enumerate(processes):
                lines = [
                    await asyncio.to_thread(read_line, process)
                    for _ in range(1 + 3 * round_number + position)
                ]
                process.kill()
                complete = "".join(lines) + await asyncio.to_thread(read_rest, process)
                acknowledged += map(UUID, complete.split())
        present = {found.id for found in await store.list_jobs(JobFilter(TENANT), 1_000_000)}
        assert len(acknowledged) > 30 * 3
        assert set(acknowledged) <= present
        assert (await asyncio.to_thread(_integrity, path)) == "ok"

    @pytest.mark.slow
    async def test_checkpoints_and_once_markers_survive_kills(self, store: SqliteStore, path: Path) -> None:
        """Each process goes on from the last acknowledged checkpoint, and no marked step is done twice."""
        body = """
            me = await joined(store)
            for gone in await store.expire_nodes(me):
                pass
            lost = await store.running_jobs(OfDeadNodes(), 10)
            await store.settle([loss(row, await store.time()) for row in lost])
            [claimed] = (await store.claim(request(me))).jobs
            step = int(claimed.checkpoint or 0)
            print("from", step, flush=True)
            while True:
                step += 1
                reply = await store.take_once(claimed.id, claimed.attempt, str(step), new_id(0))
                if reply is OnceReply.TAKEN:
                    print("did", step, flush=True)
                update = AttemptUpdate(claimed.id, claimed.attempt, str(step).encode(), b"")
                assert await store.save_progress([update]) == []
                print("saved", step, flush=True)
        """
        await add(store, job(await store.time()))
        saved, did = 0, list[int]()
        for kill in range(10):
            process = script(path, body)
            lines = [await asyncio.to_thread(read_line, process) for _ in range(4 + 3 * kill)]
            process.kill()
            words = ("".join(lines) + await asyncio.to_thread(read_rest, process)).split()
            said = list(zip(words[::2], map(int, words[1::2]), strict=True))
            assert said[0][0] == "from"
            assert saved <= said[0][1] <= saved + 1
            saved = max([saved, *(step for word, step in said if word == "saved")])
            did += [step for word, step in said if word == "did"]
        assert saved > 20
        assert len(did) == len(set(did))
        # Only a kill between the commit of a marker and its output may hide one.
        assert len(did) >= max(did) - 10

    @pytest.mark.slow
    async def test_transactional_effects_happen_once_while_workers_are_killed(
        self, store: SqliteStore, path: Path
    ) -> None:
        """Each job adds 1 to a balance in its own transaction; workers die at any instant, and the sum is
        exact."""
        number = 1_000
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE accounts (balance INTEGER NOT NULL)")
        connection.execute("INSERT INTO accounts VALUES (0)")
        connection.commit()
        connection.close()
        now, me = await store.time(), await joined(store)
        await store.add_jobs(jobs(number, now - 1_000_000))
        body = """
            node = await joined(store)
            while claimed := (await store.claim(request(node, room=5))).jobs:
                for row in claimed:
                    transaction = await store.begin_transaction()
                    await transaction.connection.execute("UPDATE accounts SET balance = balance + $1", 1)
                    print("about to", flush=True)
                    await transaction.finish(success(row, await store.time()))
        """
        kills = 0
        while await live_counts(store):
            processes = [script(path, body) for _ in range(2)]
            for position, process in enumerate(processes):
                assert process.stdout is not None
                for _ in range(2 + 7 * (kills + position)):
                    await asyncio.to_thread(process.stdout.readline)
                process.kill()
                await asyncio.to_thread(read_rest, process)
                kills += 1
            await store.expire_nodes(me)
            assert (
                await settle(
                    store,
                    [loss(row, await store.time()) for row in await store.running_jobs(OfDeadNodes(), 100)],
                )
                == []
            )
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT balance FROM accounts").fetchone() == (number,)
        connection.close()
        listed = await store.list_jobs(JobFilter(TENANT), 1_000)
        assert Counter(found.state for found in listed) == {State.SUCCEEDED: number}
        assert kills > 4
        assert max(found.attempt for found in listed) > 1, "no kill hit a running job"

    @pytest.mark.slow
    async def test_limits_hold_over_processes(self, store: SqliteStore, path: Path) -> None:
        """Three processes, ten limit keys of two permits each; files record which jobs run at the same
        time."""
        number = 300
        now, running_files = await store.time(), path.with_name("running_files")
        running_files.mkdir()
        await set_limits(store, limit(max_running=2))
        await store.add_jobs([job(now - 1_000_000 + at, limit_key=f"{at % 10}") for at in range(number)])
        body = f"""
            node, empty = await joined(store), 0
            while empty < 50:
                claimed = (await store.claim(request(node, room=4, sweep=empty > 10))).jobs
                for row in claimed:
                    Path({str(running_files)!r}, f"{{row.limit_key}}-{{row.id}}").touch()
                    files = os.listdir({str(running_files)!r})
                    running = [name for name in files if name.startswith(f"{{row.limit_key}}-")]
                    assert len(running) <= 2, running
                for row in claimed:
                    Path({str(running_files)!r}, f"{{row.limit_key}}-{{row.id}}").unlink()
                await store.settle([success(row, now) for row in claimed])
                empty = 0 if claimed else empty + 1
        """.replace("success(row, now)", "success(row, row.due_at)")
        processes = [script(path, body) for _ in range(3)]
        for process in processes:
            await asyncio.to_thread(process.communicate)
        assert [process.returncode for process in processes] == [0] * 3
        listed = await store.list_jobs(JobFilter(TENANT), 1_000)
        assert Counter(found.state for found in listed) == {State.SUCCEEDED: number}

    def test_full_disk_loses_nothing(self, path: Path) -> None:
        """No acknowledged job is lost, none is stored by halves, small batches still fit, and the store goes
        on when there is room."""
        body = """
            now = await store.time()
            kept = await add(store, job(now))
            limit = 400_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            refused = jobs(2_000, now, payload=b"x" * 1_000)
            try:
                await store.add_jobs(refused)
            except StoreFull as full:
                assert str(store.path) in str(full)
            else:
                raise AssertionError("no batch was refused")
            large, small = await asyncio.gather(
                store.add_jobs(refused), store.add_jobs([job(now)]), return_exceptions=True
            )
            assert isinstance(large, StoreFull), large
            assert len(small) == 1, small
            assert [count.pending for count in (await live_counts(store)).values()] == [2]
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert len(await store.add_jobs(refused)) == 2_000
            assert [count.pending for count in (await live_counts(store)).values()] == [2_002]
        """
        with script(path, body) as process:
            assert process.wait(TIMEOUT_SECONDS) == 0
        assert _integrity(path) == "ok"

    def test_log_that_may_not_grow_is_emptied(self, path: Path) -> None:
        """Long before it has the size at which SQLite empties it."""
        body = """
            node = await joined(store)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
            for number in range(300):
                assert (await store.beat(node, number + 1_000_000)).alive
        """
        with script(path, body) as process:
            assert process.wait(TIMEOUT_SECONDS) == 0

    async def test_room_that_came_back_lasts(self, small_disk: Path) -> None:
        """The write-ahead log does not take all of it."""
        store = SqliteStore(small_disk / "d.db")
        await store.open()
        now, node = await store.time(), await joined(store)
        (small_disk / "stays").write_bytes(bytes(3_000_000))
        (small_disk / "goes").write_bytes(bytes(1_500_000))
        await fails_in_the_end(lambda: store.add_jobs(jobs(20, now, payload=b"x" * 1_000)))
        with suppress(OSError), (small_disk / "rest").open("wb", buffering=0) as rest:
            while True:
                rest.write(bytes(4_096))
        await fails_in_the_end(lambda: store.beat(node, HOUR))
        (small_disk / "goes").unlink()
        for number in range(500):
            assert (await store.beat(node, HOUR + number)).alive
        await store.close()


async def fails_in_the_end(write: Callable[[], Awaitable[object]]) -> None:
    with suppress(StoreFull):
        while True:
            await write()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


SCRIPT = """
import asyncio, os, resource, signal, sys
from pathlib import Path
from duetime.errors import StoreError, StoreFull
from duetime.model.lease import NodeId
from duetime.stores.sqlite import SqliteStore
from duetime.store import AttemptUpdate, OfDeadNodes, OfNode, OnceReply
from duetime.testing.conformance.drafts import (
    add, job, jobs, joined, live_counts, loss, new_id, request, settle, success
)

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    await store.open()
{body}

asyncio.run(main())
"""


async def settled_elsewhere(path: Path, claimed: Claimed) -> None:
    body = f"""
        running = await store.running_jobs(OfNode(NodeId({claimed_by(path, claimed)})), 100)
        [row] = [row for row in running if str(row.id) == "{claimed.id}"]
        await store.settle([success(row, await store.time())])
    """
    with script(path, body) as process:
        assert await asyncio.to_thread(process.wait, TIMEOUT_SECONDS) == 0


def claimed_by(path: Path, claimed: Claimed) -> int:
    connection = connect(path)
    node = connection.execute("SELECT node FROM jobs WHERE id = ?", (claimed.id.bytes,)).fetchone()[0]
    connection.close()
    return int(node)


class Script(subprocess.Popen[str]):
    """A process that does not outlive the test."""

    def __exit__(self, *raised: Any) -> None:
        self.kill()
        super().__exit__(*raised)


def script(path: Path, body: str) -> Script:
    """Another process that opens the same file and runs these lines."""
    text = SCRIPT.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))
    return Script(
        [sys.executable, "-c", text, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def read_line(process: Script) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the process ended without output"
    return line


def read_rest(process: Script) -> str:
    """The complete lines it printed before its end."""
    assert process.stdout is not None
    with process:
        rest = process.stdout.read()
        process.wait(TIMEOUT_SECONDS)
    return rest[: rest.rfind("\n") + 1]


def _integrity(path: Path) -> str:
    connection = connect(path)
    found = str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    connection.close()
    return found
