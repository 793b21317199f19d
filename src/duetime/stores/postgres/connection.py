"""One named connection: opened when first used, replaced when it breaks, with a timeout for every call.

Not a pool: each role of the store has its connection with planner settings for its statements, so that a slow
reader cannot delay a claim, and no reset costs a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import asyncpg

from duetime.clock import monotonic_micros, noise, pause
from duetime.errors import NotOpen, StoreUnavailable
from duetime.model.instant import Micros
from duetime.stores.postgres.address import PostgresAddress
from duetime.stores.postgres.connect import connect
from duetime.stores.postgres.deadline import Deadline
from duetime.stores.postgres.errors import DRIVER_ERRORS, classify, translate
from duetime.stores.server_errors import ErrorClass

Result = TypeVar("Result")
Setup = Callable[[Any], Awaitable[None]]  # on the driver's new connection
Work = Callable[
    [Any, bool], Awaitable[Result]
]  # on the driver's connection; True: an earlier try failed, and its reply may be lost

CALL_TIMEOUT = 5.0  # seconds: a server that answers nothing is noticed after this
MAX_CONFLICTS = 5
MAX_READ = 64 * 1024  # bytes
EPOCH_2000 = 946_684_800_000_000  # the server counts microseconds from 2000, the model from 1970
LOST_SESSION = frozenset({ErrorClass.RECONNECT, ErrorClass.UNAVAILABLE, ErrorClass.ACCESS_DENIED})


class PostgresConnection:
    """Calls wait for one another. Work may be repeated after a lost connection: every verb of the store may
    be."""

    def __init__(
        self,
        address: PostgresAddress,
        name: str,
        settings: Mapping[str, str],
        *,
        timeout: float = CALL_TIMEOUT,
        on_connect: Setup | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.timeout = timeout
        self._address = address
        self._name = name
        self._settings = {
            **settings,
            "jit": "off",
            "lock_timeout": "2000",
            "statement_timeout": str(int(timeout * 800)),
        }
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
        """Whether the session replaced a lost one so recently: other processes may have lost theirs at the
        same time."""
        return self._reconnected_at is not None and monotonic_micros() - self._reconnected_at < micros

    async def fetch(self, statement: str, *arguments: Any, repeat: bool = True) -> list[Any]:
        rows: list[Any] = await self.run(
            lambda connection, _: connection.fetch(statement, *arguments), repeat=repeat
        )
        return rows

    async def row(self, statement: str, *arguments: Any) -> Any:
        return await self.run(lambda connection, _: connection.fetchrow(statement, *arguments))

    async def value(self, statement: str, *arguments: Any) -> Any:
        return await self.run(lambda connection, _: connection.fetchval(statement, *arguments))

    async def count(self, statement: str, *arguments: Any) -> int:
        """How many rows the statement wrote."""
        status: str = await self.run(lambda connection, _: connection.execute(statement, *arguments))
        return int(status.rsplit(" ", 1)[-1])

    async def run(
        self, work: Work[Result], *, atomic: bool = False, repeat: bool = True, timeout: float | None = None
    ) -> Result:
        outages = self._outages
        async with self._lock:
            if outages != self._outages:
                # The call before this one timed out; the calls behind it must not do so one by one.
                raise StoreUnavailable(
                    f"PostgreSQL at {self._address.place} cannot be reached now: it is safe to repeat"
                )
            self._late = False
            self._deadline.begin(timeout or self.timeout)
            try:
                return await self._run_with_retries(work, atomic, repeat)
            except StoreUnavailable:
                self._outages += 1
                raise
            except asyncio.CancelledError:
                self._drop()  # whether the statement ran is unknown, and so is the state of the session
                raise
            finally:
                self._deadline.end()

    async def in_transaction(self, connection: Any, work: Work[Result]) -> Result:
        """Within a repeated `run`, for work that needs a transaction only then."""
        return await (
            work(connection, True)
            if connection.is_in_transaction()
            else self._transact(connection, work, True)
        )

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

    async def _run_with_retries(self, work: Work[Result], atomic: bool, repeat: bool) -> Result:
        conflicts, may_reconnect, is_retry = 0, True, False
        while True:
            try:
                connection = await self._connected()
                may_reconnect = may_reconnect and repeat
                return await (
                    self._transact(connection, work, is_retry)
                    if atomic or self._address.pooled
                    else work(connection, is_retry)
                )
            except asyncpg.UniqueViolationError:
                raise
            except AttributeError as problem:
                if not self._late:
                    raise
                # Reply and timeout came together after the event loop was blocked: the driver continues on a
                # closed connection.
                raise translate(
                    TimeoutError("no answer in time"), ErrorClass.UNAVAILABLE, self._address.place
                ) from problem
            except DRIVER_ERRORS as problem:
                error_class = ErrorClass.UNAVAILABLE if self._late else classify(problem)
                if error_class in LOST_SESSION and not _is_statement_timeout(problem):
                    self._drop()
                is_retry = True
                if error_class is ErrorClass.RETRY and conflicts < MAX_CONFLICTS:
                    conflicts += 1
                    await pause(0.02 * conflicts * noise())
                elif error_class is ErrorClass.RECONNECT and may_reconnect:
                    may_reconnect = False
                else:
                    cause = TimeoutError("no answer in time") if self._late else problem
                    raise translate(cause, error_class, self._address.place) from problem

    async def _transact(self, connection: Any, work: Work[Result], is_retry: bool = False) -> Result:
        await connection.execute(self._begin)
        try:
            result = await work(connection, is_retry)
        except Exception:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")
        return result

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
        settings = {
            **self._settings,
            "application_name": f"duetime {self._name}",
            "timezone": "UTC",
        }
        connection = await connect(
            self._address, settings, cached_statements=200, max_cached_statement_lifetime=0
        )
        try:
            limit_read_size(connection)
            await (
                self._transact(connection, _use_microseconds)
                if pooled
                else _use_microseconds(connection, False)
            )
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
        """Closing the connection ends the call that waits for its reply."""
        self._late = True
        self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


def _is_statement_timeout(problem: BaseException) -> bool:
    """lock_timeout and statement_timeout end the statement and leave the session usable."""
    return isinstance(problem, asyncpg.LockNotAvailableError | asyncpg.QueryCanceledError)


async def _use_microseconds(connection: Any, _is_retry: bool) -> None:
    """On the store's own connections an instant is an integer, in both directions."""
    await connection.set_type_codec(
        "timestamptz",
        schema="pg_catalog",
        format="tuple",
        encoder=lambda micros: (micros - EPOCH_2000,),
        decoder=lambda value: value[0] + EPOCH_2000,
    )
    _know_arrays(connection)


def _know_arrays(connection: Any) -> None:
    """The driver asks the server about every type of array, in every session: a query of many milliseconds
    before the first use of most statements. The numbers of these types are the same in every database. If the
    driver changes, it asks again."""
    settings = getattr(getattr(connection, "_protocol", None), "get_settings", None)
    if settings is not None and hasattr(settings(), "register_data_types"):
        settings().register_data_types(ARRAYS)


def _array(oid: int, element: int, name: str) -> dict[str, Any]:
    """As the driver reads it from the catalogue."""
    absent = dict.fromkeys(("basetype", "range_subtype", "attrtypoids"))
    return {"oid": oid, "ns": "pg_catalog", "name": name, "elemtype": element, "elemdelim": ",", **absent}


ARRAYS = tuple(
    _array(*names)
    for names in (
        (1000, 16, "_bool"),
        (1001, 17, "_bytea"),
        (1005, 21, "_int2"),
        (1007, 23, "_int4"),
        (1016, 20, "_int8"),
        (1185, 1184, "_timestamptz"),
        (2951, 2950, "_uuid"),
    )
)


def limit_read_size(connection: Any) -> None:
    """An event loop allocates 256 KiB for each reply it reads, however short. The kernel hands out and takes
    back that much memory every time, which costs more than the reply."""
    transport = getattr(connection, "_transport", None)
    if transport is not None and hasattr(transport, "max_size"):
        transport.max_size = MAX_READ
