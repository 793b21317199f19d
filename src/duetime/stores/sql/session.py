"""What the shared code asks of a connection: named statements, with their parameters and rows.

The code is written as coroutines. A connection that blocks (SQLite's, on a thread of its own) runs them with
`run_now`: its sessions answer immediately, so that no coroutine ever waits."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from duetime.model.hint import Hint
from duetime.model.instant import Micros
from duetime.model.stored import RowKey
from duetime.store import Lane

Row = tuple[Any, ...]
Parameters = Sequence[Any]
Answer = TypeVar("Answer")


class SqlSession(Protocol):
    filters: frozenset[str]  # conditions of listings that the server cannot check: Python does

    async def all(self, name: str, parameters: Parameters = ()) -> list[Row]: ...

    async def one(self, name: str, parameters: Parameters = ()) -> Row | None: ...

    async def value(self, name: str, parameters: Parameters = ()) -> Any:
        """The first column of the first row, which must exist."""
        ...

    async def change(self, name: str, parameters: Parameters = ()) -> int:
        """Returns how many rows it changed."""
        ...

    async def change_many(self, name: str, rows: Sequence[Parameters]) -> int:
        """As `change`, for each of these rows."""
        ...

    async def change_each(self, name: str, rows: Sequence[Parameters]) -> list[int]:
        """As `change`, one after the other: how many rows each changed."""
        ...

    async def all_many(self, name: str, rows: Sequence[Parameters]) -> list[Row]:
        """As `all`, for each of these rows."""
        ...

    async def composed(
        self, first: str, equal: Iterable[str], others: Iterable[str], values: dict[str, Any]
    ) -> list[Row]:
        """As `all`, for a statement of several parts, with columns that must equal their values after the
        first."""
        ...

    async def all_each(self, name: str, rows: Sequence[Parameters]) -> list[Row]:
        """As `all`, one after the other."""
        ...

    async def each_lane(self, name: str, lanes: Sequence[Lane], parameters: Parameters) -> list[Row]:
        """As `all`, for each of these lanes."""
        ...

    async def first_of_lanes(
        self, name: str, lanes: Sequence[Lane], parameters: Parameters, limit: int
    ) -> list[Row]:
        """The first rows of these lanes, in their order, for this transaction only."""
        ...

    def listed(self, values: Collection[Any]) -> Any:
        """Values as one parameter."""
        ...

    async def time(self) -> Micros:
        """The store's clock."""
        ...


class SqlTransaction(SqlSession, Protocol):
    """A session that may write. `now` is the store's clock for everything in it."""

    serial: bool  # no other transaction can write at the same time: there is nothing to lock
    now: Micros
    waited: Micros  # for its turn to write
    ended: list[Row]  # jobs that became final; the first column is the id

    def tell(self, hints: Iterable[Hint]) -> None:
        """Hints to send after the commit."""
        ...

    async def delete_range(
        self, table: str, columns: Sequence[str], after: RowKey | None, until: RowKey | None
    ) -> None:
        """Rows of a table as `row_values` names it, whose key in these columns is in the range."""
        ...

    async def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        """Raises Conflict when another row is in the way."""
        ...

    async def settle_plain(self, rows: Sequence[Row]) -> int:
        """Move these jobs to the past, as `settle_final` and `settle_delete` do, and return how many. Where
        transactions are not serial, those that have a permit or are awaited are left: they must be read."""
        ...

    async def lock_permits(self) -> bool:
        """Let no other transaction decide about permits until this one ends. False where transactions are
        serial: what was read before has not changed."""
        ...


def run_now(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        answer: Answer = done.value
        return answer
    work.close()
    raise RuntimeError("a session that blocks must not wait for an event loop")
