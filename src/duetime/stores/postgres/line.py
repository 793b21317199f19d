"""A line: one named connection of our own, opened when first used, replaced when it breaks, with a bound on every wait.

Not a pool: each role of the store has its line with planner settings made for its statements, so that no slow reader can hold up
a claim, and no reset costs a round trip.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import asyncpg

from duetime.clock import monotonic_micros, noise, pause
from duetime.errors import NotOpen, StoreUnavailable
from duetime.model.instant import Micros
from duetime.stores.postgres.address import Address
from duetime.stores.postgres.deadline import Deadline
from duetime.stores.postgres.faults import Verdict, judge, translate

Answer = TypeVar("Answer")
Work = Callable[[Any], Awaitable[Answer]]

PATIENCE = 5.0  # for one verb: a server that swallows everything is noticed after this
CONNECT_PATIENCE = 3.0
MOST_QUARRELS = 5
QUIET_MILLISECONDS = 4_000  # unacknowledged data means a dead peer after this
READ_AT_ONCE = 64 * 1024  # bytes
EPOCH_2000 = 946_684_800_000_000  # the server counts microseconds from 2000, we from 1970
BOUNDS = {
    "idle_in_transaction_session_timeout": "10000",
    "tcp_user_timeout": str(QUIET_MILLISECONDS),
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}
LOST_SESSION = frozenset({Verdict.RECONNECT, Verdict.UNAVAILABLE, Verdict.REFUSED})


class Line:
    """Verbs take turns on it. `work` may be run again after a lost connection: everything the store does may be repeated."""

    def __init__(
        self,
        address: Address,
        name: str,
        settings: Mapping[str, str],
        *,
        patience: float = PATIENCE,
        on_connect: Work[None] | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.patience = patience
        self._address = address
        self._name = name
        self._settings = {**settings, "jit": "off", "lock_timeout": "2000", "statement_timeout": str(int(patience * 800))}
        self._on_connect = on_connect
        self._on_lost = on_lost
        self._connection: Any = None
        self._connects = 0
        self._reconnected_at: Micros | None = None
        self._lock = asyncio.Lock()
        self._outages = 0
        self._deadline = Deadline(self._give_up)
        self._late = False
        self._closed = False
        local = "".join(f"; SET LOCAL {setting} = {value}" for setting, value in self._settings.items())
        self._begin = f"BEGIN{local}" if address.pooled else "BEGIN"

    def reconnected_within(self, micros: Micros) -> bool:
        """Whether its session took the place of a lost one such a short time ago: others may have lost theirs at the same moment."""
        return self._reconnected_at is not None and monotonic_micros() - self._reconnected_at < micros

    async def fetch(self, statement: str, *arguments: Any) -> list[Any]:
        rows: list[Any] = await self.run(lambda connection: connection.fetch(statement, *arguments))
        return rows

    async def row(self, statement: str, *arguments: Any) -> Any:
        return await self.run(lambda connection: connection.fetchrow(statement, *arguments))

    async def value(self, statement: str, *arguments: Any) -> Any:
        return await self.run(lambda connection: connection.fetchval(statement, *arguments))

    async def count(self, statement: str, *arguments: Any) -> int:
        """How many rows the statement wrote."""
        status: str = await self.run(lambda connection: connection.execute(statement, *arguments))
        return int(status.rsplit(" ", 1)[-1])

    async def run(self, work: Work[Answer], *, atomic: bool = False, repeat: bool = True, patience: float | None = None) -> Answer:
        outages = self._outages
        async with self._lock:
            if outages != self._outages:
                # Whoever was before us has just waited in vain; the queue behind must not do so one by one.
                raise StoreUnavailable(f"PostgreSQL at {self._address.place} cannot be reached now: it is safe to repeat")
            self._late = False
            self._deadline.begin(patience or self.patience)
            try:
                return await self._insist(work, atomic, repeat)
            except StoreUnavailable:
                self._outages += 1
                raise
            except asyncio.CancelledError:
                self._drop()  # whether the statement ran is unknown, and so is what the session is in the middle of
                raise
            finally:
                self._deadline.end()

    async def atomically(self, connection: Any, work: Work[Answer]) -> Answer:
        """Within `run`, for work that only sometimes takes more than one statement."""
        return await (work(connection) if connection.is_in_transaction() else self._transact(connection, work))

    async def close(self) -> None:
        self._closed = True
        self._deadline.forget()
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=1.0)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                connection.terminate()

    def reopen(self) -> None:
        """After `close`: connect again when next used."""
        self._closed = False

    async def _insist(self, work: Work[Answer], atomic: bool, repeat: bool) -> Answer:
        quarrels, reconnected = 0, False
        while True:
            try:
                connection = await self._connected()
                reconnected = reconnected or not repeat
                return await (self._transact(connection, work) if atomic or self._address.pooled else work(connection))
            except asyncpg.UniqueViolationError:
                raise
            except AttributeError as problem:
                if not self._late:
                    raise
                # The answer and the deadline met after the event loop stood still: the driver goes on with a connection that is closed.
                raise translate(TimeoutError("no answer in time"), Verdict.UNAVAILABLE, self._address.place) from problem
            except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as problem:
                verdict = Verdict.UNAVAILABLE if self._late else judge(problem)
                if verdict in LOST_SESSION and not _bounded_by_server(problem):
                    self._drop()
                if verdict is Verdict.AGAIN and quarrels < MOST_QUARRELS:
                    quarrels += 1
                    await pause(0.02 * quarrels * noise())
                elif verdict is Verdict.RECONNECT and not reconnected:
                    reconnected = True
                else:
                    cause = TimeoutError("no answer in time") if self._late else problem
                    raise translate(cause, verdict, self._address.place) from problem

    async def _transact(self, connection: Any, work: Work[Answer]) -> Answer:
        await connection.execute(self._begin)
        try:
            answer = await work(connection)
        except Exception:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")
        return answer

    async def _connected(self) -> Any:
        if self._closed:
            raise NotOpen("the store was closed: call open() before using it again")
        if self._connection is None or self._connection.is_closed():
            self._connection = None
            async with asyncio.timeout_at(self._deadline.at):
                self._connection = await self._connect()
            self._connects += 1
            self._reconnected_at = monotonic_micros() if self._connects > 1 else None
        return self._connection

    async def _connect(self) -> Any:
        pooled = self._address.pooled
        connection = await asyncpg.connect(
            self._address.dsn,
            timeout=CONNECT_PATIENCE,
            statement_cache_size=0 if pooled else 200,
            max_cached_statement_lifetime=0,
            # A pooler refuses settings it does not know: there they are made anew in each transaction.
            server_settings={} if pooled else {**BOUNDS, **self._settings, "application_name": f"duetime {self._name}", "timezone": "UTC"},
        )
        try:
            watch(connection)
            read_in_small_pieces(connection)
            await (self._transact(connection, _speak_micros) if pooled else _speak_micros(connection))
            if self._on_connect:
                await self._on_connect(connection)
        except BaseException:
            connection.terminate()
            raise
        if self._on_lost:
            connection.add_termination_listener(self._lost)
        return connection

    def _lost(self, connection: Any) -> None:
        if self._on_lost and not self._closed:
            self._on_lost()

    def _give_up(self) -> None:
        """Closing the connection wakes whoever waits for its answer."""
        self._late = True
        self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


def _bounded_by_server(problem: BaseException) -> bool:
    """lock_timeout and statement_timeout end the statement and leave the session sound."""
    return isinstance(problem, asyncpg.LockNotAvailableError | asyncpg.QueryCanceledError)


async def _speak_micros(connection: Any) -> None:
    """On our connections an instant is an integer, in both directions."""
    await connection.set_type_codec(
        "timestamptz",
        schema="pg_catalog",
        format="tuple",
        encoder=lambda micros: (micros - EPOCH_2000,),
        decoder=lambda value: value[0] + EPOCH_2000,
    )


def read_in_small_pieces(connection: Any) -> None:
    """An event loop takes 256 KiB of fresh memory for each answer it reads, however short. So much is had from the kernel and given back
    every time, which costs more than the answer."""
    transport = getattr(connection, "_transport", None)
    if transport is not None and hasattr(transport, "max_size"):
        transport.max_size = READ_AT_ONCE


def watch(connection: Any) -> None:
    """Have the kernel give up on a peer that no longer acknowledges. Not every platform or socket can."""
    transport = getattr(connection, "_transport", None)
    wire = transport.get_extra_info("socket") if transport is not None else None
    if wire is None or wire.family not in {socket.AF_INET, socket.AF_INET6} or not hasattr(socket, "TCP_USER_TIMEOUT"):
        return
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, QUIET_MILLISECONDS)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
