"""The store's lines, one per role, each with the planner settings its statements were written for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from duetime.stores.postgres.address import Address
from duetime.stores.postgres.line import PATIENCE, Line, Work
from duetime.stores.statements import load

SQL = load("duetime.stores.postgres", "sql")

# Statistics of a table that is empty one second and full the next mislead the planner: generic plans, and only joins that can be right.
_STEADY = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off"}
_LOOPS = {**_STEADY, "enable_hashjoin": "off", "enable_mergejoin": "off"}
_HASHES = {**_STEADY, "enable_nestloop": "off", "enable_mergejoin": "off"}
DONE = "duetime done "  # how the function `told` begins its message


class Lines:
    """Nothing is connected before it is used: a client that only submits opens the lines that submitting needs."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.submit = Line(address, "submit", _LOOPS)
        self.claim = Line(address, "claim", _LOOPS)
        self.sweep = Line(address, "sweep", _LOOPS)
        self.settle = Line(address, "settle", _HASHES, on_connect=self._hear_of_ends)
        self.note = Line(address, "note", _HASHES)
        self.plan = Line(address, "plan", _HASHES)
        self.event = Line(address, "event", {})  # by itself: its writers wait for one another
        self.read = Line(address, "read", {})
        self._all = [self.submit, self.claim, self.sweep, self.settle, self.note, self.plan, self.event, self.read]
        self.ended: list[UUID] = []  # jobs somebody waits for which `settle` has ended: not told to anybody yet

    def heart(self, on_connect: Work[None], on_lost: Callable[[], None]) -> Line:
        return self._keep(Line(self.address, "heart", _LOOPS, on_connect=on_connect, on_lost=on_lost))

    def listen(self, on_lost: Callable[[], None]) -> Line:
        # A hint that is lost costs a second: not worth waiting for the disk.
        return self._keep(Line(self.address, "listen", {"synchronous_commit": "off"}, on_lost=on_lost))

    def passing(self, patience: float = PATIENCE) -> Line:
        """For what is rare: whoever asks for it closes it."""
        return Line(self.address, "passing", {}, patience=patience)

    def reopen(self) -> None:
        for line in self._all:
            line.reopen()

    async def close(self) -> None:
        for line in self._all:
            await line.close()

    async def _hear_of_ends(self, connection: Any) -> None:
        connection.add_log_listener(self._note_end)

    def _note_end(self, _connection: object, message: Any) -> None:
        if message.message.startswith(DONE):
            self.ended.append(UUID(message.message.removeprefix(DONE)))

    def _keep(self, line: Line) -> Line:
        self._all.append(line)
        return line
