"""The verbs of the store in a caller's transaction: the same statements, through the caller's connection.

Drivers differ in how they pass parameters, so the values are written into the text of the statement. A value
gets the type that the statement states for its parameter."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from duetime.model import codec
from duetime.model.hint import Hint, JobHint
from duetime.stores.hint_text import encode
from duetime.stores.named_row import NamedRow
from duetime.stores.postgres.connection import Work
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.external import ExternalJobs
from duetime.stores.postgres.jobs import PostgresJobs
from duetime.stores.postgres.notifier import Notifier
from duetime.stores.postgres.queues import PostgresQueues
from duetime.stores.postgres.records import PostgresRecords
from duetime.stores.postgres.schedules import PostgresSchedules
from duetime.stores.postgres.settle import PostgresSettlements

P = ParamSpec("P")
Answer = TypeVar("Answer")
Send = Callable[[str], Awaitable[Iterable[Sequence[str]]]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What a column has, by its name
IDS = frozenset({"id", "schedule_id", "retry_of"})
BYTES = frozenset(
    {
        "definition",
        "target_spec",
        "payload",
        "policies",
        "labels",
        "value",
        "result",
        "checkpoint",
        "progress",
    }
)
INSTANTS = ("_at", "_time", "moment")
_MAIN = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})
_TOKEN = re.compile(r"[()]|\b[A-Z]+\b")
_PARAMETER = re.compile(r"\$(\d+)(?:::(\w+(?:\[\])?))?")


class PostgresCallerStore:
    """`call` surrounds each verb: it checks the connection and explains its errors."""

    def __init__(
        self, send: Send, call: Callable[[Awaitable[Any]], Awaitable[Any]], queues: PostgresQueues
    ) -> None:
        self._connection = CallerConnection(send)
        self._call = call
        self._hints: list[Hint] = []
        connections = cast(PostgresConnections, CallerConnections(self._connection))
        notifier = cast(Notifier, self)
        external = ExternalJobs(connections, PostgresSettlements(connections, notifier))
        jobs = PostgresJobs(connections, notifier, queues, external)
        schedules, records = PostgresSchedules(connections, notifier), PostgresRecords(connections)
        self.get_job, self.cancel_job = self._verb(jobs.get), self._verb(jobs.cancel)
        self.reschedule_job = self._verb(jobs.reschedule)
        self.write_schedule, self.get_schedule = self._verb(schedules.write), self._verb(schedules.get)
        self.fire = self._verb(schedules.fire)
        self.get_record, self.put_record = self._verb(records.get), self._verb(records.put)
        self.list_records = self._verb(records.page)

    def notify(self, hints: Iterable[Hint], *, also_late: bool = False) -> None:
        """In place of the store's notifier: sent with the caller's commit."""
        self._hints += hints

    def _verb(self, verb: Callable[P, Awaitable[Answer]]) -> Callable[P, Coroutine[Any, Any, Answer]]:
        async def within(*arguments: P.args, **named: P.kwargs) -> Answer:
            answer: Answer = await self._call(partial(self._and_notify, verb(*arguments, **named))())
            return answer

        return within

    async def _and_notify(self, verb: Awaitable[Answer]) -> Answer:
        answer = await verb
        hints, self._hints = self._hints, []
        if hints:
            instants = [hint.due_at if isinstance(hint, JobHint) else 0 for hint in hints]
            await self._connection.fetch(SQL["notify"], [encode(hint) for hint in hints], instants)
        return answer


class CallerConnections:
    """One connection for every role."""

    def __init__(self, connection: CallerConnection) -> None:
        self.submit = self.read = self.plan = self.sweep = self.settle = connection


class CallerConnection:
    """In place of a connection of the store, and of its driver's. It never begins or ends a transaction, and
    never repeats."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def run(self, work: Work[Answer], *, atomic: bool = False, repeat: bool = True) -> Answer:
        return await work(self, False)

    async def in_transaction(self, connection: Any, work: Work[Answer]) -> Answer:
        return await work(self, True)

    async def fetch(self, statement: str, *arguments: Any, repeat: bool = True) -> list[NamedRow]:
        rows = await self._send(with_values(answering_in_json(statement), arguments))
        return [_row_of(text) for (text,) in rows]

    async def fetchrow(self, statement: str, *arguments: Any) -> NamedRow | None:
        return next(iter(await self.fetch(statement, *arguments)), None)

    async def fetchval(self, statement: str, *arguments: Any) -> Any:
        row = await self.fetchrow(statement, *arguments)
        return None if row is None else row[0]

    execute, row, value = fetch, fetchrow, fetchval


def with_values(statement: str, values: Sequence[Any]) -> str:
    stated = {int(number): kind for number, kind in _PARAMETER.findall(statement) if kind}

    def placed(match: re.Match[str]) -> str:
        number = int(match[1])
        kind = stated.get(number)
        text = _literal(values[number - 1], kind or "")
        return text if kind is None else f"({text})::{kind}"

    return _PARAMETER.sub(placed, statement)


def _literal(value: Any, kind: str) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int() if kind.startswith("timestamptz"):
            return f"'{(EPOCH + timedelta(microseconds=value)).isoformat()}'"
        case int():
            return str(value)
        case UUID():
            return f"'{value}'"
        case bytes():
            return f"E'\\\\x{value.hex()}'"
        case str():
            # Without a percent sign and a colon no driver takes a part of it for a parameter.
            plain = value.replace("\\", "\\\\").replace("'", "''").replace("%", "\\x25").replace(":", "\\x3a")
            return f"E'{plain}'"
        case _:
            return f"ARRAY[{', '.join(_literal(one, kind) for one in value)}]"


def answering_in_json(statement: str) -> str:
    """The same statement; a row of its answer is one text, which every driver can read."""
    main = next(start for start, word in _words_outside_parentheses(statement) if word in _MAIN)
    body = statement[main:].rstrip().rstrip(";")
    if not body.startswith("SELECT") and "RETURNING" not in body:
        return statement
    before = f"{statement[:main].rstrip()}, " if main else "WITH "
    return f"{before}answer AS ({body}) SELECT CAST(row_to_json(answer) AS text) FROM answer"  # noqa: S608  # ours


def _words_outside_parentheses(statement: str) -> Iterator[tuple[int, str]]:
    depth = 0
    for match in _TOKEN.finditer(statement):
        match match[0]:
            case "(":
                depth += 1
            case ")":
                depth -= 1
            case word if not depth:
                yield match.start(), word


def _row_of(text: str) -> NamedRow:
    values: dict[str, Any] = codec.decode(text.encode())
    return NamedRow.kind(values)(_as_stored(name, value) for name, value in values.items())


def _as_stored(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name in BYTES:
        return bytes.fromhex(value.removeprefix("\\x"))
    if name in IDS:
        return UUID(value)
    if name.endswith(INSTANTS):
        return (datetime.fromisoformat(value) - EPOCH) // timedelta(microseconds=1)
    return value
