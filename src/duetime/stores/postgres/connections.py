"""The store's connections, one per role, each with the planner settings for its statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from duetime.stores.postgres.address import PostgresAddress
from duetime.stores.postgres.connection import CALL_TIMEOUT, PostgresConnection, Setup
from duetime.stores.statements import load

SQL = load("duetime.stores.postgres", "sql")

# Statistics of a table that is empty one second and full the next mislead the planner: generic plans, and
# only joins that can be right.
_STEADY = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off"}
_LOOPS = {**_STEADY, "enable_hashjoin": "off", "enable_mergejoin": "off"}
_HASHES = {**_STEADY, "enable_nestloop": "off", "enable_mergejoin": "off"}
BULK_TIMEOUT = 60.0  # seconds: rows may be large
DONE_MESSAGE = "duetime done "  # the beginning of the message of the function `announce_done`


class PostgresConnections:
    """Each connects when it is first used: a client that only submits opens the connections for
    submitting."""

    def __init__(self, address: PostgresAddress) -> None:
        self.address = address
        self.submit = PostgresConnection(address, "submit", _LOOPS)
        self.claim = PostgresConnection(address, "claim", _LOOPS)
        self.sweep = PostgresConnection(address, "sweep", _LOOPS)
        self.settle = PostgresConnection(address, "settle", _HASHES, on_connect=self._listen_for_done)
        self.progress = PostgresConnection(address, "progress", _HASHES)
        self.plan = PostgresConnection(address, "plan", _HASHES)
        self.event = PostgresConnection(
            address, "event", {}
        )  # by itself: writers of events wait for one another
        self.read = PostgresConnection(address, "read", {})
        self.search = PostgresConnection(address, "search", {})  # may read a whole table
        self.bulk = PostgresConnection(address, "bulk", _LOOPS, timeout=BULK_TIMEOUT)
        self._all = [
            self.submit,
            self.claim,
            self.sweep,
            self.settle,
            self.progress,
            self.plan,
            self.event,
            self.read,
            self.search,
            self.bulk,
        ]
        self._done: list[UUID] = []

    def heartbeat(self, on_connect: Setup, on_lost: Callable[[], None]) -> PostgresConnection:
        return self._keep(
            PostgresConnection(self.address, "heartbeat", _LOOPS, on_connect=on_connect, on_lost=on_lost)
        )

    def listen(self, on_lost: Callable[[], None]) -> PostgresConnection:
        # A lost hint costs a second: not worth waiting for the disk.
        return self._keep(
            PostgresConnection(self.address, "listen", {"synchronous_commit": "off"}, on_lost=on_lost)
        )

    def temporary(self, timeout: float = CALL_TIMEOUT) -> PostgresConnection:
        """For rare work; the caller closes it."""
        return PostgresConnection(self.address, "temporary", {}, timeout=timeout)

    def take_done(self) -> list[UUID]:
        """Awaited jobs that the connection `settle` has ended since the last call."""
        done, self._done = self._done, []
        return done

    def reopen(self) -> None:
        for connection in self._all:
            connection.reopen()

    async def close(self) -> None:
        for connection in self._all:
            await connection.close()

    async def _listen_for_done(self, connection: Any) -> None:
        connection.add_log_listener(self._receive_message)

    def _receive_message(self, _connection: object, message: Any) -> None:
        if message.message.startswith(DONE_MESSAGE):
            self._done.append(UUID(message.message.removeprefix(DONE_MESSAGE)))

    def _keep(self, connection: PostgresConnection) -> PostgresConnection:
        self._all.append(connection)
        return connection
