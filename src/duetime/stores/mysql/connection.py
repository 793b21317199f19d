"""One named connection: opened when first used, replaced when it breaks, with a timeout for every call.

Transactions begin here and only here, so that a conflict with another transaction is resolved here: the work
is repeated from its beginning."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncmy
from asyncmy.constants import CLIENT

from duetime.clock import monotonic_micros, noise, pause
from duetime.errors import NotOpen
from duetime.model.instant import Micros
from duetime.stores.mysql.address import MySqlAddress
from duetime.stores.mysql.errors import DRIVER_ERRORS, classify, translate
from duetime.stores.mysql.session import MySqlResult, MySqlSession, MySqlTransaction, query
from duetime.stores.server_errors import ErrorClass

Answer = TypeVar("Answer")

CALL_TIMEOUT = 8.0  # seconds: a server that answers nothing is noticed after this
CONNECT_TIMEOUT = 3.0
GOODBYE_TIMEOUT = 1.0
MAX_CONFLICTS = 20
CONFLICT_PAUSE = 0.02  # seconds, times the number of conflicts
UNACKNOWLEDGED_TIMEOUT = 4_000  # milliseconds without an acknowledgement: the peer is gone
# Of every session, also those of tasks. READ COMMITTED: each statement sees what is committed, and locks no
# gaps.
ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
# MariaDB would turn a long list into a table.
MARIADB_SETTINGS = "SET SESSION in_predicate_conversion_threshold = 0"
# A server of a cluster answers when it has applied what others had committed before.
GALERA_SETTINGS = "SET SESSION wsrep_sync_wait = 1"
# Of the store's own sessions. A row may be written with the number 0.
SETTINGS = """SET NAMES utf8mb4 COLLATE utf8mb4_bin;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO';
SET SESSION innodb_lock_wait_timeout = 2, autocommit = 1"""
LOST_SESSION = frozenset({ErrorClass.RECONNECT, ErrorClass.UNAVAILABLE, ErrorClass.ACCESS_DENIED})


class MySqlConnection:
    """Calls wait for one another."""

    def __init__(self, address: MySqlAddress, timeout: float = CALL_TIMEOUT) -> None:
        self._address = address
        self._timeout = timeout
        self._connection: Any = None
        self._row_word = ""
        self._lock = asyncio.Lock()
        self._closed = False
        self._first_host = 0
        self._connects = 0
        self._reconnected_at: Micros | None = None

    def reconnected_within(self, micros: Micros) -> bool:
        """Whether the session replaced a lost one so recently: other processes may have lost theirs at the
        same time."""
        return self._reconnected_at is not None and monotonic_micros() - self._reconnected_at < micros

    async def read(
        self, work: Callable[[MySqlSession], Awaitable[Answer]], *, snapshot: bool = False
    ) -> Answer:
        """With a snapshot all statements see the same state."""

        async def reading() -> Answer:
            if not snapshot:
                return await work(MySqlSession(self._query, self._row_word))
            await self._query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION READ ONLY")
            answer = await work(MySqlSession(self._query, self._row_word))
            await self._query("COMMIT")
            return answer

        return await self._run(reading, repeat=True)

    async def write(
        self, work: Callable[[MySqlTransaction], Awaitable[Answer]], *, repeat: bool = True
    ) -> tuple[Answer, MySqlTransaction]:
        """In a transaction. Also returns the committed transaction, for its hints. Without `repeat` work is
        not repeated after a lost reply, only after a conflict."""

        async def writing() -> tuple[Answer, MySqlTransaction]:
            _, [[(now,)], _] = await self._query(f"START TRANSACTION; {NOW}")
            transaction = MySqlTransaction(self._query, now, self._row_word)
            answer = await work(transaction)
            await self._query("COMMIT")
            return answer, transaction

        return await self._run(writing, repeat)

    async def close(self) -> None:
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await say_goodbye(connection)

    def reopen(self) -> None:
        """After `close`: connect again when next used."""
        self._closed = False

    async def _run(self, work: Callable[[], Awaitable[Answer]], repeat: bool) -> Answer:
        async with self._lock:
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._run_with_retries(work, repeat)
            except TimeoutError as problem:
                self._drop()
                late = TimeoutError("no answer in time")
                raise translate(late, ErrorClass.UNAVAILABLE, self._address.place) from problem
            except asyncio.CancelledError:
                self._drop()  # whether the statement ran is unknown, and so is the state of the session
                raise

    async def _run_with_retries(self, work: Callable[[], Awaitable[Answer]], repeat: bool) -> Answer:
        conflicts, may_reconnect = 0, True
        while True:
            try:
                await self._connect()
                may_reconnect = may_reconnect and repeat
                return await work()
            except DRIVER_ERRORS as problem:
                error_class = classify(problem)
                if error_class in LOST_SESSION:
                    self._drop()
                else:
                    await self._roll_back()
                if error_class is ErrorClass.RETRY and conflicts < MAX_CONFLICTS:
                    conflicts += 1
                    await pause(CONFLICT_PAUSE * conflicts * noise())
                elif error_class is ErrorClass.RECONNECT and may_reconnect:
                    may_reconnect = False
                else:
                    raise translate(problem, error_class, self._address.place) from problem
            except Exception:
                await self._roll_back()
                raise

    async def _query(self, text: str) -> list[MySqlResult]:
        return await query(self._connection, text)

    async def _roll_back(self) -> None:
        try:
            await self._query("ROLLBACK")
        except DRIVER_ERRORS:
            self._drop()

    async def _connect(self) -> None:
        if self._closed:
            raise NotOpen("the store was closed: call open() before using it again")
        if self._connection is not None and self._connection.connected:
            return
        self._connection, self._first_host = await connect(self._address, self._first_host)
        self._row_word = row_word(self._connection)
        await self._query(SETTINGS)
        self._connects += 1
        self._reconnected_at = monotonic_micros() if self._connects > 1 else None

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


NOW = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"


async def connect(address: MySqlAddress, first: int = 0) -> tuple[Any, int]:
    """A new session on the first server that accepts one, from this one on; and which server it is."""
    problem: BaseException | None = None
    for at in range(first, first + len(address.hosts)):
        number = at % len(address.hosts)
        host, port = address.hosts[number]
        try:
            connection = await asyncmy.connect(
                host=host,
                port=port,
                user=address.user,
                password=address.password,
                database=address.database,
                charset="utf8mb4",
                autocommit=None,
                ssl=address.ssl,
                connect_timeout=CONNECT_TIMEOUT,
                client_flag=CLIENT.MULTI_STATEMENTS,
            )
            await _prepare(connection)
        except DRIVER_ERRORS as failed:
            problem = failed
            continue
        detect_dead_peer(connection)
        return connection, number
    assert problem is not None
    raise problem


async def _prepare(connection: Any) -> None:
    settings = [MARIADB_SETTINGS] if is_mariadb(connection) else []
    *_, cluster = await query(
        connection, "; ".join([ISOLATION, *settings, "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'"])
    )
    if [*cluster.rows] == [("wsrep_on", "ON")]:
        await query(connection, GALERA_SETTINGS)


def is_mariadb(connection: Any) -> bool:
    return "MariaDB" in connection.get_server_info()


def row_word(connection: Any) -> str:
    """MySQL writes ROW before each row of a list, MariaDB nothing."""
    return "" if is_mariadb(connection) else "ROW"


async def say_goodbye(connection: Any) -> None:
    """Close it so that the server does not log an aborted connection."""
    try:
        async with asyncio.timeout(GOODBYE_TIMEOUT):
            await connection.ensure_closed()
    except DRIVER_ERRORS:
        pass  # a timeout, too
    finally:
        connection.close()


def detect_dead_peer(connection: Any) -> None:
    """The kernel gives up on a peer that no longer acknowledges. Not every platform or socket can do this."""
    transport = getattr(connection, "_transport", None)
    tcp = transport.get_extra_info("socket") if transport is not None else None
    if tcp is None or tcp.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_TIMEOUT)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
