"""Several processes on one SQLite file: what they hear of one another, and what death, forks and full disks leave behind (2.D)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from duetime.model.job import JobFilter, State
from duetime.model.lease import NodeId
from duetime.store import Hint, JobHint
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.connection import connect
from duetime.testing.conformance.drafts import TENANT, joined

PATIENCE = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "duetime.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
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
        assert heard[0] == JobHint("*", 0, 0)
        unsubscribe()
        assert store._listeners._watcher is None

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
from duetime.stores.sqlite import SqliteStore
from duetime.testing.conformance.drafts import add, job, jobs, joined, request, success

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    await store.open()
{body}

asyncio.run(main())
"""


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
