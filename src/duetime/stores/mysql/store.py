"""The store for MariaDB and MySQL: the shared verbs, each on the connection of its role."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

from duetime.model.hint import Hint, JobHint
from duetime.model.identity import StoreIdentity
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Job
from duetime.model.lease import NodeId
from duetime.store import CallerTransaction, Capabilities, Migration, TaskTransaction, Unsubscribe
from duetime.stores.mysql import schema
from duetime.stores.mysql.address import MySqlAddress, parse
from duetime.stores.mysql.caller_transaction import caller_transaction
from duetime.stores.mysql.connection import MySqlConnection
from duetime.stores.mysql.notifier import MySqlNotifier
from duetime.stores.mysql.session import MySqlSession
from duetime.stores.mysql.signs_of_life import MySqlSignsOfLife
from duetime.stores.mysql.task_transaction import MySqlTaskSessions
from duetime.stores.sql import bulk, claim, listing, records, schedules, settle
from duetime.stores.sql.store import (
    CLAIM,
    EVENT,
    HEARTBEAT,
    LIST,
    PROGRESS,
    READ,
    SEARCH,
    SETTLE,
    SUBMIT,
    SWEEP,
    SqlStore,
)
from duetime.stores.witness import TIME_TO_RECONNECT

Answer = TypeVar("Answer")
P = ParamSpec("P")
ROLES = (READ, SEARCH, SUBMIT, CLAIM, SWEEP, SETTLE, HEARTBEAT, PROGRESS, EVENT)
# After a lost reply the caller asks what became of them.
NOT_REPEATED = (claim.claim, records.put, schedules.write)
SNAPSHOTS = (listing.jobs, listing.count, bulk.read)  # a job on its way to the past is seen once


class MySqlStore(SqlStore):
    capabilities = Capabilities(durable=True, shared=True, hints=True, owner_gone=True, transactions=True)

    def __init__(self, address: MySqlAddress) -> None:
        self._signs_of_life = MySqlSignsOfLife(address)
        super().__init__(self._signs_of_life)
        self._address = address
        self._connections = {role: MySqlConnection(address) for role in ROLES}
        self._hint_connections = MySqlConnection(address), MySqlConnection(address)
        self._notifier = MySqlNotifier(*self._hint_connections)
        self._task_sessions = MySqlTaskSessions(address, self._notifier)
        self._home: Micros | None = None

    @classmethod
    def from_url(cls, url: str) -> MySqlStore:
        return cls(parse(url))

    def __repr__(self) -> str:
        return f"MySqlStore({self._address.place!r})"

    # -- opening and closing
    async def open(self) -> None:
        for connection in (*self._connections.values(), *self._hint_connections):
            connection.reopen()
        self._task_sessions.reopen()
        self._home = await schema.check_schema(self._connections[SUBMIT])

    async def close(self) -> None:
        await self._signs_of_life.close()
        await self._notifier.close()
        self._task_sessions.close()
        for connection in (*self._connections.values(), *self._hint_connections):
            await connection.close()

    async def migrate(self, dry_run: bool = False) -> Migration:
        connection = MySqlConnection(self._address, schema.MAINTENANCE_TIMEOUT)
        try:
            return await schema.migrate(connection, dry_run)
        finally:
            await connection.close()

    def clone(self) -> MySqlStore:
        return MySqlStore(self._address)

    async def time(self) -> Micros:
        return await self._connections[READ].read(MySqlSession.time)

    async def identity(self) -> StoreIdentity:
        """Nothing names the data of all servers that replicate it. But a dump makes its tables after the last
        sign of life in them."""
        return StoreIdentity(seen_at=await self._connections[READ].read(_made_at))

    # -- what differs
    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        if announce:
            await self._write(SUBMIT, _announce, tenant, job_id)
        return await super().get_job(tenant, job_id)

    async def expire_nodes(self, me: NodeId) -> list[NodeId]:
        """After an outage of the server all nodes get the time to renew their leases."""
        if self._connections[SWEEP].reconnected_within(TIME_TO_RECONNECT):
            self._signs_of_life.forget()
            return []
        return await super().expire_nodes(me)

    def within(self, connection: Any) -> CallerTransaction:
        return caller_transaction(connection, self._home)

    async def begin_transaction(self) -> TaskTransaction:
        return await self._task_sessions.begin()

    # -- hints
    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        return self._notifier.subscribe(listener)

    async def hint(self, hints: Sequence[Hint]) -> None:
        """Does not wait until the hints are sent: a settling worker has more to do."""
        self._notifier.notify(hints, also_late=True)

    # -- running work
    async def _write(
        self,
        role: str,
        work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        repeat = work not in NOT_REPEATED and not (work is settle.settle and args[1] is not None)
        answer, transaction = await self._connections[role].write(
            lambda transaction: work(transaction, *args, **kwargs), repeat=repeat
        )
        if transaction.hints:
            self._notifier.notify(transaction.hints)
        return answer

    async def _read(
        self,
        role: str,
        work: Callable[Concatenate[Any, P], Coroutine[Any, Any, Answer]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Answer:
        return await self._connections[READ if role == LIST else role].read(
            lambda session: work(session, *args, **kwargs), snapshot=work in SNAPSHOTS
        )


async def _announce(transaction: Any, tenant: str, job_id: UUID) -> None:
    for row in await transaction.all("await_job", (tenant, job_id.bytes)):
        transaction.tell([JobHint(*row)])


async def _made_at(session: MySqlSession) -> Micros:
    return int(await session.value("tables_made_at")) * SECOND
