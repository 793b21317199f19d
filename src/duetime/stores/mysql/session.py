"""Named statements on one connection, and the hints that a transaction sends once it is committed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from asyncmy.errors import IntegrityError

from duetime.errors import Conflict
from duetime.model.hint import Hint
from duetime.model.instant import Micros
from duetime.model.stored import RowKey
from duetime.store import Lane
from duetime.stores.mysql.literals import LITERALS, ROWS, Literals, Values, bounded, pieces, rendered
from duetime.stores.row_values import nested_range_condition
from duetime.stores.sql.session import Parameters, Row
from duetime.stores.statements import load

STATEMENTS = load("duetime.stores.mysql", "sql", shared="duetime.stores.sql", prefix="duetime_")
IN_PYTHON = frozenset({"label", "error", "error_group", "payload", "text"})
# Columns with other names than elsewhere: most of those are reserved words here.
_RENAMED = {
    ("records", "key"): "name",
    ("once_markers", "key"): "marker",
    ("schedule_versions", "change"): "reason",
    # These show NULL where the columns behind them are -1.
    ("jobs", "node"): "held_by",
    ("jobs", "claimed_at"): "held_since",
}
# Columns of the end of a job, as `settle_plain` gets them, and those that differ anyway.
ENDS = ("id", "attempt", "state", "failures", "losses", "started_at", "finished_at", "result", "error")
_OWN = frozenset({"id", "started_at", "finished_at"})
_ATTEMPT = ENDS.index("attempt")
_WITHOUT_NULL = frozenset({"held_by", "held_since"})
FEW_LANES = 3  # more are first asked which of them have due jobs
_MATCHED = re.compile(rb"Rows matched: (\d+)")


class MySqlResult(NamedTuple):
    rows: Sequence[Row]
    changed: int  # rows


Query = Callable[[str], Awaitable[list[MySqlResult]]]


async def query(connection: Any, text: str) -> list[MySqlResult]:
    """On a connection of the driver: the result of each statement in the text."""
    await connection.query(text)
    results = [_result(connection._result)]
    while connection._result.has_next:
        await connection.next_result()
        results.append(_result(connection._result))
    return results


def _result(result: Any) -> MySqlResult:
    if result.rows is not None:
        return MySqlResult(result.rows, 0)
    # An UPDATE reports rows that it left as they were only in its message.
    matched = _MATCHED.search(result.message) if result.message else None
    return MySqlResult((), int(matched[1]) if matched else result.affected_rows)


class MySqlSession:
    """The text of a statement may be several; then the rows of all are its rows."""

    __slots__ = ("_literals", "_query", "_row_word")
    filters = IN_PYTHON

    def __init__(self, query: Query, row_word: str = "", literals: Literals = LITERALS) -> None:
        self._query = query
        self._row_word = row_word  # MySQL writes ROW before each row of a list, MariaDB nothing
        self._literals = literals

    async def all(self, name: str, parameters: Parameters = ()) -> list[Row]:
        return _rows(await self._query(rendered(STATEMENTS[name], parameters, self._literals)))

    async def one(self, name: str, parameters: Parameters = ()) -> Row | None:
        rows = await self.all(name, parameters)
        return rows[0] if rows else None

    async def value(self, name: str, parameters: Parameters = ()) -> Any:
        return (await self.all(name, parameters))[0][0]

    async def change(self, name: str, parameters: Parameters = ()) -> int:
        return sum(
            result.changed
            for result in await self._query(rendered(STATEMENTS[name], parameters, self._literals))
        )

    async def change_many(self, name: str, rows: Sequence[Parameters]) -> int:
        return sum([result.changed for results in await self._many(name, rows) for result in results])

    async def change_each(self, name: str, rows: Sequence[Parameters]) -> list[int]:
        return [result.changed for result in await self._each(name, rows)]

    async def all_many(self, name: str, rows: Sequence[Parameters]) -> list[Row]:
        return [row for results in await self._many(name, rows) for row in _rows(results)]

    async def all_each(self, name: str, rows: Sequence[Parameters]) -> list[Row]:
        return _rows(await self._each(name, rows))

    async def composed(
        self, first: str, equal: Iterable[str], others: Iterable[str], values: dict[str, Any]
    ) -> list[Row]:
        conditions = [f"AND {column} = :{column}" for column in equal]
        statement = "\n".join([STATEMENTS[first], *conditions, *(STATEMENTS[name] for name in others)])
        return _rows(await self._query(rendered(statement, values, self._literals)))

    async def each_lane(self, name: str, lanes: Sequence[Lane], parameters: Parameters) -> list[Row]:
        if ROWS not in STATEMENTS[name]:
            return await self.all_each(name, [(*lane, *parameters) for lane in lanes])
        return [row for results in await self._many(name, lanes, parameters) for row in _rows(results)]

    async def first_of_lanes(
        self, name: str, lanes: Sequence[Lane], parameters: Parameters, limit: int
    ) -> list[Row]:
        """Lane by lane: rows beyond the limit must not be locked."""
        if len(lanes) > FEW_LANES:
            due = await self.each_lane("due_lanes", lanes, (int(name != "claimable"), parameters[1]))
            known = set(due)
            lanes = [lane for lane in lanes if tuple(lane) in known]
        found: list[Row] = []
        for lane in lanes:
            if len(found) < limit:
                found += await self.all(name, (*lane, *parameters, limit - len(found)))
        return found

    def listed(self, values: Collection[Any]) -> Values:
        return Values(values)

    async def time(self) -> Micros:
        return int(await self.value("time"))

    async def run_script(self, text: str) -> None:
        await self._query(text.strip().removesuffix(";"))

    async def _many(
        self, name: str, rows: Sequence[Parameters], parameters: Parameters = ()
    ) -> list[list[MySqlResult]]:
        texts = pieces(STATEMENTS[name], rows, self._row_word, self._literals, parameters)
        return [await self._query(text) for text in texts]

    async def _each(self, name: str, rows: Sequence[Parameters]) -> list[MySqlResult]:
        texts = [rendered(STATEMENTS[name], row, self._literals) for row in rows]
        return await self._query(";\n".join(texts)) if texts else []


class MySqlTransaction(MySqlSession):
    """A session that may write. `now` is the server's clock when it began."""

    __slots__ = ("ended", "hints", "now", "waited")
    serial = False

    def __init__(self, query: Query, now: Micros, row_word: str = "", literals: Literals = LITERALS) -> None:
        super().__init__(query, row_word, literals)
        self.now = now
        self.waited: Micros = 0
        self.hints: list[Hint] = []
        self.ended: list[Row] = []

    def tell(self, hints: Iterable[Hint]) -> None:
        self.hints += hints

    async def delete_range(
        self, table: str, columns: Sequence[str], after: RowKey | None, until: RowKey | None
    ) -> None:
        condition, values = nested_range_condition(_columns(table, columns), after, until)
        statement = f"DELETE FROM duetime_{table} WHERE {condition}"  # noqa: S608  # names of ours
        await self._query(rendered(statement, values, self._literals))

    async def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        names = _columns(table, columns)
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO duetime_{table} ({', '.join(names)}) VALUES /* rows */ ({marks})"  # noqa: S608
        if _WITHOUT_NULL & set(names):
            rows = [
                [
                    -1 if value is None and name in _WITHOUT_NULL else value
                    for name, value in zip(names, row, strict=True)
                ]
                for row in rows
            ]
        try:
            for text in pieces(statement, rows, "", self._literals):
                await self._query(text)
        except IntegrityError as problem:
            raise Conflict(f"a row outside of the range is in the way ({problem})") from problem

    async def settle_plain(self, rows: Sequence[Row]) -> int:
        """Each transaction locks jobs by ascending id, so that two of them do not wait for each other."""
        texts: list[str] = []
        for attempt in {row[_ATTEMPT] for row in rows}:
            ends = sorted([row for row in rows if row[_ATTEMPT] == attempt], key=itemgetter(0))
            differing = _differing(ends)
            chosen = [*map(itemgetter(*differing), ends)]
            texts += pieces(_settle_plain(differing), chosen, self._row_word, self._literals, ends[0])
        written = 0
        for begin, end in bounded(texts):
            results = await self._query(";\n".join(texts[begin:end]))
            written += sum([inserted.changed for inserted in results[::2]])
        return written

    async def lock_permits(self) -> bool:
        await self.change("lock_permits")
        return True


def _differing(rows: Sequence[Row]) -> tuple[int, ...]:
    """Columns of ends that are not the same in all rows. Id and instants are never taken for the same."""
    return tuple(
        at
        for at, column in enumerate(zip(*rows, strict=True))
        if ENDS[at] in _OWN or column.count(column[0]) < len(column)
    )


@lru_cache
def _settle_plain(differing: tuple[int, ...]) -> str:
    """The other columns are parameters."""
    text = STATEMENTS["settle_plain"].replace("/* differing */", ", ".join(ENDS[at] for at in differing))
    for at in set(range(len(ENDS))) - set(differing):
        text = text.replace(f"d.{ENDS[at]}", f"?{at + 1}")
    return text


def _rows(results: Iterable[MySqlResult]) -> list[Row]:
    return [row for result in results for row in result.rows]


def _columns(table: str, columns: Sequence[str]) -> list[str]:
    return [_RENAMED.get((table, column), column) for column in columns]
