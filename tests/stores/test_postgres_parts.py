"""The parts of the PostgreSQL store that need no server."""

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

from duetime.errors import ConfigError, SchemaMissing, StoreError, StoreFull, StoreUnavailable
from duetime.model.hint import CancelHint, DoneHint, Hint, JobHint, ScheduleHint
from duetime.model.ids import Ids
from duetime.stores import postgres, statements
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.address import parse
from duetime.stores.postgres.bell import REST, Bell, decode, encode
from duetime.stores.postgres.deadline import Deadline
from duetime.stores.postgres.faults import Verdict, by_sqlstate, judge, translate
from duetime.stores.postgres.lines import Lines

QUEUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=128)


class TestFaults:
    @pytest.mark.parametrize(
        ("state", "verdict"),
        [
            ("40P01", Verdict.AGAIN),
            ("40001", Verdict.AGAIN),
            ("53100", Verdict.FULL),
            ("53200", Verdict.UNAVAILABLE),
            ("53300", Verdict.UNAVAILABLE),
            ("25006", Verdict.RECONNECT),
            ("55P03", Verdict.UNAVAILABLE),
            ("57014", Verdict.UNAVAILABLE),
            ("57P01", Verdict.RECONNECT),
            ("57P02", Verdict.RECONNECT),
            ("57P03", Verdict.UNAVAILABLE),
            ("08000", Verdict.RECONNECT),
            ("08003", Verdict.RECONNECT),
            ("08006", Verdict.RECONNECT),
            ("08P01", Verdict.RECONNECT),
            ("28P01", Verdict.REFUSED),
            ("3D000", Verdict.REFUSED),
            ("42P01", Verdict.NO_SCHEMA),
            ("3F000", Verdict.NO_SCHEMA),
            ("22P05", Verdict.BUG),
            ("23505", Verdict.BUG),
            ("42601", Verdict.BUG),
            (None, Verdict.BUG),
        ],
    )
    def test_by_sqlstate(self, state: str | None, verdict: Verdict) -> None:
        """C5, C6, C9, C11, C13, C14."""
        assert by_sqlstate(state) is verdict

    @pytest.mark.parametrize(
        ("problem", "verdict"),
        [
            (ConnectionRefusedError(111, "refused"), Verdict.UNAVAILABLE),
            (ConnectionResetError(104, "reset"), Verdict.UNAVAILABLE),
            (TimeoutError(), Verdict.UNAVAILABLE),
            (asyncpg.InterfaceError("connection is closed"), Verdict.RECONNECT),
            (asyncpg.ConnectionDoesNotExistError("closed in the middle of operation"), Verdict.RECONNECT),
            (asyncpg.DiskFullError("no space left"), Verdict.FULL),
            (ValueError("ours"), Verdict.BUG),
        ],
    )
    def test_by_exception(self, problem: BaseException, verdict: Verdict) -> None:
        assert judge(problem) is verdict

    @pytest.mark.parametrize(
        ("verdict", "kind"),
        [
            (Verdict.AGAIN, StoreUnavailable),
            (Verdict.RECONNECT, StoreUnavailable),
            (Verdict.UNAVAILABLE, StoreUnavailable),
            (Verdict.FULL, StoreFull),
            (Verdict.NO_SCHEMA, SchemaMissing),
            (Verdict.REFUSED, ConfigError),
            (Verdict.BUG, StoreError),
        ],
    )
    def test_what_the_caller_sees(self, verdict: Verdict, kind: type[Exception]) -> None:
        error = translate(OSError("boom"), verdict, "host:5432/database")
        assert type(error) is kind
        assert "host:5432/database" in error.message


class TestAddress:
    def test_our_option_is_taken_out(self) -> None:
        address = parse("postgresql://user@host:6432/database?sslmode=require&pooler=transaction")
        assert (address.dsn, address.pooled) == ("postgresql://user@host:6432/database?sslmode=require", True)

    def test_without_options_the_url_stays(self) -> None:
        address = parse("postgresql://user:secret@host/database")
        assert (address.dsn, address.pooled, address.place) == ("postgresql://user:secret@host/database", False, "host:5432/database")

    @pytest.mark.parametrize("query", ["poolmode=transaction", "pooler=session", "pooler=", "work_mem=1GB"])
    def test_an_unknown_option_is_named(self, query: str) -> None:
        """J7."""
        with pytest.raises(ConfigError, match=query.split("=", maxsplit=1)[0]):
            PostgresStore.from_url(f"postgresql://host/database?{query}")

    @pytest.mark.parametrize("url", ["postgresql://user:pass/word@host/database", "postgresql://user:hunter2@host:port/database"])
    def test_a_bad_url_does_not_show_its_password(self, url: str) -> None:
        """S38."""
        with pytest.raises(ConfigError) as caught:
            parse(url)
        assert "word" not in caught.value.message.replace("password", "")
        assert "hunter2" not in caught.value.message
        assert caught.value.__cause__ is None

    def test_what_is_shown(self) -> None:
        """S38."""
        store = PostgresStore.from_url("postgresql://user:hunter2@host/database")
        assert "hunter2" not in repr(store) + repr(store._address)


class TestHints:
    @given(st.builds(JobHint, QUEUES, st.integers(0, 9), st.integers(0, 1 << 60), st.booleans()))
    def test_a_job_hint_arrives_as_it_was(self, hint: JobHint) -> None:
        """F4: short, whatever the queue is called."""
        assert decode(encode(hint)) == hint
        assert len(encode(hint).encode()) < 1_000

    def test_the_others_too(self) -> None:
        for hint in (ScheduleHint(12), CancelHint(7, Ids().new(1)), DoneHint(Ids().new(1))):  # type: ignore[arg-type]  # a node id is a number
            assert decode(encode(hint)) == hint

    @pytest.mark.parametrize("payload", ["", "j", "j x y queue", "c 1 nothing", "z 1 2", "s", "d", "d nothing"])
    def test_what_is_not_understood_is_ignored(self, payload: str) -> None:
        assert decode(payload) is None

    async def test_of_many_in_a_row_one_may_notify(self) -> None:
        """F3."""
        bell = Bell(Lines(parse("postgresql://host/database")))
        hint = JobHint("a", 5, 30)
        assert [bell.take_turn(hint) for _ in range(50)] == [hint] + [None] * 49

    async def test_what_waits_is_gathered_by_lane(self) -> None:
        """F3: the earliest due time of each lane says all."""
        bell = Bell(Lines(parse("postgresql://host/database")))
        hints: list[Hint] = [
            JobHint("a", 5, 30),
            JobHint("a", 5, 7),
            JobHint("a", 5, 200),
            JobHint("b", 5, 9),
            JobHint("b", 5, 8, exclusive=False),
            ScheduleHint(5),
            ScheduleHint(3),
        ]
        bell.take_turn(JobHint("a", 5, 30))
        bell.ring(hints)
        gathered = sorted((encode(hint), moment) for hint, moment in bell._waiting.values())
        assert gathered == [("b 5 8 b", 8), ("j 5 7 a", 7), ("j 5 9 b", 9), ("s 3", 0)]
        await bell.close()

    async def test_a_turn_tells_what_waits_of_its_lane(self) -> None:
        bell = Bell(Lines(parse("postgresql://host/database")))
        assert bell.take_turn(JobHint("a", 5, 1)) is not None
        bell.ring([JobHint("a", 5, 7), JobHint("a", 6, 7), JobHint("b", 5, 7)])
        bell._last_rung -= REST
        assert bell.take_turn(JobHint("a", 5, 30)) == JobHint("a", 5, 7)
        assert len(bell._waiting) == 3  # the statement may come to nothing
        bell.told(JobHint("a", 5, 7))
        assert sorted(encode(hint) for hint, _ in bell._waiting.values()) == ["j 5 7 b", "j 6 7 a"]
        bell.ring([JobHint("a", 5, 6)])
        bell.told(JobHint("a", 5, 7))  # an earlier one has come meanwhile
        assert len(bell._waiting) == 3
        await bell.close()

    async def test_turns_of_one_lane_do_not_hold_up_the_hints_of_another(self) -> None:
        bell = Bell(Lines(parse("postgresql://host/database")))
        sent: list[str] = []

        async def send(_statement: str, messages: list[str], _moments: list[int]) -> None:
            sent.extend(messages)

        bell._line.fetch = send  # type: ignore[assignment, method-assign]
        assert bell.take_turn(JobHint("a", 5, 1)) is not None
        bell.ring([JobHint("a", 5, 2), JobHint("b", 5, 2)])
        turns = 0
        async with asyncio.timeout(10):
            while not sent:
                if (told := bell.take_turn(JobHint("a", 5, 3))) is not None:
                    turns += 1
                    bell.told(told)
                await asyncio.sleep(0.0005)
        assert sent == ["j 5 2 b"]
        assert turns > 0
        await bell.close()

    async def test_a_job_of_which_an_earlier_one_says_all_is_not_told_of(self) -> None:
        bell = Bell(Lines(parse("postgresql://host/database")))
        for due_at, expected in ((7, ["j 5 7 a"]), (9, ["j 5 7 a"]), (6, ["j 5 6 a"])):
            bell.ring_soon(JobHint("a", 5, due_at))
            assert [encode(hint) for hint, _ in bell._waiting.values()] == expected
        bell.ring_soon(JobHint("b", 5, 9))
        assert sorted(encode(hint) for hint, _ in bell._waiting.values()) == ["j 5 6 a", "j 5 9 b"]
        await bell.close()

    async def test_each_job_is_told_of_behind_a_pooler(self) -> None:
        bell = Bell(Lines(parse("postgresql://host/database?pooler=transaction")))
        heard: list[Hint] = []
        bell.subscribe(heard.append)
        hints = [JobHint("a", 5, 7), JobHint("a", 5, 9)]
        for hint in hints:
            bell.ring_soon(hint)
        assert heard == hints
        await bell.close()

    async def test_behind_a_pooler_a_process_tells_itself(self) -> None:
        bell = Bell(Lines(parse("postgresql://host/database?pooler=transaction")))
        heard: list[Hint] = []
        unsubscribe = bell.subscribe(heard.append)
        bell.ring([JobHint("a", 5, 30)])
        unsubscribe()
        bell.ring([JobHint("b", 5, 30)])
        assert heard == [JobHint("a", 5, 30)]
        await bell.close()


class TestDeadline:
    async def test_one_timer_serves_all_that_are_answered_in_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
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

    async def test_it_rings_once_when_an_answer_is_overdue(self) -> None:
        rung: list[float] = []
        loop = asyncio.get_running_loop()
        deadline = Deadline(lambda: rung.append(loop.time()))
        deadline.begin(0.02)
        deadline.end()
        began = loop.time()
        deadline.begin(0.05)  # the timer of the one before rings too early for this one
        await asyncio.sleep(0.2)
        assert len(rung) == 1
        assert rung[0] - began >= 0.05

    def test_a_loop_whose_handles_do_not_tell_when_they_ring(self) -> None:
        """uvloop's, when that is at once."""
        rung: list[bool] = []
        deadline = Deadline(lambda: rung.append(True))

        async def ask() -> None:
            deadline.begin(0.0001)
            deadline.end()
            deadline.begin(60)
            await asyncio.sleep(0.01)
            deadline.forget()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(ask())
        assert rung == []

    async def test_a_shorter_one_does_not_wait_for_the_timer_of_a_longer_one(self) -> None:
        rung: list[bool] = []
        deadline = Deadline(lambda: rung.append(True))
        deadline.begin(60)
        deadline.end()
        deadline.begin(0.01)
        await asyncio.sleep(0.1)
        assert rung == [True]

    async def test_nothing_rings_when_nothing_is_under_way(self) -> None:
        rung: list[bool] = []
        deadline = Deadline(lambda: rung.append(True))
        deadline.begin(0.01)
        deadline.end()
        await asyncio.sleep(0.05)
        assert rung == []
        deadline.begin(0.01)  # and afterwards it is set anew
        await asyncio.sleep(0.1)
        assert rung == [True]

    def test_the_next_event_loop_gets_a_timer_of_its_own(self) -> None:
        rung: list[bool] = []
        deadline = Deadline(lambda: rung.append(True))

        async def ask(seconds: float, wait: float) -> None:
            deadline.begin(seconds)
            await asyncio.sleep(wait)

        asyncio.run(ask(5, 0))
        asyncio.run(ask(10, 0))
        assert rung == []
        asyncio.run(ask(0.01, 0.1))
        assert rung == [True]


class TestStatements:
    def test_every_statement_is_used(self) -> None:
        folder = Path(postgres.__file__).parent
        sources = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
        assert [name for name in statements.load(postgres.__name__, "sql") if f'"{name}"' not in sources] == []

    def test_no_id_can_run_out(self) -> None:
        """C17: four-byte numbers are only for what stays small."""
        schema = "".join(statements.scripts(postgres.__name__, "migrations").values())
        columns = [line.split()[0] for line in schema.splitlines() if re.match(r"    \w+ (int|integer|int4|serial|smallint)\b", line)]
        assert set(columns) == {"priority", "segment"}
