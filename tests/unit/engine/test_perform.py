"""One attempt: verdicts returned or raised, unreadable payloads, and writes that are committed with the
success or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, cast

import pydantic
import pytest

from duetime.engine.run.perform import Slot, Stop, perform
from duetime.errors import Conflict, Fenced, InvalidPayload, StoreError, StoreUnavailable, TaskError
from duetime.invoker import Context, Policies
from duetime.model.codec import decode, encode
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Delivery, Ending, State
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.settle import Cancel, Directive, RetryAfter, Settlement, Snooze
from tests.unit.engine.fake_store import FakeStore, FakeTransaction, job, make_writer, play, virtual_clock

Body = Callable[[Context], Awaitable[Any]]


class Handler:
    limit: Limit | None = None

    def __init__(
        self, body: Body, delivery: Delivery = Delivery.AT_LEAST_ONCE, retry: Retry | None = None
    ) -> None:
        self._body = body
        self.policies = Policies(retry or Retry(), None, delivery)

    def invoke(self, context: Context, payload: bytes) -> Awaitable[Any]:
        return self._body(context)


async def attempt(
    body: Body,
    store: FakeStore | None = None,
    slot: Slot | None = None,
    of: Claimed | None = None,
    **how: Any,
) -> Settlement:
    clock = virtual_clock()
    desk = make_writer(store or FakeStore(), clock=clock)
    return await perform(of or job(), slot or Slot(), Handler(body, **how), clock, desk)


def settled(body: Body, store: FakeStore | None = None, **how: Any) -> Settlement:
    answers: list[Settlement] = []

    async def scene() -> None:
        answers.append(await attempt(body, store, **how))

    play(scene)
    return answers[0]


# -- verdicts
# ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("raised", [False, True])
@pytest.mark.parametrize(
    ("verdict", "ending", "state", "failures", "due", "error"),
    [
        (Snooze("5m"), Ending.SNOOZED, State.PENDING, 0, 300, "snoozed for 5m"),
        (Snooze("90s"), Ending.SNOOZED, State.PENDING, 0, 90, "snoozed for 1m30s"),
        (Snooze("0s", "no stock"), Ending.SNOOZED, State.PENDING, 0, 0, "no stock"),
        (RetryAfter("10s", "429"), Ending.FAILED, State.PENDING, 1, 10, "429"),
        (Cancel("the order is gone"), Ending.CANCELLED, State.CANCELLED, 0, 0, "the order is gone"),
    ],
)
def test_a_verdict_returned_or_raised(
    verdict: Directive, ending: Ending, state: State, failures: int, due: int, error: str, raised: bool
) -> None:
    async def body(context: Context) -> Directive:
        if raised:
            raise verdict
        return verdict

    decision = settled(body)
    assert (decision.ending, decision.state, decision.failures, decision.error) == (
        ending,
        state,
        failures,
        error,
    )
    assert decision.due_at == due * SECOND


class Selfish(pydantic.BaseModel):
    def model_dump(self, **options: Any) -> dict[str, Any]:
        raise KeyError("no words")


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (Cancel("one\0two"), "one�two"),
        (Snooze("5m", "half of a pair: \ud800"), "half of a pair: ?"),
        (RetryAfter("5m", "x" * 10_000), "x" * 3_990 + "\n... truncated ...\n" + "x" * 3_990),
        (Cancel(cast(str, ValueError("no text"))), "no text"),
        (Cancel(cast(str, Unspeakable())), "Unspeakable (its text cannot be read)"),
        (TaskError("from another process:\0"), "TaskError: from another process:�"),
    ],
)
def test_whatever_a_task_says_can_be_stored(problem: Exception, error: str) -> None:
    async def body(context: Context) -> None:
        raise problem

    assert settled(body).error == error


def test_a_task_told_to_stop_does_not_steer_any_more() -> None:
    async def scene() -> None:
        slot = Slot()

        async def body(context: Context) -> None:
            slot.stop = Stop.TIMEOUT
            raise Snooze("5m")

        decision = await attempt(body, slot=slot)
        assert decision.ending is Ending.TIMED_OUT

    play(scene)


def test_what_a_task_raises_is_judged_by_its_policy() -> None:
    async def body(context: Context) -> None:
        raise KeyError("gone")

    assert settled(body, retry=Retry(give_up_on=[KeyError])).state is State.DEAD
    assert settled(body, retry=Retry(retry_on=[KeyError])).state is State.PENDING


def test_a_job_s_own_numbers_keep_the_task_s_judgement() -> None:
    async def body(context: Context) -> None:
        raise KeyError("gone")

    own = job(policies=encode({"retry": {"max_attempts": 9}}))
    assert settled(body, of=own, retry=Retry(give_up_on=[KeyError])).state is State.DEAD
    assert settled(body, of=own, retry=Retry(max_attempts=1)).state is State.PENDING


# -- payloads
# ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "unread",
    [
        {"retry": {"max_attempts": 3, "novelty": 1}},
        {"retry": {"backoff": "novel"}},
        {"timeout": "1 aeon"},
        {"delivery": "at_best"},
    ],
)
def test_a_policy_that_a_newer_version_wrote_is_as_if_it_had_not_been_said(unread: dict[str, Any]) -> None:
    async def body(context: Context) -> None:
        raise ValueError

    decision = settled(body, of=job(policies=encode(unread)), retry=Retry(max_attempts=1))
    assert (decision.state, decision.failures) == (State.DEAD, 1)


def test_a_payload_the_handler_cannot_read_is_dead_at_once() -> None:
    class Refusing(Handler):
        invoke: Any = staticmethod(_refuse)

    decisions: list[Settlement] = []

    async def scene() -> None:
        clock = virtual_clock()
        desk = make_writer(FakeStore(), clock=clock)
        decisions.append(await perform(job(), Slot(), Refusing(_nothing), clock, desk))

    play(scene)
    [decision] = decisions
    assert (decision.state, decision.ending, decision.failures) == (State.DEAD, Ending.FAILED, 1)
    assert decision.error == "InvalidPayload: customer: expected `str`, got `int`"


async def _nothing(context: Context) -> None:
    return None


namespace: dict[str, Any] = {"__name__": "duetime.invokers.task", "InvalidPayload": InvalidPayload}
exec(  # a handler's frames are duetime's own, and this one has to look like it
    "def refuse(context, payload):\n    raise InvalidPayload('customer', 'expected `str`, got `int`')",
    namespace,
)
_refuse = namespace["refuse"]


def test_a_task_that_makes_a_bad_payload_of_its_own_fails_like_any_other() -> None:
    async def body(context: Context) -> None:
        raise InvalidPayload("customer", "for the job this task wanted to submit")

    assert settled(body).state is State.PENDING


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (
            object(),
            "the task returned something that is not JSON (objects of type object are not JSON)",
        ),
        (Selfish(), "the task returned something that is not JSON ('no words')"),
        (float("nan"), "nan is not a JSON number: use None or text instead"),
        ({"mean": [1.5, float("inf")], "none": None}, "result.mean: inf is not a JSON number"),
        ({"day": (date(2030, 1, 1), -float("inf"))}, "result.day: -inf is not a JSON number"),
        ("x" * 300_000, "300,002 bytes is over the limit of 262,144: store it elsewhere"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_work_whose_result_cannot_be_stored_is_done(
    result: object, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(context: Context) -> object:
        return result

    decision = settled(body, retry=Retry(max_attempts=5))
    assert (decision.state, decision.ending, decision.result) == (State.SUCCEEDED, Ending.SUCCEEDED, b"null")
    assert (decision.error or "").startswith(f"succeeded without a result: {reason}")
    [record] = [record for record in caplog.records if record.name == "duetime.task"]
    assert (record.levelname, record.message) == ("WARNING", decision.error)


def test_nothing_within_a_result_is_kept() -> None:
    async def body(context: Context) -> object:
        return {"mean": None, "text": "null", "days": [None, 0.5]}

    assert settled(body).result == b'{"mean":null,"text":"null","days":[null,0.5]}'


# -- transactions
# -----------------------------------------------------------------------------------------------------
async def write(context: Context) -> dict[str, int]:
    await context.connection.execute("UPDATE balance")
    return {"added": 1}


def test_writes_are_committed_with_the_settlement_of_the_success() -> None:
    store = FakeStore()
    decision = settled(write, store)
    assert store.transaction.finished == [decision]
    assert (decision.state, decode(decision.result or b"")) == (State.SUCCEEDED, {"added": 1})
    assert store.transaction.abandoned == 0


def test_a_task_that_only_looks_at_its_connection_begins_nothing() -> None:
    async def body(context: Context) -> None:
        _ = context.connection

    store = FakeStore()
    assert settled(body, store).state is State.SUCCEEDED
    assert (store.begun, store.transaction.finished) == (0, [])


@pytest.mark.parametrize(
    "problem",
    [ValueError("bad"), Snooze("1m"), RetryAfter("1m"), Cancel(), asyncio.CancelledError(), SystemExit(3)],
)
def test_nothing_but_success_commits(problem: BaseException) -> None:
    async def body(context: Context) -> None:
        await context.connection.execute("UPDATE balance")
        raise problem

    store = FakeStore()
    settled(body, store)
    assert (store.transaction.finished, store.transaction.abandoned) == ([], 1)


@pytest.mark.parametrize(
    ("problem", "intact", "ending", "failures"),
    [
        (OSError("of another server"), True, Ending.FAILED, 1),
        (OSError("the connection is lost"), False, Ending.LOST, 0),
        (RetryAfter("5s"), False, Ending.FAILED, 1),
        (Cancel(), False, Ending.CANCELLED, 0),
    ],
)
def test_an_error_after_the_store_has_ended_the_session_is_the_store_s(
    problem: Exception, intact: bool, ending: Ending, failures: int
) -> None:
    async def body(context: Context) -> None:
        await context.connection.execute("UPDATE balance")
        raise problem

    store = FakeStore()
    store.transaction.intact = intact
    decision = settled(body, store)
    assert (decision.ending, decision.failures) == (ending, failures)
    assert (decision.error or "").startswith("the store ended the session") == (ending is Ending.LOST)


@pytest.mark.parametrize("verb", ["checkpoint", "once", "connection"])
@pytest.mark.parametrize("answers_again", [False, True])
def test_a_store_that_cannot_be_reached_is_no_failure_of_the_task(verb: str, answers_again: bool) -> None:
    store = FakeStore()

    async def body(context: Context) -> None:
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "checkpoint": lambda: context.checkpoint(1),
            "once": lambda: context.once("mail"),
            "connection": lambda: context.connection.execute("UPDATE balance"),
        }
        call = calls[verb]
        store.problems = [StoreUnavailable("away") for _ in range(1_000)]
        try:
            await call()
        except StoreUnavailable:
            if not answers_again:
                raise
        store.problems = []
        await call()
        raise ValueError("a mistake of the task")

    decision = settled(body, store, retry=Retry(max_attempts=1))
    expected = (Ending.FAILED, State.DEAD, 1) if answers_again else (Ending.RELEASED, State.PENDING, 0)
    assert (decision.ending, decision.state, decision.failures) == expected


def test_writes_are_committed_if_only_the_result_cannot_be_stored() -> None:
    async def body(context: Context) -> object:
        await context.connection.execute("UPDATE balance")
        return object()

    store = FakeStore()
    decision = settled(body, store)
    assert store.transaction.finished == [decision]
    assert (decision.state, store.transaction.abandoned) == (State.SUCCEEDED, 0)
    assert "not JSON" in (decision.error or "")


@pytest.mark.parametrize(
    ("answer", "delivery", "ending", "state", "failures"),
    [
        (False, Delivery.AT_LEAST_ONCE, Ending.LOST, State.PENDING, 0),
        (False, Delivery.AT_MOST_ONCE, Ending.LOST, State.DEAD, 0),
        (StoreUnavailable("reply lost"), Delivery.AT_LEAST_ONCE, Ending.RELEASED, State.PENDING, 0),
        (StoreUnavailable("reply lost"), Delivery.AT_MOST_ONCE, Ending.RELEASED, State.DEAD, 0),
        (StoreError("held too long: rolled back"), Delivery.AT_LEAST_ONCE, Ending.FAILED, State.PENDING, 1),
        (ValueError("a deferred constraint"), Delivery.AT_LEAST_ONCE, Ending.FAILED, State.PENDING, 1),
        (ValueError("a deferred constraint"), Delivery.AT_MOST_ONCE, Ending.FAILED, State.DEAD, 1),
    ],
)
def test_a_commit_that_does_not_succeed(
    answer: bool | Exception, delivery: Delivery, ending: Ending, state: State, failures: int
) -> None:
    """Never told as a success; and what runs at most once does not run again, whether it was committed or
    not."""
    store = FakeStore()
    store.transaction = FakeTransaction(answer)
    decision = settled(write, store, delivery=delivery)
    assert (decision.ending, decision.state, decision.failures) == (ending, state, failures)
    assert store.transaction.abandoned == 1


@pytest.mark.parametrize("why", [Stop.TIMEOUT, Stop.CANCEL, Stop.SHUTDOWN])
def test_a_stop_that_comes_while_it_commits_comes_too_late(why: Stop) -> None:
    async def scene() -> None:
        store, slot = FakeStore(), Slot()
        store.transaction = FakeTransaction(commit_takes=5.0)
        running = asyncio.ensure_future(attempt(write, store, slot))
        await asyncio.sleep(1)
        slot.stop = why
        running.cancel()
        await asyncio.sleep(1)
        running.cancel()
        decision = await running
        assert decision.state is State.SUCCEEDED
        assert store.transaction.finished == [decision]

    play(scene)


def test_the_last_progress_is_in_before_the_attempt_is_told_over() -> None:
    async def body(context: Context) -> None:
        for done in range(3):
            await context.progress(done, 3, "rows")

    store = FakeStore()
    settled(body, store)
    assert [decode(note.progress or b"") for note in store.updates][-1] == {
        "done": 2,
        "total": 3,
        "note": "rows",
    }


def test_progress_does_not_hold_up_a_commit() -> None:
    """Where there is but one writer the transaction is it: the note is written when the commit is over, if at
    all."""
    store = FakeStore()
    times: list[float] = []

    async def body(context: Context) -> None:
        await context.connection.execute("UPDATE balance")
        store.takes = 4.0
        await context.progress(1)

    async def scene() -> None:
        await attempt(body, store)
        times.append(asyncio.get_running_loop().time())

    play(scene)
    assert times[0] < 1


def test_a_refused_checkpoint_ends_the_attempt_as_lost() -> None:
    async def body(context: Context) -> None:
        await context.checkpoint(1)

    store = FakeStore()
    store.refused = {job().id}
    assert settled(body, store).ending is Ending.LOST


# -- what is left of an attempt
# ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "call",
    [
        lambda context: context.progress(1),
        lambda context: context.checkpoint(1),
        lambda context: context.once("k"),
    ],
)
def test_what_an_attempt_leaves_behind_has_nothing_written_down(
    call: Callable[[Context], Awaitable[Any]],
) -> None:
    async def scene() -> None:
        store, clock, contexts = FakeStore(), virtual_clock(), list[Context]()

        async def body(context: Context) -> None:
            contexts.append(context)

        desk = make_writer(store, clock=clock)
        await perform(job(), Slot(), Handler(body), clock, desk)
        with pytest.raises(Fenced, match="has ended"):
            await call(contexts[0])
        assert (store.updates, store.markers, desk._attempts) == ([], {}, {})

    play(scene)


@pytest.mark.parametrize("began_before", [True, False])
def test_what_an_attempt_leaves_behind_can_write_no_more(began_before: bool) -> None:
    left: list[asyncio.Task[None]] = []

    async def body(context: Context) -> None:
        if began_before:
            await context.connection.execute("first")

        async def later() -> None:
            await asyncio.sleep(1)
            await context.connection.execute("late")

        left.append(asyncio.ensure_future(later()))

    async def scene() -> None:
        store = FakeStore()
        await attempt(body, store)
        with pytest.raises(Fenced):
            await left[0]
        assert store.transaction.connection.statements == (["first"] if began_before else [])

    play(scene)


@pytest.mark.parametrize(
    "call", [lambda context: context.checkpoint(1), lambda context: context.once("mail")]
)
def test_no_checkpoint_and_no_mark_inside_the_transaction(call: Callable[[Context], Awaitable[Any]]) -> None:
    """Both would outlive writes that are rolled back, and wait forever where there is but one writer."""

    async def body(context: Context) -> None:
        await call(context)
        await context.connection.execute("UPDATE balance")
        with pytest.raises(Conflict, match="before the first statement"):
            await call(context)

    store = FakeStore()
    assert settled(body, store).state is State.SUCCEEDED
