"""Which jobs are traced: one decision for each job, that its id or its caller makes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, cast
from uuid import UUID

import pytest
from asyncpg.pgproto import pgproto

import duetime as dt
from duetime.invoker import Policies
from duetime.model.job import Claimed
from duetime.model.trace import LOWER, RANDOM_BITS, lower_half
from duetime.observers.traces.attempts import TracedHandler
from duetime.observers.traces.sampling import Sampling
from tests.servers.otlp import OtlpReceiver, ReceivedSpan
from tests.traces.kept import KeptSpans

JOBS = 400
SHARE = 0.1
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"


def chosen(ids: Iterable[UUID]) -> set[str]:
    return {str(id) for id in ids if lower_half(id) < SHARE * (LOWER + 1)}


def attempts(receiver: OtlpReceiver) -> dict[str, set[int]]:
    """The numbers of the traced attempts of each job."""
    found: dict[str, set[int]] = {}
    for span in receiver.spans:
        if span.kind == "consumer":
            number = span.attributes["duetime.attempt"]
            found.setdefault(span.attributes["messaging.message.id"], set()).add(number)
    return found


def of_kind(receiver: OtlpReceiver, kind: str) -> list[ReceivedSpan]:
    return [span for span in receiver.spans if span.kind == kind]


def failing_app(receiver: OtlpReceiver, sampling: float = SHARE) -> dt.App:
    app = dt.App("memory://", traces=receiver.url, trace_sampling=sampling)

    @app.task("fails", retry=dt.Retry(max_attempts=2, first_delay="0s"))
    async def fails(ctx: dt.Context) -> None:
        raise ValueError

    return app


async def test_share_of_the_jobs_is_traced_with_all_their_attempts() -> None:
    with OtlpReceiver() as receiver:
        app = failing_app(receiver)
        async with app.running():
            jobs = [await app.submit("fails") for _ in range(JOBS)]
            for job in jobs:
                await job.wait()
        expected = chosen(job.id for job in jobs)
        assert attempts(receiver) == {id: {1, 2} for id in expected}
        sent = of_kind(receiver, "producer")
        assert {span.attributes["messaging.message.id"] for span in sent} == expected
        # A first attempt belongs to the trace of its submission.
        of_submission = {(span.trace, span.id) for span in sent}
        first = [one for one in of_kind(receiver, "consumer") if one.attributes["duetime.attempt"] == 1]
        assert {(one.trace, one.parent) for one in first} == of_submission
    assert JOBS // 25 < len(expected) < JOBS // 5  # a tenth


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("kind", [UUID, pgproto.UUID])
async def test_attempts_are_chosen_as_their_submissions_are(kind: type[UUID], share: float) -> None:
    """Worker and submitter have ids of different classes, and ways of their own to look at them."""
    sampling = Sampling(share, None)
    kept = KeptSpans()
    handler = TracedHandler("task", Task(), kept, sampling)
    bound = sampling.bound + 3 >> 2
    numbers = [bound - 1, bound, bound + 1, *(random.getrandbits(62) for _ in range(1_000))]
    ids = [UUID(int=0x0193_5C2E_7B3A_7000 << 64 | 2 << 62 | min(max(0, n), RANDOM_BITS)) for n in numbers]
    for id in ids:
        await attempt(handler, kind(str(id)))
    assert len(kept.spans) == len([id for id in ids if lower_half(id) < sampling.bound])


async def attempt(handler: TracedHandler, id: UUID) -> None:
    job = Claimed(id, 1, "task", b"{}", 0, "q", 5, 0, 0, 0, False, None, None, None, None, None, None, "t")
    await handler.invoke(dt.Context(job, cast(Any, None)), b"{}")


class Task:
    policies = Policies()
    limit: dt.Limit | None = None

    async def invoke(self, context: dt.Context, payload: bytes) -> None: ...


async def test_jobs_of_a_batch_are_chosen_one_by_one() -> None:
    with OtlpReceiver() as receiver:
        app = failing_app(receiver)
        async with app.running():
            jobs = await app.submit_many([dt.NewJob("fails") for _ in range(JOBS)])
            for job in jobs:
                await job.wait()
        assert attempts(receiver) == {id: {1, 2} for id in chosen(job.id for job in jobs)}
        [sent] = of_kind(receiver, "producer")
        assert sent.attributes["messaging.batch.message_count"] == JOBS
        first = [one for one in of_kind(receiver, "consumer") if one.attributes["duetime.attempt"] == 1]
        assert {(one.trace, one.parent) for one in first} == {(sent.trace, sent.id)}


async def test_job_decides_for_the_request_that_submits_it() -> None:
    with OtlpReceiver() as receiver:
        app = failing_app(receiver)
        assert app.tracer is not None
        async with app.running():
            jobs = []
            for number in range(JOBS):
                with app.tracer.request("POST /jobs", None, {"number": number}):
                    jobs.append(await app.submit("fails"))
            for job in jobs:
                await job.wait()
        expected = chosen(job.id for job in jobs)
        assert attempts(receiver) == {id: {1, 2} for id in expected}
        requests = {span.id: span for span in of_kind(receiver, "server")}
        sent = of_kind(receiver, "producer")
        assert len(requests) == len(sent) == len(expected)
        assert {span.parent for span in sent} == set(requests)
        assert {str(jobs[span.attributes["number"]].id) for span in requests.values()} == expected


@pytest.mark.parametrize(("flags", "traced"), [("01", True), ("00", False)])
async def test_caller_decides_for_its_jobs(flags: str, traced: bool) -> None:
    """A job whose caller does not export its trace decides by its id, which a share of 0 forbids."""
    with OtlpReceiver() as receiver:
        app = failing_app(receiver, 0.0)
        assert app.tracer is not None
        async with app.running():
            with app.tracer.request("POST /jobs", f"{CALLER}-{flags}", {}) as span:
                jobs = await app.submit_many([dt.NewJob("fails") for _ in range(20)])
                assert span.id.sampled is traced
            for job in jobs:
                await job.wait()
        assert attempts(receiver) == ({str(job.id): {1, 2} for job in jobs} if traced else {})


async def test_requests_without_jobs_are_sampled_by_themselves() -> None:
    with OtlpReceiver() as receiver:
        app = failing_app(receiver)
        assert app.tracer is not None
        for _ in range(JOBS):
            with app.tracer.request("GET /jobs", None, {}):
                pass
        await app.tracer.flush()
        assert JOBS // 40 < len(receiver.spans) < JOBS // 4


@pytest.mark.parametrize(
    ("sampler", "argument", "count"),
    [("always_off", "", 0), ("parentbased_always_on", "", JOBS), ("parentbased_traceidratio", "0.1", None)],
)
async def test_sampler_of_the_variables_is_asked(
    sampler: str, argument: str, count: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)
    with OtlpReceiver() as receiver:
        app = failing_app(receiver, 0.5)
        async with app.running():
            jobs = await app.submit_many([dt.NewJob("fails") for _ in range(JOBS)])
            for job in jobs:
                await job.wait()
        ids = {str(job.id) for job in jobs} if count else set()
        expected = chosen(job.id for job in jobs) if count is None else ids
        assert attempts(receiver) == {id: {1, 2} for id in expected}
