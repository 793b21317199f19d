"""The components of the PostgreSQL store that need no server."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from duetime.clock import monotonic_micros
from duetime.errors import ConfigError, SchemaMissing, StoreError, StoreFull, StoreUnavailable
from duetime.model.hint import CancelHint, DoneHint, Hint, JobHint, ScheduleHint
from duetime.model.ids import Ids
from duetime.stores import postgres, statements
from duetime.stores.hint_text import decode, encode
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.address import parse
from duetime.stores.postgres.connections import PostgresConnections
from duetime.stores.postgres.deadline import Deadline
from duetime.stores.postgres.errors import classify, classify_sqlstate, translate
from duetime.stores.postgres.notifier import MIN_INTERVAL, Notifier
from duetime.stores.server_errors import ErrorClass

QUEUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=128)


class TestErrors:
    @pytest.mark.parametrize(
        ("state", "error_class"),
        [
            ("40P01", ErrorClass.RETRY),
            ("40001", ErrorClass.RETRY),
            ("53100", ErrorClass.FULL),
            ("53200", ErrorClass.UNAVAILABLE),
            ("53300", ErrorClass.UNAVAILABLE),
            ("25006", ErrorClass.RECONNECT),
            ("55P03", ErrorClass.UNAVAILABLE),
            ("57014", ErrorClass.UNAVAILABLE),
            ("57P01", ErrorClass.RECONNECT),
            ("57P02", ErrorClass.RECONNECT),
            ("57P03", ErrorClass.UNAVAILABLE),
            ("08000", ErrorClass.RECONNECT),
            ("08003", ErrorClass.RECONNECT),
            ("08006", ErrorClass.RECONNECT),
            ("08P01", ErrorClass.RECONNECT),
            ("28P01", ErrorClass.ACCESS_DENIED),
            ("3D000", ErrorClass.ACCESS_DENIED),
            ("42P01", ErrorClass.NO_SCHEMA),
            ("3F000", ErrorClass.NO_SCHEMA),
            ("22P05", ErrorClass.BUG),
            ("23505", ErrorClass.BUG),
            ("42601", ErrorClass.BUG),
            (None, ErrorClass.BUG),
        ],
    )
    def test_sqlstate_is_classified(self, state: str | None, error_class: ErrorClass) -> None:
        assert classify_sqlstate(state) is error_class

    @pytest.mark.parametrize(
        ("problem", "error_class"),
        [
            (ConnectionRefusedError(111, "refused"), ErrorClass.UNAVAILABLE),
            (ConnectionResetError(104, "reset"), ErrorClass.UNAVAILABLE),
            (TimeoutError(), ErrorClass.UNAVAILABLE),
            (asyncpg.InterfaceError("connection is closed"), ErrorClass.RECONNECT),
            (asyncpg.ConnectionDoesNotExistError("closed in the middle of operation"), ErrorClass.RECONNECT),
            (asyncpg.DiskFullError("no space left"), ErrorClass.FULL),
            (ValueError("ours"), ErrorClass.BUG),
        ],
    )
    def test_exception_is_classified(self, problem: BaseException, error_class: ErrorClass) -> None:
        assert classify(problem) is error_class

    @pytest.mark.parametrize(
        ("error_class", "kind"),
        [
            (ErrorClass.RETRY, StoreUnavailable),
            (ErrorClass.RECONNECT, StoreUnavailable),
            (ErrorClass.UNAVAILABLE, StoreUnavailable),
            (ErrorClass.FULL, StoreFull),
            (ErrorClass.NO_SCHEMA, SchemaMissing),
            (ErrorClass.ACCESS_DENIED, ConfigError),
            (ErrorClass.BUG, StoreError),
        ],
    )
    def test_error_class_is_translated(self, error_class: ErrorClass, kind: type[Exception]) -> None:
        error = translate(OSError("boom"), error_class, "host:5432/database")
        assert type(error) is kind
        assert "host:5432/database" in error.message


class TestAddress:
    def test_pooler_option_is_removed_from_the_url(self) -> None:
        address = parse("postgresql://user@host:6432/database?sslmode=require&pooler=transaction")
        assert (address.dsns, address.pooled) == (
            ("postgresql://user@host:6432/database?sslmode=require",),
            True,
        )

    def test_url_without_options_is_unchanged(self) -> None:
        address = parse("postgresql://user:secret@host/database")
        assert (address.dsns, address.pooled, address.place) == (
            ("postgresql://user:secret@host/database",),
            False,
            "host:5432/database",
        )

    @pytest.mark.parametrize("query", ["poolmode=transaction", "pooler=session", "pooler=", "work_mem=1GB"])
    def test_unknown_option_is_named(self, query: str) -> None:
        with pytest.raises(ConfigError, match=query.split("=", maxsplit=1)[0]):
            PostgresStore.from_url(f"postgresql://host/database?{query}")

    @pytest.mark.parametrize(
        "url", ["postgresql://user:pass/word@host/database", "postgresql://user:hunter2@host:port/database"]
    )
    def test_error_about_a_url_does_not_show_its_password(self, url: str) -> None:
        with pytest.raises(ConfigError) as caught:
            parse(url)
        assert "word" not in caught.value.message.replace("password", "")
        assert "hunter2" not in caught.value.message
        assert caught.value.__cause__ is None

    def test_repr_does_not_show_the_password(self) -> None:
        store = PostgresStore.from_url("postgresql://user:hunter2@host/database")
        assert "hunter2" not in repr(store) + repr(store._address)


class TestHints:
    @given(st.builds(JobHint, QUEUES, st.integers(0, 9), st.integers(0, 1 << 60)))
    def test_job_hint_is_decoded_as_it_was(self, hint: JobHint) -> None:
        assert decode(encode(hint)) == hint
        assert len(encode(hint).encode()) < 1_000

    def test_other_hints_are_decoded_as_they_were(self) -> None:
        for hint in (ScheduleHint(12), CancelHint(7, Ids().new(1)), DoneHint(Ids().new(1))):  # type: ignore[arg-type]  # a node id is a number
            assert decode(encode(hint)) == hint

    @pytest.mark.parametrize(
        "payload", ["", "j", "j x y queue", "c 1 nothing", "z 1 2", "s", "d", "d nothing"]
    )
    def test_unknown_payload_is_ignored(self, payload: str) -> None:
        assert decode(payload) is None

    async def test_one_of_many_statements_sends_a_hint_along(self) -> None:
        notifier = Notifier(PostgresConnections(parse("postgresql://host/database")))
        hint = JobHint("a", 5, 30)
        assert [notifier.piggyback(hint) for _ in range(50)] == [hint] + [None] * 49

    async def test_pending_hints_are_collected_by_lane(self) -> None:
        """The earliest due time of each lane covers the others."""
        notifier = Notifier(PostgresConnections(parse("postgresql://host/database")))
        hints: list[Hint] = [
            JobHint("a", 5, 30),
            JobHint("a", 5, 7),
            JobHint("a", 5, 200),
            JobHint("b", 5, 9),
            JobHint("b", 5, 8),
            ScheduleHint(5),
            ScheduleHint(3),
        ]
        notifier.piggyback(JobHint("a", 5, 30))
        notifier.notify(hints)
        collected = sorted((encode(hint), moment) for hint, moment in notifier._pending.values())
        assert collected == [("j 5 7 7 defaulta", 7), ("j 5 8 7 defaultb", 8), ("s 3", 0)]
        await notifier.close()

    async def test_statement_sends_the_pending_hint_of_its_lane(self) -> None:
        notifier = Notifier(PostgresConnections(parse("postgresql://host/database")))
        assert notifier.piggyback(JobHint("a", 5, 1)) is not None
        notifier.notify([JobHint("a", 5, 7), JobHint("a", 6, 7), JobHint("b", 5, 7)])
        notifier._last_sent -= MIN_INTERVAL
        assert notifier.piggyback(JobHint("a", 5, 30)) == JobHint("a", 5, 7)
        assert len(notifier._pending) == 3  # the statement may fail
        notifier.sent(JobHint("a", 5, 7))
        assert sorted(encode(hint) for hint, _ in notifier._pending.values()) == [
            "j 5 7 7 defaultb",
            "j 6 7 7 defaulta",
        ]
        notifier.notify([JobHint("a", 5, 6)])
        notifier.sent(JobHint("a", 5, 7))  # an earlier one is pending now
        assert len(notifier._pending) == 3
        await notifier.close()

    async def test_statements_of_one_lane_do_not_delay_the_hints_of_another(self) -> None:
        notifier = Notifier(PostgresConnections(parse("postgresql://host/database")))
        sent: list[str] = []

        async def send(_statement: str, messages: list[str], _moments: list[int]) -> None:
            sent.extend(messages)

        notifier._connection.fetch = send  # type: ignore[assignment, method-assign]
        assert notifier.piggyback(JobHint("a", 5, 1)) is not None
        notifier.notify([JobHint("a", 5, 2), JobHint("b", 5, 2)])
        turns = 0
        async with asyncio.timeout(60):
            while not sent:
                if (hint := notifier.piggyback(JobHint("a", 5, 3))) is not None:
                    turns += 1
                    notifier.sent(hint)
                await asyncio.sleep(0.0005)
        assert sent == ["j 5 2 7 defaultb"]
        assert turns > 0
        await notifier.close()

    async def test_hint_covered_by_an_earlier_one_is_not_added(self) -> None:
        notifier = Notifier(PostgresConnections(parse("postgresql://host/database")))
        for due_at, expected in (
            (7, ["j 5 7 7 defaulta"]),
            (9, ["j 5 7 7 defaulta"]),
            (6, ["j 5 6 7 defaulta"]),
        ):
            notifier.notify_job(JobHint("a", 5, due_at))
            assert [encode(hint) for hint, _ in notifier._pending.values()] == expected
        notifier.notify_job(JobHint("b", 5, 9))
        assert sorted(encode(hint) for hint, _ in notifier._pending.values()) == [
            "j 5 6 7 defaulta",
            "j 5 9 7 defaultb",
        ]
        await notifier.close()

    async def test_storm_of_hints_is_few_statements(self) -> None:
        """The server serialises the commits of transactions that notify."""
        notifier = Notifier(PostgresConnections(parse("postgresql://host/database")))
        sent: list[list[str]] = []

        async def send(_statement: str, messages: list[str], _moments: list[int]) -> None:
            sent.append(messages)

        notifier._connection.fetch = send  # type: ignore[assignment, method-assign]
        began = monotonic_micros()
        for number in range(100_000):
            notifier.notify_job(JobHint("a", number % 3, 100_000 - number))
            if number % 1_000 == 0:
                await asyncio.sleep(0)
        await notifier.close()
        took = monotonic_micros() - began
        assert 1 <= len(sent) <= took // MIN_INTERVAL + 2
        assert max(map(len, sent)) <= 3, "one hint of each lane"
        assert set(sent[-1]) == {
            f"j {number % 3} {100_000 - number} 7 defaulta" for number in (99_997, 99_998, 99_999)
        }

    async def test_every_hint_is_delivered_behind_a_pooler(self) -> None:
        notifier = Notifier(PostgresConnections(parse("postgresql://host/database?pooler=transaction")))
        heard: list[Hint] = []
        notifier.subscribe(heard.append)
        hints = [JobHint("a", 5, 7), JobHint("a", 5, 9)]
        for hint in hints:
            notifier.notify_job(hint)
        assert heard == hints
        await notifier.close()

    async def test_process_notifies_itself_behind_a_pooler(self) -> None:
        notifier = Notifier(PostgresConnections(parse("postgresql://host/database?pooler=transaction")))
        heard: list[Hint] = []
        unsubscribe = notifier.subscribe(heard.append)
        notifier.notify([JobHint("a", 5, 30)])
        unsubscribe()
        notifier.notify([JobHint("b", 5, 30)])
        assert heard == [JobHint("a", 5, 30)]
        await notifier.close()


class TestDeadline:
    async def test_one_timer_serves_all_calls_that_are_answered_in_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loop, late = asyncio.get_running_loop(), []
        deadline = Deadline(lambda: late.append(True))
        call_at, timers = loop.call_at, list[asyncio.TimerHandle]()

        def noted(*arguments: Any) -> asyncio.TimerHandle:
            timers.append(call_at(*arguments))
            return timers[-1]

        monkeypatch.setattr(loop, "call_at", noted)
        for _ in range(1_000):
            deadline.begin(5)
            deadline.end()
        assert len(timers) == 1
        deadline.forget()
        assert timers[0].cancelled()
        assert not late

    async def test_overdue_reply_is_reported_once(self) -> None:
        reported: list[float] = []
        loop = asyncio.get_running_loop()
        deadline = Deadline(lambda: reported.append(loop.time()))
        deadline.begin(0.02)
        deadline.end()
        began = loop.time()
        deadline.begin(0.05)  # the timer of the call before fires too early for this one
        async with asyncio.timeout(60):
            while not reported:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        assert len(reported) == 1
        assert reported[0] - began >= 0.05

    def test_deadline_works_on_a_loop_whose_handles_do_not_know_their_time(self) -> None:
        """Those of uvloop, when that is immediately."""
        reported: list[bool] = []
        deadline = Deadline(lambda: reported.append(True))

        async def ask() -> None:
            deadline.begin(0.0001)
            deadline.end()
            deadline.begin(60)
            await asyncio.sleep(0.01)
            deadline.forget()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(ask())
        assert reported == []

    async def test_short_timeout_does_not_wait_for_the_timer_of_a_long_one(self) -> None:
        reported: list[bool] = []
        deadline = Deadline(lambda: reported.append(True))
        deadline.begin(60)
        deadline.end()
        deadline.begin(0.01)
        await asyncio.sleep(0.1)
        assert reported == [True]

    async def test_nothing_is_reported_when_no_call_is_open(self) -> None:
        reported: list[bool] = []
        deadline = Deadline(lambda: reported.append(True))
        deadline.begin(0.01)
        deadline.end()
        await asyncio.sleep(0.05)
        assert reported == []
        deadline.begin(0.01)  # and afterwards it is set again
        await asyncio.sleep(0.1)
        assert reported == [True]

    def test_next_event_loop_gets_its_own_timer(self) -> None:
        reported: list[bool] = []
        deadline = Deadline(lambda: reported.append(True))

        async def ask(seconds: float, wait: float) -> None:
            deadline.begin(seconds)
            await asyncio.sleep(wait)

        asyncio.run(ask(5, 0))
        asyncio.run(ask(10, 0))
        assert reported == []
        asyncio.run(ask(0.01, 0.1))
        assert reported == [True]


class TestStatements:
    def test_every_statement_is_used(self) -> None:
        folder = Path(postgres.__file__).parent
        sources = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
        assert [
            name for name in statements.load(postgres.__name__, "sql") if f'"{name}"' not in sources
        ] == []

    def test_ids_have_eight_bytes(self) -> None:
        """Shorter integers are only for small numbers."""
        schema = "".join(statements.scripts(postgres.__name__, "migrations").values())
        columns = [
            line.split()[0]
            for line in schema.splitlines()
            if re.match(r"    \w+ (int|integer|int4|serial|smallint)\b", line)
        ]
        assert set(columns) == {"priority", "segment"}
