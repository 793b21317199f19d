"""Why: every state of a job and of a schedule has a sentence that is true."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import duetime as dt
from duetime.engine.node.registry import ALL_TENANTS, NODE
from duetime.model import why, why_schedules
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Claimed, Ending, State
from duetime.model.lease import NodeDraft, NodeId
from duetime.model.limit import TaskLimit, parse_rate
from duetime.model.profile import NodeProfile
from duetime.model.why import CODES
from duetime.model.why_facts import at
from duetime.model.zone import UTC_ZONE
from duetime.store import AttemptUpdate, ClaimRequest, Lane
from duetime.testing.conformance.drafts import (
    claim,
    death,
    ended,
    extend_deadline,
    fires,
    firing,
    hand_over,
    loss,
    pause_schedule,
    put_schedule,
    retry,
    set_limits,
    success,
)
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually

HOUR = 3_600 * SECOND
CLOCK = r"(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)? UTC"


async def joined(
    app: dt.App, role: str = "worker", said: NodeProfile | None = None, ttl: int = HOUR
) -> NodeId:
    """A node that lives, and may have said what it serves."""
    node = await app.store.join(NodeDraft("web", (role,), "1"), ttl)
    if said is not None:
        await app.store.put_record(NODE, ALL_TENANTS, str(node), said.to_bytes())
    return node


async def claimed(app: dt.App, node: NodeId, room: int = 1, **changes: Any) -> list[Claimed]:
    lanes = tuple(
        Lane(queue, 5, 0, tenant) for queue in ("default", "billing") for tenant in ("default", "other")
    )
    return await claim(app.store, replace(ClaimRequest(node, lanes, ("work",), room, 0), **changes))


async def started(app: dt.App, node: NodeId, **options: Any) -> Claimed:
    job = await app.submit("work", **options)
    [found] = await claimed(app, node, prefetch=2 * HOUR)
    assert found.id == job.id
    return found


async def check(app: dt.App, job_id: UUID, code: str, pattern: str) -> Any:
    """`TIME` in the pattern stands for an instant."""
    found = await app.why.job(job_id)
    assert found.code == code, found
    assert re.fullmatch(pattern.replace("TIME", CLOCK), found.why), found.why
    return found


@pytest.fixture
async def opened(app: dt.App) -> dt.App:
    await app.open()
    return app


# Pending


async def test_why_of_a_job_that_is_not_due(opened: dt.App) -> None:
    job = await opened.submit("work", delay="2h")
    found = await check(opened, job.id, "not_due", "waits: it is due at TIME")
    assert found.since == to_datetime((await opened.read_job(job.id)).created_at)


async def test_why_of_a_job_that_waits_for_its_retry(opened: dt.App) -> None:
    node = await joined(opened)
    first = await started(opened, node)
    now = await opened.now()
    await opened.store.settle([retry(first, now + HOUR, now, error="Traceback\nValueError: boom")])
    await check(
        opened,
        first.id,
        "retry_waits",
        r"waits: attempt 1 failed at TIME \(ValueError: boom\); it will be retried at TIME",
    )
    await opened.store.reschedule_job("default", first.id, now, None)
    [second] = await claimed(opened, node)
    await opened.store.settle(
        [retry(second, now + HOUR, now, error="timed out")._replace(ending=Ending.TIMED_OUT)]
    )
    sentence = (
        r"waits: attempt 2 timed out at TIME \(timed out\), 2 failures so far; it will be retried at TIME"
    )
    await check(opened, first.id, "retry_waits", sentence)


async def test_why_of_a_snoozed_job(opened: dt.App) -> None:
    job = await started(opened, await joined(opened))
    now = await opened.now()
    await opened.store.settle([ended(job, State.PENDING, Ending.SNOOZED, now, due_at=now + HOUR)])
    await check(opened, job.id, "snoozed", "waits: its task asked at TIME to be run again at TIME")


async def test_why_of_a_job_in_a_paused_queue(opened: dt.App) -> None:
    await joined(opened)
    job = await opened.submit("work", queue="billing")
    await opened.pause_queue("billing", "database moves house")
    found = await check(
        opened,
        job.id,
        "queue_paused",
        r"waits: queue billing has been paused since TIME \(database moves house\)",
    )
    assert found.since == to_datetime((await opened.queues())[0].paused_at or 0)
    assert found.remedy == "resume the queue"


async def test_why_without_a_worker(opened: dt.App) -> None:
    job = await opened.submit("work")
    await joined(opened, "planner")
    gone = await joined(opened)
    await opened.store.leave(gone)
    await joined(opened, ttl=1)
    await check(opened, job.id, "no_worker", "waits: no worker is alive")


async def test_no_worker_serves_the_queue(opened: dt.App) -> None:
    await joined(opened, said=NodeProfile(("work",), ("default",)))
    job = await opened.submit("work", queue="billing")
    await check(opened, job.id, "queue_unserved", "waits: none of 1 live worker serves queue billing")
    await joined(opened, said=NodeProfile(("work",), ("billing",)))
    assert (await opened.why.job(job.id)).code == "starting"


async def test_why_if_no_worker_knows_the_task(opened: dt.App) -> None:
    """The job waits, and the answer says for what."""
    for _ in range(2):
        await joined(opened, said=NodeProfile(("other",)))
    job = await opened.submit("work")
    await check(
        opened, job.id, "task_unknown", "waits: none of 2 live workers of queue default knows the task work"
    )
    await joined(opened)  # without a profile: it may know the task
    assert (await opened.why.job(job.id)).code == "starting"


async def test_why_of_a_job_that_waits_for_the_previous_one(opened: dt.App) -> None:
    node = await joined(opened)
    await opened.schedule("nightly", "work", dt.Every("1h"), overlap="queue")
    first = await opened.trigger("nightly")
    [running] = await claimed(opened, node)
    second = await opened.trigger("nightly")
    sentence = f"waits: schedule nightly runs one job at a time, and {first.id} has been running since TIME"
    await check(opened, second.id, "overlap_waits", sentence)
    now = await opened.now()
    await opened.store.settle([retry(running, now + HOUR, now)])
    sentence = f"waits: schedule nightly runs one job at a time, and {first.id} will be retried at TIME"
    await check(opened, second.id, "overlap_waits", sentence)


async def test_why_of_a_job_in_a_full_queue(opened: dt.App) -> None:
    node = await joined(opened)
    await opened.limit_queue("default", max_running=1)
    await started(opened, node)
    job = await opened.submit("work")
    assert await claimed(opened, node) == []
    await check(opened, job.id, "queue_full", "waits: queue default is at its limit of 1 running job")


async def test_why_of_a_job_at_the_limit_of_its_task(opened: dt.App, make_app: MakeApp) -> None:
    """Jobs of other tenants count, and are not named."""
    bound = TaskLimit("work", 2, None)
    node = await joined(opened, said=NodeProfile(("work",), concurrency=50, bounds=(bound,)))
    other = make_app(tenant="other")
    for app in (opened, other):
        app.task("work", limit=dt.Limit(2))(work)
    await other.open()
    mine, theirs = await opened.submit("work"), await other.submit("work")
    await set_limits(opened.store, bound)
    assert len(await claimed(opened, node, 5)) == 2
    job = await opened.submit("work")
    sentence = f"waits: the limit of 2 running jobs for work is reached: {mine.id} and others"
    assert str(theirs.id) not in (await check(opened, job.id, "limit_full", sentence)).why


async def work() -> None: ...


async def test_why_of_a_job_at_the_rate_of_its_queue(opened: dt.App) -> None:
    node = await joined(opened)
    await opened.limit_queue("default", rate="1/1h")
    await started(opened, node)
    job = await opened.submit("work")
    sooner = await opened.submit("work", delay="20m")  # when that falls due is not what it waits for
    assert await claimed(opened, node) == []
    found = await check(
        opened,
        job.id,
        "queue_rate",
        "waits: queue default is at its rate limit of 1/1h; the next may start at TIME",
    )
    assert at((await opened.read_job(sooner.id)).due_at, await opened.now(), UTC_ZONE) not in found.why


async def test_why_of_a_job_at_the_rate_of_its_task(opened: dt.App) -> None:
    bound = TaskLimit("work", None, parse_rate("1/1h", "rate"))
    node = await joined(opened, said=NodeProfile(("work",), concurrency=50, bounds=(bound,)))
    opened.task("work", limit=dt.Limit(rate="1/1h"))(work)
    await opened.submit("work")
    await set_limits(opened.store, bound)
    assert len(await claimed(opened, node)) == 1
    job = await opened.submit("work")
    assert await claimed(opened, node) == []
    behind = await opened.submit("work")
    sentence = "waits: the rate limit of 1/1h for work is reached; the next may start at TIME"
    await check(opened, job.id, "limit_rate", sentence)
    await check(opened, behind.id, "limit_rate", sentence)
    later = await opened.submit("work", delay="20m")
    assert (await opened.why.job(later.id)).code == "not_due"


async def test_why_if_all_workers_are_busy(opened: dt.App) -> None:
    node = await joined(opened, said=NodeProfile(("work",), concurrency=1))
    await started(opened, node)
    jobs = [await opened.submit("work") for _ in range(2)]
    await check(
        opened,
        jobs[0].id,
        "workers_busy",
        "waits: the one worker that can run it is busy; queue default has 2 due jobs",
    )
    other = await joined(opened, said=NodeProfile(("work",), concurrency=2))
    assert (await opened.why.job(jobs[0].id)).code == "starting"
    assert len(await claimed(opened, other, 2)) == 2
    job = await opened.submit("work")
    await check(opened, job.id, "workers_busy", "waits: all 2 workers that can run it are busy")


async def test_why_of_a_job_about_to_start(opened: dt.App) -> None:
    await joined(opened)
    job = await opened.submit("work")
    await check(opened, job.id, "starting", "waits: it has been due since TIME and is about to start")
    old = await opened.submit("work", at=to_datetime(await opened.now()) - timedelta(minutes=5))
    found = await check(
        opened,
        old.id,
        "due",
        "waits: it has been due since TIME, for no known reason; queue default has 2 due jobs",
    )
    assert found.remedy


# Running


async def test_why_of_a_running_job(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node)
    await check(opened, job.id, "running", rf"runs: attempt 1 on node web \({node}\) since TIME")
    await opened.store.save_progress(
        [AttemptUpdate(job.id, 1, None, b'{"done":40,"total":100,"note":"page 4"}')]
    )
    await check(
        opened,
        job.id,
        "running",
        rf"runs: attempt 1 on node web \({node}\) since TIME, 40 of 100 done \(page 4\)",
    )
    await opened.cancel_job(job.id)
    await check(
        opened,
        job.id,
        "cancelling",
        rf"runs, and was asked to stop: attempt 1 on node web \({node}\) since TIME, .*",
    )


async def test_why_of_a_prefetched_job(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node, delay="1h")
    await check(opened, job.id, "claimed", rf"waits on node web \({node}\): it starts at TIME")


async def test_why_of_a_job_whose_node_is_silent(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node)
    await opened.store.beat(node, SECOND // 5)

    async def overdue() -> bool:
        return (await opened.why.job(job.id)).code == "lease_overdue"

    await eventually(overdue)
    sentence = rf"runs on node web \({node}\), whose lease ended at TIME: it will be released unless the node renews its lease"
    assert (await check(opened, job.id, "lease_overdue", sentence)).remedy == "start a node: none is alive"
    await opened.store.leave(node)
    await check(
        opened,
        job.id,
        "node_dead",
        rf"waits: node web \({node}\) died while running it; it will be released soon",
    )
    await joined(opened)
    assert (await opened.why.job(job.id)).remedy is None


async def test_why_of_a_job_of_an_external_worker(opened: dt.App) -> None:
    job = await started(opened, await joined(opened))
    now = await opened.now()
    await opened.store.settle([hand_over(job, now + HOUR, now)])
    await check(
        opened,
        job.id,
        "handed_over",
        "runs outside: attempt 1 was handed over, and its report must come before TIME",
    )
    await extend_deadline(opened.store, job.id, 1, now - 1)
    sentence = (
        "waits: attempt 1 was handed over, and its report has been overdue since TIME: it will time out soon"
    )
    await check(opened, job.id, "report_overdue", sentence)


# Final


async def test_why_of_a_succeeded_job(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node)
    now = await opened.now()
    await opened.store.settle([success(job, now, started_at=now - 1_234_567)])
    found = await check(
        opened, job.id, "succeeded", rf"succeeded at TIME: attempt 1 on node web \({node}\) in 1s234ms"
    )
    assert found.since == to_datetime(now)


@pytest.mark.parametrize(
    ("options", "changes", "sentence"),
    [
        ({}, {"failures": 5, "error": "where\nKeyError: 'a'"}, r"5 failed attempts \(KeyError: 'a'\)"),
        (
            {},
            {"failures": 1, "error": "not tried again: older than 1h\nboom"},
            r"1 failed attempt, not tried again: older than 1h \(boom\)",
        ),
        (
            {"delivery": "at_most_once"},
            {},
            r"attempt 1 did not succeed, and it is delivered at most once \(boom\)",
        ),
        ({}, {"losses": 3, "error": "poison"}, r"lost 3 times with its worker or the store \(poison\)"),
    ],
)
async def test_why_of_a_dead_job(
    opened: dt.App, options: dict[str, Any], changes: dict[str, Any], sentence: str
) -> None:
    job = await started(opened, await joined(opened), **options)
    await opened.store.settle([death(job, await opened.now(), **changes)])
    await check(opened, job.id, "dead", f"gave up at TIME: {sentence}")


@pytest.mark.parametrize(
    ("verb", "words"), [("retry_job", "retried as another job"), ("discard_job", "discarded")]
)
async def test_why_of_a_retried_or_discarded_dead_letter(opened: dt.App, verb: str, words: str) -> None:
    job = await started(opened, await joined(opened))
    await opened.store.settle([death(job, await opened.now())])
    await getattr(opened, verb)(job.id)
    found = await check(
        opened,
        job.id,
        f"dead_{words.partition(' ')[0]}",
        rf"gave up at TIME: 1 failed attempt \(boom\); it was {words}",
    )
    assert found.remedy is None


async def test_why_of_a_cancelled_job(opened: dt.App) -> None:
    job = await opened.submit("work")
    await opened.cancel_job(job.id, "cancelled over the API by ann")
    await check(
        opened,
        job.id,
        "cancelled",
        r"was cancelled at TIME before it started \(cancelled over the API by ann\)",
    )
    other = await started(opened, await joined(opened))
    await opened.store.settle(
        [ended(other, State.CANCELLED, Ending.CANCELLED, await opened.now(), error="cancelled while running")]
    )
    await check(
        opened, other.id, "cancelled", r"was cancelled at TIME during attempt 1 \(cancelled while running\)"
    )


async def test_why_of_a_job_that_was_lost_or_released(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node)
    await opened.store.settle([loss(job, await opened.now())])
    assert (await opened.why.job(job.id)).code == "starting"


async def test_why_of_a_skipped_job(opened: dt.App) -> None:
    node = await joined(opened)
    await opened.schedule("nightly", "work", dt.Every("1h"), overlap="skip")
    await opened.trigger("nightly")
    assert len(await claimed(opened, node)) == 1
    second = await opened.trigger("nightly")
    await claimed(opened, node)
    await check(opened, second.id, "skipped_overlap", "was skipped at TIME: overlap: .*")


# Schedules


async def check_schedule(app: dt.App, code: str, pattern: str) -> Any:
    found = await app.why.schedule("nightly")
    assert found.code == code, found
    assert re.fullmatch(pattern.replace("TIME", CLOCK), found.why), found.why
    return found


async def test_why_of_a_schedule_tells_when_it_fires(opened: dt.App) -> None:
    made = await opened.schedule("nightly", "work", dt.Every("2h"))
    assert made.next_fire_time is not None
    found = await check_schedule(opened, "no_planner", "would fire at TIME, but no planner is alive")
    assert found.remedy == "start a planner"
    await joined(opened, "planner")
    found = await check_schedule(opened, "fires", "fires next at TIME: every 2 hours.*")
    assert f"{made.next_fire_time:%H:%M}" in found.why
    stored = await opened.schedules.find("nightly")
    assert await opened.why.schedule(str(stored.id)) == found


async def test_why_of_a_schedule_uses_its_time_zone(opened: dt.App) -> None:
    await joined(opened, "planner")
    made = await opened.schedule("nightly", "work", dt.Cron("0 3 * * *", tz="Asia/Kathmandu"))
    assert made.next_fire_time is not None
    found = await opened.why.schedule("nightly")
    assert re.match(r"fires next at (\d{4}-\d\d-\d\d )?03:00(:00)? Asia/Kathmandu: ", found.why), found.why


async def test_why_of_a_paused_schedule(opened: dt.App) -> None:
    await opened.schedule("nightly", "work", dt.Every("2h"))
    await pause_schedule(opened.store, "default", "nightly", "too loud", "ann")
    found = await check_schedule(
        opened, "paused", r"does not fire: it has been paused since TIME by ann \(too loud\)"
    )
    assert found.since == to_datetime((await opened.schedules.find("nightly")).updated_at)


async def test_why_of_a_late_schedule(opened: dt.App) -> None:
    await joined(opened, "planner")
    await opened.schedule("nightly", "work", dt.Every("2h"))
    stored = await opened.schedules.find("nightly")
    await put_schedule(opened.store, stored.draft, await opened.now() - 60 * SECOND, None)
    await check_schedule(opened, "planner_late", "is late: its fire of TIME is not planned yet")


async def fired(app: dt.App, **changes: Any) -> None:
    """The schedule has fired for the last time, a minute ago."""
    stored = await app.schedules.find("nightly")
    moment = await app.now() - 60 * SECOND
    again = await put_schedule(app.store, replace(stored.draft, **changes), moment, None)
    assert again is not None
    assert await app.store.fire([firing(again, None, moment)]) == 1


async def test_why_of_ended_schedules(opened: dt.App) -> None:
    await joined(opened, "planner")
    await opened.schedule("nightly", "work", dt.Every("2h"), max_runs=1)
    await fired(opened)
    sentence = "does not fire any more: it has fired 1 time, and max_runs is 1; its last fire was at TIME"
    await check_schedule(opened, "runs_spent", sentence)
    await fired(opened, max_runs=None, end_at=await opened.now() - SECOND)
    await check_schedule(
        opened, "ended", "does not fire any more: it ended at TIME; its last fire was at TIME"
    )
    await fired(opened, max_runs=None, end_at=None, when=dt.At(to_datetime(await opened.now() - SECOND)))
    await check_schedule(
        opened, "over", 'does not fire any more: "once.*" has no more instants; its last fire was at TIME'
    )


async def test_node_publishes_what_it_serves(app: dt.App) -> None:
    """The real one, from its first moment on."""
    app.task("work")(work)
    async with app.running(queues=["default"]):

        async def known() -> bool:
            return bool(await app.store.list_records(NODE, ALL_TENANTS, 10))

        await eventually(known)
        job, lost = await app.submit("else"), await app.submit("work", queue="billing")
        assert (await app.why.job(job.id)).code == "task_unknown"
        assert (await app.why.job(lost.id)).code == "queue_unserved"


async def test_why_of_a_missed_fire(opened: dt.App) -> None:
    await opened.schedule("nightly", "work", dt.Every("1h"))
    stored = await opened.schedules.find("nightly")
    moment = await opened.now() - 60 * SECOND
    again = await put_schedule(opened.store, stored.draft, moment, None)
    assert again is not None
    step = replace(firing(again, None), fires=fires(again.id, moment, skip_reason="missed: policy skip"))
    assert await opened.store.fire([step]) == 1
    await check(opened, step.fires[0].id, "skipped_missed", "was skipped at TIME: missed: policy skip")


def test_every_reason_code_is_listed_and_used() -> None:
    """Programs rely on them."""
    text = "".join(Path(module.__file__ or "").read_text() for module in (why, why_schedules))
    given = set(re.findall(r'Why\(\s*"([a-z_]+)"', text)) | {"skipped", "skipped_missed", "skipped_overlap"}
    assert given == set(CODES)
