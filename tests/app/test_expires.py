"""Jobs that must start in time: `expires`, and the maximum age of the retry policy. Jitter delays them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import duetime as dt
from duetime.model.instant import SECOND, to_micros
from duetime.model.job import Delivery, Ending, Outcome
from duetime.model.lease import NodeDraft
from duetime.model.settle import NOT_HERE, settle
from duetime.store import ClaimRequest, Lane
from tests.app.waiting import eventually

AGO = timedelta(seconds=30)
HOUR = 3_600 * SECOND


async def run_late(app: dt.App, **options: Any) -> dt.JobHandle:
    """A job that was due half a minute before a worker starts."""

    @app.task("work")
    async def work() -> str:
        return "done"

    await app.open()
    job = await app.submit("work", at=datetime.now(UTC) - AGO, **options)
    async with app.running():
        await eventually(lambda: _final(job))
    return job


async def _final(job: dt.JobHandle) -> bool:
    return (await job.refresh()).state.final


async def test_job_that_starts_after_its_expiry_is_skipped(app: dt.App) -> None:
    job = await run_late(app, expires="10s")
    assert (job.state, job.error) == (dt.State.SKIPPED, "expired: not started within 10s")
    assert job.started_at is None
    assert await job.attempts() == []


async def test_job_that_starts_after_an_instant_is_skipped(app: dt.App) -> None:
    job = await run_late(app, expires=datetime.now(UTC) - timedelta(seconds=5))
    assert job.state is dt.State.SKIPPED
    assert (job.error or "").startswith("expired: not started before 20")


async def test_max_age_bounds_the_first_attempt(app: dt.App) -> None:
    job = await run_late(app, retry=dt.Retry(max_age="10s"))
    assert (job.state, job.error) == (dt.State.SKIPPED, "expired: not started within 10s (max_age)")


@pytest.mark.parametrize("allowed", [True, False])
async def test_wait_for_a_node_that_may_run_it_does_not_extend_the_expiry(app: dt.App, allowed: bool) -> None:
    """The first attempt was given back; the second is in time only by its new due time."""

    @app.task("work")
    async def work() -> str:
        return "done"

    await app.open()
    long_ago = datetime.now(UTC) - AGO
    job = await app.submit("work", at=long_ago, expires="1h" if allowed else "20s")
    node = await app.store.join(NodeDraft("poor", ("worker",), "1"), HOUR)
    lane = Lane("default", 5, 0)
    [first] = (await app.store.claim(ClaimRequest(node, (lane,), ("work",), 1, 0))).jobs
    now, started_at = await app.now(), to_micros(long_ago) + SECOND
    not_here = Outcome(Ending.RELEASED, error=f"{NOT_HERE}: why", not_here=True)
    made = settle(first, not_here, dt.Retry(), Delivery.AT_LEAST_ONCE, started_at, now, 0.5)
    await app.store.settle([made])
    async with app.running():
        await eventually(lambda: _final(job))
    assert job.state is (dt.State.SUCCEEDED if allowed else dt.State.SKIPPED)


async def test_late_job_without_an_expiry_runs(app: dt.App) -> None:
    job = await run_late(app, expires="1h", retry=dt.Retry(max_age="1h"))
    assert (job.state, job.result) == (dt.State.SUCCEEDED, "done")


async def test_retry_of_a_dead_letter_does_not_expire(app: dt.App) -> None:
    fails = True

    @app.task("work", retry=dt.Retry(max_attempts=1))
    async def work() -> None:
        if fails:
            raise RuntimeError("broken")

    await app.open()
    soon = datetime.now(UTC) + timedelta(seconds=60)
    job = await app.submit("work", expires=soon)
    async with app.running():
        await eventually(lambda: _final(job))
        assert job.state is dt.State.DEAD
        fails = False
        again = await app.retry_job(job.id)
        await eventually(lambda: _final(again))
    assert (again.state, again.record.policies) == (dt.State.SUCCEEDED, None)


@pytest.mark.parametrize(
    ("options", "field", "text"),
    [
        ({"expires": "soon"}, "expires", "or give an instant"),
        ({"expires": "0s"}, "expires", "longer than zero"),
        ({"expires": datetime(2030, 1, 1)}, "expires", "has no time zone"),
        ({"expires": datetime(2020, 1, 1, tzinfo=UTC)}, "expires", "before the job is due"),
        ({"expires": "2020-01-01T00:00:00Z"}, "expires", "before the job is due"),
        ({"jitter": "5s..1s"}, "jitter", "ends before it begins"),
        ({"jitter": "1s.."}, "jitter", "is not a duration"),
        ({"jitter": -1}, "jitter", "is not a duration"),
    ],
)
async def test_invalid_expiry_and_jitter_are_refused(
    client: dt.App, options: dict[str, Any], field: str, text: str
) -> None:
    with pytest.raises(dt.InvalidInput, match=text) as refused:
        await client.submit("work", **options)
    assert refused.value.field == field


async def test_jitter_of_submitted_jobs_stays_within_its_bounds(app: dt.App) -> None:
    await app.open()
    jobs = await app.submit_many([dt.NewJob("elsewhere", jitter="1s..5s") for _ in range(40)])
    delays = [(await job.refresh()).due_at - job.fire_time for job in jobs]
    assert all(timedelta(seconds=1) <= delay <= timedelta(seconds=5) for delay in delays)
    assert max(delays) - min(delays) > timedelta(seconds=1)


async def test_jobs_of_a_schedule_expire(app: dt.App) -> None:
    await app.open()
    view = await app.schedule("hourly", "elsewhere", dt.Every("1h"), expires="10m", jitter="1s..5s")
    assert (view.expires, view.jitter) == ("10m", "1s..5s")
    edited = await app.schedules.edit("hourly", {"expires": None, "jitter": "0s..2s"})
    assert (edited.draft.policies, edited.draft.jitter) == (None, "2s")
    with pytest.raises(dt.InvalidInput, match="expires"):
        await app.schedule("other", "elsewhere", dt.Every("1h"), expires=datetime(2040, 1, 1, tzinfo=UTC))  # type: ignore[arg-type]
