"""The SQLite store. Every verb runs on the thread of the writer or of a reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from duetime.clock import wall_micros
from duetime.errors import NotOpen
from duetime.model.hint import Hint
from duetime.model.identity import StoreIdentity
from duetime.model.instant import Micros
from duetime.model.job import Job, JobDraft
from duetime.model.lease import Beat, NodeId
from duetime.store import CallerTransaction, Capabilities, Migration, TaskTransaction, Unsubscribe
from duetime.stores.sql.session import run_now
from duetime.stores.sql.store import LIST, READ, SEARCH, SUBMIT, SqlStore
from duetime.stores.sqlite import caller_transaction, file_locks, location, schema
from duetime.stores.sqlite.notifier import SqliteNotifier
from duetime.stores.sqlite.reader import SqliteReader
from duetime.stores.sqlite.session import SqliteSession, SqliteTransaction
from duetime.stores.sqlite.task_transaction import TaskTransactionThread
from duetime.stores.sqlite.threads import ConnectionThread
from duetime.stores.sqlite.writer import Addition, SqliteWriter

Answer = TypeVar("Answer")
P = ParamSpec("P")
SLOW = (LIST, SEARCH)  # each has a reader of its own


class SqliteStore(SqlStore):
    """One file. The clock is that of this machine, on which all its users run."""

    capabilities = Capabilities(
        durable=True,
        shared=True,
        hints=True,
        owner_gone=file_locks.AVAILABLE,
        transactions=True,
        embedded=True,
    )

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = SqliteWriter(path, self._committed)
        self._writing: ConnectionThread[SqliteTransaction] | None = None
        self._readers: dict[str, ConnectionThread[SqliteSession]] = {}
        self._task_transactions: TaskTransactionThread | None = None
        self._notifier = SqliteNotifier(path, lambda: self._writer.counted_changes)
        self._locks = file_locks.NodeLocks(path)
        super().__init__(self._locks)

    @staticmethod
    def from_url(url: str) -> SqliteStore:
        return SqliteStore(location.path_of(url))

    # -- lifecycle
    async def open(self) -> None:
        """Creates the file if it is missing, and brings an older one to this version."""
        if self._writing is None:
            await self.migrate()
            self._writing = ConnectionThread("duetime sqlite writer", self._writer)

    async def close(self) -> None:
        self._notifier.close()
        threads = [self._task_transactions, *self._readers.values(), self._writing]
        self._task_transactions = self._writing = None
        self._readers = {}
        for thread in threads:
            if thread is not None:
                await thread.close()
        self._locks.close()

    async def migrate(self, dry_run: bool = False) -> Migration:
        location.check(self.path)
        return await asyncio.to_thread(schema.plan if dry_run else schema.migrate, self.path)

    def clone(self) -> SqliteStore:
        return SqliteStore(self.path)

    async def time(self) -> Micros:
        return wall_micros()

    async def identity(self) -> StoreIdentity:
        """A copied file is another inode. An older file that was written over this one has the same inode,
        but the file of the locks shows when a node was last alive."""
        return StoreIdentity(f"inode {self.path.stat().st_ino}", seen_at=self._locks.used_at())

    # -- jobs, for callers
    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        return await self._writer_thread().call(Addition(drafts)) if drafts else []

    def within(self, connection: Any) -> CallerTransaction:
        return caller_transaction.within(connection, self.path)

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        if announce:
            self._notifier.awaited.add(job_id)  # before it is read: it may end at any time
        found = await super().get_job(tenant, job_id)
        if announce and (found is None or found.state.final):
            self._notifier.awaited.discard(job_id)
        return found

    # -- jobs, for workers
    async def begin_transaction(self) -> TaskTransaction:
        self._writer_thread()
        if self._task_transactions is None:
            self._task_transactions = TaskTransactionThread(self.path, self._committed)
        return await self._task_transactions.begin()

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        beat = await super().beat(node, ttl)
        self._locks.mark_use(node)
        return beat

    async def leave(self, node: NodeId) -> None:
        await super().leave(node)
        self._locks.release(node)

    # -- hints
    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        self._writer_thread()
        return self._notifier.subscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        await self._write(SUBMIT, _tell, hints)

    def _committed(self, served: list[SqliteTransaction]) -> None:
        """Called after the commit, on the thread that wrote."""
        hints = [hint for transaction in served for hint in transaction.hints]
        if self._notifier.awaited:
            hints += self._notifier.awaited.ended(row for transaction in served for row in transaction.ended)
        if hints:
            self._notifier.notify(hints)

    def _writer_thread(self) -> ConnectionThread[SqliteTransaction]:
        if self._writing is None:
            raise NotOpen("the SQLite store is not open: await open() first")
        return self._writing

    async def _write(
        self,
        role: str,
        work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        return await self._writer_thread().call(
            lambda transaction: run_now(work(transaction, *args, **kwargs))
        )

    async def _read(
        self,
        role: str,
        work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        self._writer_thread()
        reader = self._reader(role if role in SLOW else READ)
        return await reader.call(lambda session: run_now(work(session, *args, **kwargs)))

    def _reader(self, role: str) -> ConnectionThread[SqliteSession]:
        if role not in self._readers:
            self._readers[role] = ConnectionThread(f"duetime sqlite {role}", SqliteReader(self.path))
        return self._readers[role]


async def _tell(transaction: SqliteTransaction, hints: Sequence[Hint]) -> None:
    transaction.tell(hints)
