"""Several processes on one SQLite file: what they hear of one another, and what death, forks and full disks leave behind (2.D)."""

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
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from duetime.model.hint import DoneHint, Hint, JobHint
from duetime.model.job import HIGHEST_PRIORITY, Claimed, JobFilter, State
from duetime.model.lease import NodeId
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.connection import connect
from duetime.testing.conformance.drafts import TENANT, add, job, jobs, joined, loss, started

pytestmark = pytest.mark.slow

PATIENCE = 60.0


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
    async def test_another_process_is_heard(self, store: SqliteStore, path: Path) -> None:
        heard, woken = list[Hint](), asyncio.Event()

        def listen(hint: Hint) -> None:
            heard.append(hint)
            woken.set()

        unsubscribe = store.subscribe(listen)
        with script(path, "await store.add_jobs([job(await store.time())])") as process:
            await asyncio.wait_for(woken.wait(), PATIENCE)
            assert process.wait(PATIENCE) == 0
        assert heard[:2] == [JobHint("queue", HIGHEST_PRIORITY, 0), JobHint("*", HIGHEST_PRIORITY, 0)]
        unsubscribe()
        assert store._listeners._watcher is None

    async def test_the_end_of_an_awaited_job_in_another_process_is_heard(self, store: SqliteStore, path: Path) -> None:
        """Only of jobs somebody waits for; and of one that ends before anybody listens."""
        node, now = await joined(store), await store.time()
        early, awaited, other = [await started(store, node, job(now)) for _ in range(3)]
        assert await store.await_job(early.id)
        await settled_elsewhere(path, early)
        heard, woken = list[Hint](), asyncio.Event()

        def listen(hint: Hint) -> None:
            if isinstance(hint, DoneHint):
                heard.append(hint)
                woken.set()

        store.subscribe(listen)
        await asyncio.wait_for(woken.wait(), PATIENCE)
        woken.clear()
        assert await store.await_job(awaited.id)
        await settled_elsewhere(path, other)
        await settled_elsewhere(path, awaited)
        await asyncio.wait_for(woken.wait(), PATIENCE)
        assert heard == [DoneHint(early.id), DoneHint(awaited.id)]
        assert not store._awaited

    async def test_a_freed_gate_is_heard_in_another_process(self, store: SqliteStore, path: Path) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now, gate="a"))
        await add(store, job(now, gate="a"))
        woken = asyncio.Event()
        store.subscribe(lambda hint: woken.set() if hint == JobHint("*", HIGHEST_PRIORITY, 0) else None)
        await settled_elsewhere(path, running)
        await asyncio.wait_for(woken.wait(), PATIENCE)

    async def test_owner_gone(self, store: SqliteStore, path: Path) -> None:
        """A8: the kernel lets go of a dead process's lock, so nobody waits for its lease."""
        me = await joined(store)
        with script(path, "print(await joined(store), flush=True); sys.stdin.read()") as process:
            node = NodeId(int(read_line(process)))
            assert await store.bury(me) == []
            os.kill(process.pid, signal.SIGSTOP)
            assert await store.bury(me) == []
            process.kill()
            process.wait(PATIENCE)
        assert await store.bury(node) == []
        assert await store.bury(me) == [node]
        assert await store.bury(me) == []

    async def test_a_forked_child_does_not_keep_its_parent_alive(self, store: SqliteStore, path: Path) -> None:
        me = await joined(store)
        body = "print(await joined(store), flush=True); os.fork() or print(os.getpid(), flush=True); signal.pause()"
        with script(path, body) as process:
            node, child = int(read_line(process)), int(read_line(process))
            process.kill()
            process.wait(PATIENCE)
            assert await store.bury(me) == [node]
            os.kill(child, signal.SIGKILL)

    async def test_a_replaced_lock_file_proves_nothing(self, store: SqliteStore, path: Path) -> None:
        me, other = await joined(store), await joined(store)
        path.with_name(f"{path.name}-nodes").unlink()
        another = await joined(store)
        assert await store.bury(me) == []
        assert {node.id for node in await store.nodes() if not node.dead} == {me, other, another}

    def test_the_lock_file_is_private(self, path: Path) -> None:
        with script(path, "await joined(store)") as process:
            assert process.wait(PATIENCE) == 0
        assert path.with_name(f"{path.name}-nodes").stat().st_mode & 0o777 == 0o600

    def test_a_forked_child_is_refused(self, path: Path) -> None:
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
            assert process.wait(PATIENCE) == 0

    def test_an_unclosed_store_does_not_hang_the_exit(self, path: Path) -> None:
        with script(path, "store.subscribe(print); await store.add_jobs([job(0)]); await store.queues(); sys.exit(7)") as process:
            assert process.wait(PATIENCE) == 7

    @pytest.mark.slow
    async def test_d1_eight_processes(self, store: SqliteStore, path: Path) -> None:
        """No job lost, none run twice, and nobody hears that the file is locked."""
        body = """
            node, now = await joined(store), await store.time()
            drafts = jobs(150, now)
            await asyncio.gather(*(store.add_jobs([draft]) for draft in drafts[:50]))
            for draft in drafts[50:100]:
                await store.add_jobs([draft])
            await store.add_jobs(drafts[100:])
            print("added", *(draft.id for draft in drafts), flush=True)
            sys.stdin.readline()
            while claimed := await store.claim(request(node, room=7)):
                assert await store.settle([success(one, now) for one in claimed]) == []
                print("ran", *(one.id for one in claimed), flush=True)
        """
        processes = [script(path, body) for _ in range(8)]
        added = [line for process in processes for line in (await asyncio.to_thread(read_line, process)).split()[1:]]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = await asyncio.gather(*(asyncio.to_thread(read_rest, process) for process in processes))
        assert [process.returncode for process in processes] == [0] * 8
        ran = [word for output in said for word in output.split() if word != "ran"]
        assert len(added) == 1_200
        assert sorted(ran) == sorted(added)
        assert len(await store.list_jobs(JobFilter(TENANT, states=frozenset({State.SUCCEEDED})), 2_000)) == 1_200

    @pytest.mark.slow
    async def test_d2_killed_while_writing(self, store: SqliteStore, path: Path) -> None:
        """A17: thirty kills, three writers at a time, each at another moment; whatever was acknowledged is there."""
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
                lines = [await asyncio.to_thread(read_line, process) for _ in range(1 + 3 * round_number + position)]
                process.kill()
                complete = "".join(lines) + await asyncio.to_thread(read_rest, process)
                acknowledged += map(UUID, complete.split())
        present = {found.id for found in await store.list_jobs(JobFilter(TENANT), 1_000_000)}
        assert len(acknowledged) > 30 * 3
        assert set(acknowledged) <= present
        assert (await asyncio.to_thread(_integrity, path)) == "ok"

    @pytest.mark.slow
    async def test_checkpoints_and_marks_survive_kills(self, store: SqliteStore, path: Path) -> None:
        """A17: each process goes on from the last checkpoint anybody was told of, and nothing marked is done twice."""
        body = """
            me = await joined(store)
            for gone in await store.bury(me):
                pass
            await store.settle([loss(row, await store.time()) for row in await store.orphans(10)])
            [claimed] = await store.claim(request(me))
            step = int(claimed.checkpoint or 0)
            print("from", step, flush=True)
            while True:
                step += 1
                reply = await store.mark(claimed.id, claimed.attempt, str(step), new_id(0))
                if reply is MarkReply.TAKEN:
                    print("did", step, flush=True)
                assert await store.save([Note(claimed.id, claimed.attempt, str(step).encode(), b"")]) == []
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
        # A kill between the commit of a mark and the word about it is the only reason why one may be missing.
        assert len(did) >= max(did) - 10

    @pytest.mark.slow
    async def test_effects_exactly_once_while_workers_are_killed(self, store: SqliteStore, path: Path) -> None:
        """Each job adds 1 to a balance in its own transaction; workers die at any moment, and the sum is exact."""
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
            while claimed := await store.claim(request(node, room=5)):
                for row in claimed:
                    transaction = await store.transact()
                    await transaction.connection.execute("UPDATE accounts SET balance = balance + $1", 1)
                    print("about to", flush=True)
                    await transaction.finish(success(row, await store.time()))
        """
        kills = 0
        while await store.count_jobs():
            processes = [script(path, body) for _ in range(2)]
            for position, process in enumerate(processes):
                assert process.stdout is not None
                for _ in range(2 + 7 * (kills + position)):
                    await asyncio.to_thread(process.stdout.readline)
                process.kill()
                await asyncio.to_thread(read_rest, process)
                kills += 1
            await store.bury(me)
            assert await store.settle([loss(row, await store.time()) for row in await store.orphans(100)]) == []
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT balance FROM accounts").fetchone() == (number,)
        connection.close()
        listed = await store.list_jobs(JobFilter(TENANT), 1_000)
        assert Counter(found.state for found in listed) == {State.SUCCEEDED: number}
        assert kills > 4
        assert max(found.attempt for found in listed) > 1, "no kill met a job that ran"

    @pytest.mark.slow
    async def test_c7_limits_hold_over_processes(self, store: SqliteStore, path: Path) -> None:
        """Three processes, ten gates of two places each; who runs when is recorded outside the store, by files."""
        number = 300
        now, places = await store.time(), path.with_name("places")
        places.mkdir()
        await store.add_jobs([job(now - 1_000_000 + at, gate=f"{at % 10}") for at in range(number)])
        body = f"""
            node, empty = await joined(store), 0
            while empty < 50:
                claimed = await store.claim(request(node, room=4, bounds=(bound(most=2),)))
                for row in claimed:
                    Path({str(places)!r}, f"{{row.gate}}-{{row.id}}").touch()
                    running = [name for name in os.listdir({str(places)!r}) if name.startswith(f"{{row.gate}}-")]
                    assert len(running) <= 2, running
                for row in claimed:
                    Path({str(places)!r}, f"{{row.gate}}-{{row.id}}").unlink()
                await store.settle([success(row, now) for row in claimed])
                empty = 0 if claimed else empty + 1
        """.replace("success(row, now)", "success(row, row.due_at)")
        processes = [script(path, body) for _ in range(3)]
        for process in processes:
            await asyncio.to_thread(process.communicate)
        assert [process.returncode for process in processes] == [0] * 3
        listed = await store.list_jobs(JobFilter(TENANT), 1_000)
        assert Counter(found.state for found in listed) == {State.SUCCEEDED: number}

    def test_d5_full_disk(self, path: Path) -> None:
        """Nothing acknowledged is lost, nothing is half-written, small things fit where large ones do not, and room helps."""
        body = """
            now = await store.time()
            kept = await add(store, job(now))
            limit = 400_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            refused = jobs(2_000, now, payload=b"x" * 1_000)
            try:
                await store.add_jobs(refused)
            except StoreFull as full:
                assert str(store._path) in str(full)
            else:
                raise AssertionError("nothing was refused")
            large, small = await asyncio.gather(store.add_jobs(refused), store.add_jobs([job(now)]), return_exceptions=True)
            assert isinstance(large, StoreFull), large
            assert len(small) == 1, small
            assert [count.pending for count in await store.count_jobs()] == [2]
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert len(await store.add_jobs(refused)) == 2_000
            assert [count.pending for count in await store.count_jobs()] == [2_002]
        """
        with script(path, body) as process:
            assert process.wait(PATIENCE) == 0
        assert _integrity(path) == "ok"


SCRIPT = """
import asyncio, os, resource, signal, sys
from pathlib import Path
from duetime.errors import StoreError, StoreFull
from duetime.model.lease import NodeId
from duetime.stores.sqlite import SqliteStore
from duetime.store import MarkReply, Note
from duetime.testing.conformance.drafts import add, bound, job, jobs, joined, loss, new_id, request, success

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    await store.open()
{body}

asyncio.run(main())
"""


async def settled_elsewhere(path: Path, claimed: Claimed) -> None:
    body = f"""
        [row] = [row for row in await store.held(NodeId({claimed_by(path, claimed)})) if str(row.id) == "{claimed.id}"]
        await store.settle([success(row, await store.time())])
    """
    with script(path, body) as process:
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0


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
    return Script([sys.executable, "-c", text, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read_line(process: Script) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the process ended before it said anything"
    return line


def read_rest(process: Script) -> str:
    """The complete lines it said before its end."""
    assert process.stdout is not None
    with process:
        rest = process.stdout.read()
        process.wait(PATIENCE)
    return rest[: rest.rfind("\n") + 1]


def _integrity(path: Path) -> str:
    connection = connect(path)
    found = str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    connection.close()
    return found
