"""The SQLite store: the conformance suite, and what is specific to it: its file, its query plans, its
threads."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

from duetime.errors import ConfigError, NotOpen, StoreError, StoreFull, StoreUnavailable
from duetime.model.hint import CancelHint, EventHint, JobHint
from duetime.model.instant import SECOND
from duetime.model.job import JobFilter, State
from duetime.model.lease import NodeDraft
from duetime.store import EVENTS_KEPT_FOR, Store
from duetime.stores import from_url
from duetime.stores.sql import retention
from duetime.stores.sql.store import READ, SUBMIT
from duetime.stores.sqlite import SqliteStore, connection, errors, location, schema, write_lock
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.notifier import LOOK_AT_EVERYTHING, ForeignChanges
from duetime.stores.sqlite.session import STATEMENTS, SqliteSession, SqliteTransaction, bound
from duetime.testing.conformance import StoreConformance
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    QUEUE,
    TENANT,
    add,
    claim_one,
    finished,
    job,
    jobs,
    joined,
    live_counts,
    stored,
)
from duetime.testing.conformance.state_machine import StoreMachine


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


@pytest.fixture
async def second_store(store: SqliteStore) -> AsyncIterator[SqliteStore]:
    opened = store.clone()
    await opened.open()
    yield opened
    await opened.close()


async def test_remote_node_outlives_the_process_that_joined_for_it(
    store: SqliteStore, second_store: SqliteStore
) -> None:
    remote = await second_store.join(NodeDraft("far", ("worker",), "", remote=True), 3_600 * SECOND)
    gone = await second_store.join(NodeDraft("near", ("worker",), ""), 3_600 * SECOND)
    me = await store.join(NodeDraft("me", ("worker",), ""), 3_600 * SECOND)
    await second_store.close()
    assert await store.expire_nodes(me) == [gone]
    assert (await store.beat(remote, 3_600 * SECOND)).alive


class TestSqlite(StoreConformance):
    """Everything the contract says, with the fixtures of this file."""


class SqliteMachine(StoreMachine):
    def open_store(self) -> Store:
        self.folder = tempfile.mkdtemp(prefix="duetime-sqlite-")
        store = SqliteStore(Path(self.folder) / "duetime.db")
        self.run(store.open())
        return store

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


TestSqliteMachine = pytest.mark.slow(SqliteMachine.TestCase)
TestSqliteMachine.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)


class TestLocation:
    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("sqlite:///jobs.db", Path.cwd() / "jobs.db"),
            ("sqlite:///data/jobs.db", Path.cwd() / "data" / "jobs.db"),
            ("sqlite:////var/lib/jobs.db", Path("/var/lib/jobs.db")),
            ("sqlite:////var/lib/two%20words%3F.db", Path("/var/lib/two words?.db")),
        ],
    )
    def test_url_names_a_path(self, url: str, expected: Path) -> None:
        assert location.path_of(url) == expected

    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("sqlite://", "memory://"),
            ("sqlite:///", "memory://"),
            ("sqlite:///:memory:", "memory://"),
            ("sqlite://jobs.db", "three slashes"),
            ("sqlite:///jobs.db?mode=ro", "'mode'"),
            ("sqlite:///jobs.db#part", "#part"),
        ],
    )
    def test_unusable_url_is_refused(self, url: str, says: str) -> None:
        with pytest.raises(ConfigError, match=says):
            from_url(url)

    async def test_missing_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="missing does not exist"):
            await SqliteStore(tmp_path / "missing" / "duetime.db").open()

    async def test_folder_instead_of_a_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="is a folder"):
            await SqliteStore(tmp_path).open()

    async def test_folder_that_is_not_writable_is_refused(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(ConfigError, match=f"{path.parent} is not writable"):
            await SqliteStore(path).open()

    async def test_network_filesystem_is_refused(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        mounts = path.parent / "mounts"
        mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/export {path.parent} nfs4 rw 0 0\n")
        monkeypatch.setattr(location, "MOUNTS", mounts)
        with pytest.raises(ConfigError, match="nfs4"):
            await SqliteStore(path).open()

    def test_innermost_mount_decides(self, tmp_path: Path) -> None:
        mounts = (
            f"server:/ / nfs rw 0 0\n/dev/sda {tmp_path} ext4 rw 0 0\nserver:/x {tmp_path}-other nfs rw 0 0\n"
        )
        assert location.filesystem_of(tmp_path, mounts) == "ext4"
        assert location.filesystem_of(tmp_path.parent, mounts) == "nfs"
        assert location.filesystem_of(Path(f"{tmp_path}s"), mounts) == "nfs"


class TestFile:
    async def test_every_connection_is_durable(self, store: SqliteStore) -> None:
        async def pragmas(session: SqliteSession) -> tuple[object, ...]:
            return tuple(
                session.connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous")
            )

        assert await store._write(SUBMIT, pragmas) == await store._read(READ, pragmas) == ("wal", 2)

    def test_file_that_cannot_be_durable_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(StoreError, match="journal_mode"):
            connect(Path(":memory:"))

    @pytest.mark.parametrize("repeat", range(10))  # a race of microseconds
    async def test_stores_may_open_a_new_file_at_the_same_time(self, path: Path, repeat: int) -> None:
        stores = [SqliteStore(path) for _ in range(8)]
        await asyncio.gather(*(one.open() for one in stores))
        nodes = await asyncio.gather(*(joined(one) for one in stores))
        assert len(set(nodes)) == 8
        await asyncio.gather(*(one.close() for one in stores))

    async def test_file_that_is_not_a_database_is_refused(self, path: Path) -> None:
        path.write_bytes(b"Dear diary, " * 1_000)
        with pytest.raises(StoreError, match=str(path)):
            await SqliteStore(path).open()

    async def test_tables_of_another_program_are_refused(self, path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE jobs (title)")
        connection.close()
        with pytest.raises(StoreError, match="another program"):
            await SqliteStore(path).open()

    async def test_verbs_need_an_open_store(self, path: Path) -> None:
        store = SqliteStore(path)
        with pytest.raises(NotOpen):
            await store.queues()
        await store.open()
        draft = await add(store, job(await store.time()))
        await store.close()
        with pytest.raises(NotOpen):
            await store.add_jobs([draft])
        await store.open()
        assert (await stored(store, draft.id)).state is State.PENDING
        await store.close()

    @pytest.mark.parametrize("replaced", [False, True])
    async def test_file_that_was_deleted_or_replaced_takes_no_more_jobs(
        self, path: Path, replaced: bool
    ) -> None:
        store = SqliteStore(path)
        await store.open()
        await add(store, job(await store.time()))
        another = path.with_name("another.db")
        schema.migrate(another)
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
        if replaced:
            another.rename(path)
        try:
            with pytest.raises(
                StoreUnavailable, match="deleted or replaced while it was open: end every process"
            ):
                await store.add_jobs([job(await store.time())])
            assert path.exists() is replaced, "no new file hides the loss"
        finally:
            await store.close()
        if replaced:
            await store.open()
            draft = await add(store, job(await store.time()))
            assert (await stored(store, draft.id)).state is State.PENDING
            await store.close()

    def test_read_only_file_is_reported_as_full(self, path: Path) -> None:
        schema.migrate(path)
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute(STATEMENTS["raise_changes"])
        connection.close()
        assert isinstance(errors.translate(caught.value, path), StoreFull)

    @pytest.mark.parametrize(
        ("statement", "parameters", "uses"),
        [
            ("claimable", 4, "jobs_due (queue=? AND priority=? AND tenant=? AND due_at>? AND due_at<?)"),
            (
                "restricted_candidates",
                5,
                "jobs_restricted (queue=? AND priority=? AND tenant=? AND due_at<?)",
            ),
            ("start", 4, "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id=?)"),
            ("key_use", 1, "SEARCH jobs USING COVERING INDEX jobs_permit (limit_key=? AND permit>?)"),
            (
                "is_permit_in_use",
                2,
                "SEARCH jobs USING COVERING INDEX jobs_permit (limit_key=? AND permit=?)",
            ),
            ("started_of_schedules", 1, "jobs_schedule (schedule_id=? AND attempt>?)"),
            ("wait", 2, "SEARCH jobs USING COVERING INDEX sqlite_autoindex_jobs_1 (id=?)"),
            ("best_waiting", 2, "jobs_waiting (waits_for=?)"),
            ("promote", 2, "jobs_waiting (waits_for=?)"),
            ("waited_for", 2, "jobs_waiting (waits_for>?)"),
            ("restricted_queues", 0, "queues_restricted"),
            ("live_holder", 2, "jobs_unique (tenant=? AND unique_key=?)"),
            ("past_holder", 4, "history_unique (tenant=? AND unique_key=? AND created_at>?)"),
            ("was_replaced", 3, "history_unique (tenant=? AND unique_key=?)"),
            ("past_window", 4, "history_finished"),
            ("no_longer_live", 1, "SEARCH j USING COVERING INDEX sqlite_autoindex_jobs_1 (id=?)"),
            ("ending", 2, "SEARCH j USING INDEX sqlite_autoindex_jobs_1 (id=?)"),
            ("settle_final", 9, "SEARCH j USING INDEX sqlite_autoindex_jobs_1 (id=?)"),
            ("settle_delete", 2, "SEARCH j USING INDEX sqlite_autoindex_jobs_1 (id=?)"),
            ("named_candidates", 2, "SEARCH j USING INDEX sqlite_autoindex_jobs_1 (id=?)"),
            ("due_jobs", 4, "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"),
            ("due_jobs", 4, "jobs_due (queue=? AND priority=? AND tenant=? AND due_at>? AND due_at<?)"),
            ("jobs_of_dead_nodes", 1, "jobs_node"),
            ("jobs_past_deadline", 2, "jobs_external"),
            ("cancels", 0, "jobs_cancelled"),
            ("withdraw_jobs", 2, "jobs_schedule"),
            ("due_schedules", 3, "schedules_due (next_fire_time<?)"),
            ("count_jobs", 2, "COVERING INDEX jobs_waiting"),
            ("finished_before", 2, "history_finished (finished_at<?)"),
        ],
    )
    def test_statement_uses_its_index(
        self, path: Path, sqlite_template: Path, statement: str, parameters: int, uses: str
    ) -> None:
        """The cost of a statement must not grow with rows that it does not return."""
        shutil.copyfile(sqlite_template, path)
        connection = connect(path)
        text = f"EXPLAIN QUERY PLAN {STATEMENTS[statement]}"
        plan = connection.execute(
            text, bound((1,) * parameters) if "?1" in text else (1,) * parameters
        ).fetchall()
        connection.close()
        assert uses in "\n".join(row[3] for row in plan)
        assert not any(row[3].startswith("SCAN jobs") and "INDEX" not in row[3] for row in plan)


class TestReaders:
    async def test_slow_search_does_not_delay_other_reads(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        searching, released = threading.Event(), threading.Event()

        def slow(*_: object) -> bool:
            searching.set()
            return released.wait(60)

        monkeypatch.setattr(connection, "has_field", slow)
        stored_job = await add(store, job(await store.time() + HOUR))
        search = asyncio.create_task(store.list_jobs(JobFilter(TENANT, payload=("a", "1")), 10))
        try:
            assert await asyncio.to_thread(searching.wait, 20)
            async with asyncio.timeout(20):
                assert await store.get_job(TENANT, stored_job.id) is not None
                [listed] = await store.list_jobs(JobFilter(TENANT), 10)
                assert await store.count_jobs(JobFilter(TENANT), 10) == 1
        finally:
            released.set()
        assert await search == [listed]


class TestWriter:
    async def test_waiting_verbs_share_a_transaction(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commits: list[int] = []

        def note(served: list[SqliteTransaction]) -> None:
            commits.append(len(served))

        monkeypatch.setattr(store._writer, "_committed", note)
        now = await store.time()
        drafts = jobs(500, now)
        await asyncio.gather(*(add(store, draft) for draft in drafts))
        assert len(commits) < 50
        assert (await live_counts(store))[QUEUE].pending == 500

    async def test_failing_verb_does_not_harm_the_others(self, store: SqliteStore) -> None:
        now = await store.time()
        before, half, bad, after = jobs(3, now)[0], job(now), job(now, priority=2**70), job(now)
        calls = (
            store.add_jobs([before]),
            store.add_jobs([half, bad]),
            joined(store),
            store.add_jobs([after]),
        )
        first, failed, node, last = await asyncio.gather(*calls, return_exceptions=True)
        assert (first, last, type(node)) == ([before.id], [after.id], int)
        assert isinstance(failed, OverflowError)
        assert await store.get_job(TENANT, half.id) is None

    async def test_unique_key_is_held_once_among_jobs_stored_together(self, store: SqliteStore) -> None:
        drafts = jobs(20, await store.time(), unique_key="the one")
        answers = await asyncio.gather(*(store.add_jobs([draft]) for draft in drafts))
        assert len({answer[0] for answer in answers}) == 1

    async def test_lock_that_is_held_too_long_raises_store_unavailable(
        self, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(write_lock, "LOCK_TIMEOUT", 50_000)
        draft = job(await store.time())
        neighbour = sqlite3.connect(path, isolation_level=None)
        neighbour.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked by another connection"):
            await store.add_jobs([draft])
        neighbour.execute("ROLLBACK")
        neighbour.close()
        assert await store.get_job(TENANT, draft.id) is None
        await add(store, draft)

    async def test_cancelled_call_leaves_the_store_usable(self, store: SqliteStore) -> None:
        draft = job(await store.time())
        call = asyncio.ensure_future(store.add_jobs([draft]))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await store.add_jobs([draft]) == [draft.id]

    async def test_clone_serves_another_thread_and_loop(self, store: SqliteStore) -> None:
        node = await joined(store)

        async def beat() -> bool:
            clone = store.clone()
            await clone.open()
            alive = (await clone.beat(node, HOUR)).alive
            await clone.close()
            return alive

        assert await asyncio.to_thread(lambda: asyncio.run(beat()))

    async def test_prune_works_in_batches_and_counts_exactly(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "BATCH", 10)
        now, node = await store.time(), await joined(store)
        for draft in jobs(25, now):
            await finished(store, node, draft, now, state=State.DEAD)
        kept = await finished(store, node, job(now), now + DAY)
        assert await store.prune(now + 1) == 25
        assert [left.id for left in await store.list_jobs(JobFilter(TENANT), 10)] == [kept.id]

    async def test_targets_may_have_a_retention_of_their_own(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The past is searched in windows, and no part of it twice."""
        monkeypatch.setattr(retention, "WINDOW", 4)
        monkeypatch.setattr(retention, "BATCH", 3)
        now, node = await store.time(), await joined(store)
        for at in range(30):
            await finished(
                store, node, job(now, target=("chatty", "quiet")[at % 2], limit_key="a"), now - DAY
            )
        assert (
            await store.prune(now - 5 * DAY, {"chatty": now - HOUR, "unused": now, "kept": now - 9 * DAY})
            == 15
        )
        assert {left.target for left in await store.list_jobs(JobFilter(TENANT), 100)} == {"quiet"}
        assert store._retention.start({"chatty": now}) == (now - HOUR - retention.MAX_LATENESS - 1, 0)
        late = await finished(store, node, job(now, target="chatty"), now - HOUR - SECOND)
        assert await store.prune(now - 5 * DAY, {"chatty": now - HOUR}) == 1
        assert await store.get_job(TENANT, late.id) is None
        tables = ("once_markers", "history", "attempts")

        async def counts(session: SqliteSession) -> list[int]:
            statements = [f"SELECT count(*) FROM {name}" for name in tables]
            return [session.connection.execute(statement).fetchone()[0] for statement in statements]

        assert await store._read(READ, counts) == [0, 15, 0]

    async def test_finished_job_does_not_start_again(self, store: SqliteStore) -> None:
        """The same draft again, long after its reply was lost, in a batch with new ones."""
        now, node = await store.time(), await joined(store)
        done = await finished(store, node, job(now), now)
        fresh = jobs(40, now)
        assert await store.add_jobs([*fresh, done]) == [draft.id for draft in (*fresh, done)]
        assert (await live_counts(store))[QUEUE].pending == 40


class TestHints:
    async def test_only_relevant_changes_are_noticed(
        self, store: SqliteStore, second_store: SqliteStore, path: Path
    ) -> None:
        now, node = await store.time(), await joined(second_store)
        await add(store, job(now + DAY))
        connection = connect(path)
        changes = ForeignChanges(connection, store._notifier)
        await second_store.beat(node, HOUR)
        await add(second_store, job(now + DAY))
        assert changes.look() == ()
        await add(store, job(now))
        assert changes.look() == ()
        await add(second_store, job(now))
        assert changes.look() == LOOK_AT_EVERYTHING
        assert changes.look() == ()
        claimed = await claim_one(store, node, room=1)
        await second_store.cancel_job(TENANT, claimed.id, "enough")
        assert changes.look() == (*LOOK_AT_EVERYTHING, CancelHint(node, claimed.id))
        connection.close()

    async def test_new_queue_is_announced_by_name_once(
        self, store: SqliteStore, second_store: SqliteStore, path: Path
    ) -> None:
        connection = connect(path)
        changes = ForeignChanges(connection, store._notifier)
        now = await store.time()
        for expected in ((JobHint("new", 5, 0), *LOOK_AT_EVERYTHING), LOOK_AT_EVERYTHING):
            await add(second_store, job(now, queue="new"))
            assert changes.look() == expected
        connection.close()

    async def test_events_do_not_wake_workers(
        self, store: SqliteStore, second_store: SqliteStore, path: Path
    ) -> None:
        connection = connect(path)
        changes = ForeignChanges(connection, store._notifier)
        await second_store.add_events([b"1", b"2"])
        assert changes.look() == (EventHint(2),)
        assert changes.look() == ()
        connection.execute("UPDATE events SET at = at - ?", (EVENTS_KEPT_FOR,))
        await second_store.prune(0)
        assert await store.list_events(0, 10) == ([], 2)
        assert changes.look() == ()
        connection.close()


async def test_new_files_are_for_their_owner_only(tmp_path: Path) -> None:
    """Also under a umask that lets everyone read."""
    before = os.umask(0o022)
    try:
        store = from_url(f"sqlite:///{tmp_path}/d.db")
        await store.migrate()
        await store.open()
        await store.put_record("kind", TENANT, "key", b"{}")
        found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        await store.close()
    finally:
        os.umask(before)
    assert {"d.db", "d.db-wal", "d.db-shm"} <= found.keys()
    assert set(found.values()) == {0o600}, found
