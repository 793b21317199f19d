"""Why: every state of a job and of a schedule has its sentence, and the sentence is true."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import duetime as dt
from duetime.engine.notices import EVERYBODY, NODE
from duetime.model import why, why_schedules
from duetime.model.attempt import Ending
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Claimed, State
from duetime.model.lease import NodeDraft, NodeId
from duetime.model.limit import Bound, parse_rate
from duetime.model.profile import Profile
from duetime.model.why import CODES, at
from duetime.store import ClaimRequest, Lane, Note
from duetime.testing.conformance.drafts import death, ended, fires, firing, hand_over, loss, retry, success
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually

HOUR = 3_600 * SECOND
CLOCK = r"(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)? UTC"


async def joined(app: dt.App, role: str = "worker", said: Profile | None = None, ttl: int = HOUR) -> NodeId:
    """A node that lives, and may have said what it serves."""
    node = await app.store.join(NodeDraft("web", (role,), "1"), ttl)
    if said is not None:
        await app.store.put_record(NODE, EVERYBODY, str(node), said.to_bytes())
    return node


async def claimed(app: dt.App, node: NodeId, room: int = 1, **changes: Any) -> list[Claimed]:
    lanes = tuple(Lane(queue, 5, 0) for queue in ("default", "billing"))
    return await app.store.claim(replace(ClaimRequest(node, lanes, ("work",), room, 0), **changes))


async def started(app: dt.App, node: NodeId, **options: Any) -> Claimed:
    job = await app.submit("work", **options)
    [found] = await claimed(app, node, prefetch=2 * HOUR)
    assert found.id == job.id
    return found


async def check(app: dt.App, job_id: UUID, code: str, pattern: str) -> Any:
    """`TIME` in the pattern stands for an instant."""
    found = await app.why_job(job_id)
    assert found.code == code, found
    assert re.fullmatch(pattern.replace("TIME", CLOCK), found.why), found.why
    return found


@pytest.fixture
async def opened(app: dt.App) -> dt.App:
    await app.open()
    return app


# -- pending --------------------------------------------------------------------------------------------------------------
async def test_not_due(opened: dt.App) -> None:
    job = await opened.submit("work", delay="2h")
    found = await check(opened, job.id, "not_due", "waits: it is due at TIME")
    assert found.since == to_datetime((await opened.read_job(job.id)).created_at)


async def test_waits_for_its_next_attempt(opened: dt.App) -> None:
    node = await joined(opened)
    first = await started(opened, node)
    now = await opened.now()
    await opened.store.settle([retry(first, now + HOUR, now, error="Traceback\nValueError: boom")])
    await check(opened, first.id, "retry_waits", r"waits: attempt 1 failed at TIME \(ValueError: boom\); it is tried again at TIME")
    await opened.store.change_job("default", first.id, now, None)
    [second] = await claimed(opened, node)
    await opened.store.settle([retry(second, now + HOUR, now, error="timed out")._replace(ending=Ending.TIMED_OUT)])
    sentence = r"waits: attempt 2 timed out at TIME \(timed out\), 2 failures so far; it is tried again at TIME"
    await check(opened, first.id, "retry_waits", sentence)


async def test_snoozed(opened: dt.App) -> None:
    job = await started(opened, await joined(opened))
    now = await opened.now()
    await opened.store.settle([ended(job, State.PENDING, Ending.SNOOZED, now, due_at=now + HOUR)])
    await check(opened, job.id, "snoozed", "waits: its task asked at TIME to be run again at TIME")


async def test_a_paused_queue(opened: dt.App) -> None:
    await joined(opened)
    job = await opened.submit("work", queue="billing")
    await opened.pause_queue("billing", "database moves house")
    found = await check(opened, job.id, "queue_paused", r"waits: queue billing is paused since TIME \(database moves house\)")
    assert found.since == to_datetime((await opened.queues())[0].paused_at or 0)
    assert found.remedy == "resume the queue"


async def test_no_worker(opened: dt.App) -> None:
    job = await opened.submit("work")
    await joined(opened, "planner")
    gone = await joined(opened)
    await opened.store.leave(gone)
    await joined(opened, ttl=1)
    await check(opened, job.id, "no_worker", "waits: no worker is alive")


async def test_no_worker_serves_the_queue(opened: dt.App) -> None:
    await joined(opened, said=Profile(("work",), ("default",)))
    job = await opened.submit("work", queue="billing")
    await check(opened, job.id, "queue_unserved", "waits: none of 1 live worker serves queue billing")
    await joined(opened, said=Profile(("work",), ("billing",)))
    assert (await opened.why_job(job.id)).code == "starting"


async def test_nobody_knows_the_task(opened: dt.App) -> None:
    """G9: it waits, and whoever asks is told for what."""
    for _ in range(2):
        await joined(opened, said=Profile(("other",)))
    job = await opened.submit("work")
    await check(opened, job.id, "task_unknown", "waits: none of 2 live workers of queue default knows the task work")
    await joined(opened)  # of whom nothing is known
    assert (await opened.why_job(job.id)).code == "starting"


async def test_one_at_a_time(opened: dt.App) -> None:
    node = await joined(opened)
    await opened.schedule("nightly", "work", dt.Every("1h"), overlap="queue")
    first = await opened.trigger("nightly")
    [running] = await claimed(opened, node)
    second = await opened.trigger("nightly")
    sentence = f"waits: schedule nightly runs one job at a time, and {first.id} runs since TIME"
    await check(opened, second.id, "overlap_waits", sentence)
    now = await opened.now()
    await opened.store.settle([retry(running, now + HOUR, now)])
    sentence = f"waits: schedule nightly runs one job at a time, and {first.id} is tried again at TIME"
    await check(opened, second.id, "overlap_waits", sentence)


async def test_a_full_queue(opened: dt.App) -> None:
    node = await joined(opened)
    await opened.limit_queue("default", most=1)
    await started(opened, node)
    job = await opened.submit("work")
    assert await claimed(opened, node) == []
    await check(opened, job.id, "queue_full", "waits: queue default runs at most 1 at once, and so many run")


async def test_a_full_gate(opened: dt.App, make_app: MakeApp) -> None:
    """Jobs of other tenants count, and are not named (S9)."""
    bound = Bound("work", 2, None)
    node = await joined(opened, said=Profile(("work",), concurrency=50, bounds=(bound,)))
    other = make_app(tenant="other")
    for app in (opened, other):
        app.task("work", limit=dt.Limit(2))(work)
    await other.open()
    mine, theirs = await opened.submit("work"), await other.submit("work")
    assert len(await claimed(opened, node, 5, bounds=(bound,))) == 2
    job = await opened.submit("work")
    sentence = f"waits: of work at most 2 run at once, and 2 do: {mine.id} and others"
    assert str(theirs.id) not in (await check(opened, job.id, "gate_full", sentence)).why


async def work() -> None: ...


async def test_a_rate_of_the_queue(opened: dt.App) -> None:
    node = await joined(opened)
    await opened.limit_queue("default", rate="1/1h")
    await started(opened, node)
    job = await opened.submit("work")
    sooner = await opened.submit("work", delay="20m")  # when that falls due is not what it waits for
    assert await claimed(opened, node) == []
    found = await check(
        opened, job.id, "queue_rate", "waits: queue default starts at most 1/1h, and these are spent; the next may start at TIME"
    )
    assert at((await opened.read_job(sooner.id)).due_at, await opened.now()) not in found.why


async def test_a_rate_of_the_gate(opened: dt.App) -> None:
    bound = Bound("work", None, parse_rate("1/1h"))
    node = await joined(opened, said=Profile(("work",), concurrency=50, bounds=(bound,)))
    opened.task("work", limit=dt.Limit(rate="1/1h"))(work)
    await opened.submit("work")
    assert len(await claimed(opened, node, bounds=(bound,))) == 1
    job = await opened.submit("work")
    assert await claimed(opened, node, bounds=(bound,)) == []
    await check(opened, job.id, "gate_rate", "waits: of work at most 1/1h start, and these are spent; the next may start at TIME")


async def test_busy_workers(opened: dt.App) -> None:
    node = await joined(opened, said=Profile(("work",), concurrency=1))
    await started(opened, node)
    jobs = [await opened.submit("work") for _ in range(2)]
    await check(opened, jobs[0].id, "workers_busy", "waits: the one worker that can run it is busy; 2 of queue default are due")
    other = await joined(opened, said=Profile(("work",), concurrency=2))
    assert (await opened.why_job(jobs[0].id)).code == "starting"
    assert len(await claimed(opened, other, 2)) == 2
    job = await opened.submit("work")
    await check(opened, job.id, "workers_busy", "waits: all 2 workers that can run it are busy")


async def test_nothing_holds_it_up(opened: dt.App) -> None:
    await joined(opened)
    job = await opened.submit("work")
    await check(opened, job.id, "starting", "waits: it is due since TIME and starts in a moment")
    old = await opened.submit("work", at=to_datetime(await opened.now()) - timedelta(minutes=5))
    found = await check(opened, old.id, "due", "waits: it is due since TIME, and nothing known holds it up; 2 of queue default are due")
    assert found.remedy


# -- running --------------------------------------------------------------------------------------------------------------
async def test_running(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node)
    await check(opened, job.id, "running", rf"runs: attempt 1 on node web \({node}\) since TIME")
    await opened.store.save([Note(job.id, 1, None, b'{"done":40,"total":100,"note":"page 4"}')])
    await check(opened, job.id, "running", rf"runs: attempt 1 on node web \({node}\) since TIME, 40 of 100 done \(page 4\)")
    await opened.cancel_job(job.id)
    await check(opened, job.id, "cancelling", rf"runs, and was asked to stop: attempt 1 on node web \({node}\) since TIME, .*")


async def test_claimed_ahead(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node, delay="1h")
    await check(opened, job.id, "claimed", rf"waits on node web \({node}\): it starts at TIME")


async def test_its_node_is_not_heard_of(opened: dt.App) -> None:
    node = await joined(opened, ttl=SECOND // 5)
    job = await started(opened, node)

    async def overdue() -> bool:
        return (await opened.why_job(job.id)).code == "lease_overdue"

    await eventually(overdue)
    sentence = rf"runs on node web \({node}\), whose lease ended at TIME: it is given back unless the node is heard of"
    assert (await check(opened, job.id, "lease_overdue", sentence)).remedy == "start a node: none is alive"
    await opened.store.leave(node)
    await check(opened, job.id, "node_dead", rf"waits: node web \({node}\) died while it ran; it is given back in a moment")
    await joined(opened)
    assert (await opened.why_job(job.id)).remedy is None


async def test_handed_over(opened: dt.App) -> None:
    job = await started(opened, await joined(opened))
    now = await opened.now()
    await opened.store.settle([hand_over(job, now + HOUR, now)])
    await check(opened, job.id, "handed_over", "runs elsewhere: attempt 1 was handed over, and its report must come before TIME")
    await opened.store.extend(job.id, 1, now - 1)
    sentence = "waits: attempt 1 was handed over, and its report is overdue since TIME: it counts as timed out in a moment"
    await check(opened, job.id, "report_overdue", sentence)


# -- final ----------------------------------------------------------------------------------------------------------------
async def test_succeeded(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node)
    now = await opened.now()
    await opened.store.settle([success(job, now, started_at=now - 1_234_567)])
    found = await check(opened, job.id, "succeeded", rf"succeeded at TIME: attempt 1 on node web \({node}\) in 1s234ms")
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
        ({"delivery": "at_most_once"}, {}, r"attempt 1 did not succeed, and it is delivered at most once \(boom\)"),
        ({}, {"losses": 3, "error": "poison"}, r"3 workers died while running it \(poison\)"),
    ],
)
async def test_dead(opened: dt.App, options: dict[str, Any], changes: dict[str, Any], sentence: str) -> None:
    job = await started(opened, await joined(opened), **options)
    await opened.store.settle([death(job, await opened.now(), **changes)])
    await check(opened, job.id, "dead", f"gave up at TIME: {sentence}")


@pytest.mark.parametrize(("verb", "words"), [("retry_job", "retried as another job"), ("discard_job", "discarded")])
async def test_disposed_of(opened: dt.App, verb: str, words: str) -> None:
    job = await started(opened, await joined(opened))
    await opened.store.settle([death(job, await opened.now())])
    await getattr(opened, verb)(job.id)
    found = await check(opened, job.id, f"dead_{words.partition(' ')[0]}", rf"gave up at TIME: 1 failed attempt \(boom\); it was {words}")
    assert found.remedy is None


async def test_cancelled(opened: dt.App) -> None:
    job = await opened.submit("work")
    await opened.cancel_job(job.id, "cancelled over the API by ann")
    await check(opened, job.id, "cancelled", r"was cancelled at TIME before it started \(cancelled over the API by ann\)")
    other = await started(opened, await joined(opened))
    await opened.store.settle([ended(other, State.CANCELLED, Ending.CANCELLED, await opened.now(), error="cancelled while running")])
    await check(opened, other.id, "cancelled", r"was cancelled at TIME during attempt 1 \(cancelled while running\)")


async def test_lost_and_given_back(opened: dt.App) -> None:
    node = await joined(opened)
    job = await started(opened, node)
    await opened.store.settle([loss(job, await opened.now())])
    assert (await opened.why_job(job.id)).code == "starting"


async def test_skipped(opened: dt.App) -> None:
    node = await joined(opened)
    await opened.schedule("nightly", "work", dt.Every("1h"), overlap="skip")
    await opened.trigger("nightly")
    assert len(await claimed(opened, node)) == 1
    second = await opened.trigger("nightly")
    await claimed(opened, node)
    await check(opened, second.id, "skipped_overlap", "was skipped at TIME: overlap: .*")


# -- schedules ------------------------------------------------------------------------------------------------------------
async def check_schedule(app: dt.App, code: str, pattern: str) -> Any:
    found = await app.why_schedule("nightly")
    assert found.code == code, found
    assert re.fullmatch(pattern.replace("TIME", CLOCK), found.why), found.why
    return found


async def test_when_a_schedule_fires(opened: dt.App) -> None:
    made = await opened.schedule("nightly", "work", dt.Every("2h"))
    assert made.next_fire_time is not None
    found = await check_schedule(opened, "no_planner", "would fire at TIME, but no planner is alive")
    assert found.remedy == "start a planner"
    await joined(opened, "planner")
    found = await check_schedule(opened, "fires", "fires next at TIME: every 2 hours.*")
    assert f"{made.next_fire_time:%H:%M}" in found.why
    stored = await opened.find_schedule("nightly")
    assert await opened.why_schedule(str(stored.id)) == found


async def test_instants_on_the_clocks_of_the_schedules_zone(opened: dt.App) -> None:
    await joined(opened, "planner")
    made = await opened.schedule("nightly", "work", dt.Cron("0 3 * * *", tz="Asia/Kathmandu"))
    assert made.next_fire_time is not None
    found = await opened.why_schedule("nightly")
    assert re.match(r"fires next at (\d{4}-\d\d-\d\d )?03:00(:00)? Asia/Kathmandu: ", found.why), found.why


async def test_a_paused_schedule(opened: dt.App) -> None:
    await opened.schedule("nightly", "work", dt.Every("2h"))
    await opened.store.pause_schedule("default", "nightly", "too loud", "ann")
    found = await check_schedule(opened, "paused", r"does not fire: it is paused since TIME by ann \(too loud\)")
    assert found.since == to_datetime((await opened.find_schedule("nightly")).updated_at)


async def test_a_schedule_that_is_late(opened: dt.App) -> None:
    await joined(opened, "planner")
    await opened.schedule("nightly", "work", dt.Every("2h"))
    stored = await opened.find_schedule("nightly")
    await opened.store.put_schedule(stored.draft, await opened.now() - 60 * SECOND, None)
    await check_schedule(opened, "planner_late", "is late: its fire of TIME is not planned yet")


async def fired(app: dt.App, **changes: Any) -> None:
    """The schedule has fired for the last time, a minute ago."""
    stored = await app.find_schedule("nightly")
    moment = await app.now() - 60 * SECOND
    again = await app.store.put_schedule(replace(stored.draft, **changes), moment, None)
    assert again is not None
    assert await app.store.fire([firing(again, None, moment)]) == 1


async def test_schedules_that_are_over(opened: dt.App) -> None:
    await joined(opened, "planner")
    await opened.schedule("nightly", "work", dt.Every("2h"), max_runs=1)
    await fired(opened)
    sentence = "does not fire any more: it has fired 1 time, and max_runs is 1; its last fire was at TIME"
    await check_schedule(opened, "runs_spent", sentence)
    await fired(opened, max_runs=None, end_at=await opened.now() - SECOND)
    await check_schedule(opened, "ended", "does not fire any more: it ended at TIME; its last fire was at TIME")
    await fired(opened, max_runs=None, end_at=None, when=dt.At(to_datetime(await opened.now() - SECOND)))
    await check_schedule(opened, "over", 'does not fire any more: no instant is left of "once.*"; its last fire was at TIME')


async def test_a_node_says_what_it_serves(app: dt.App) -> None:
    """The real one, from its first moment on."""
    app.task("work")(work)
    async with app.running(queues=["default"]):

        async def known() -> bool:
            return bool(await app.store.list_records(NODE, EVERYBODY, 10))

        await eventually(known)
        job, lost = await app.submit("else"), await app.submit("work", queue="billing")
        assert (await app.why_job(job.id)).code == "task_unknown"
        assert (await app.why_job(lost.id)).code == "queue_unserved"


async def test_a_missed_fire(opened: dt.App) -> None:
    await opened.schedule("nightly", "work", dt.Every("1h"))
    stored = await opened.find_schedule("nightly")
    moment = await opened.now() - 60 * SECOND
    again = await opened.store.put_schedule(stored.draft, moment, None)
    assert again is not None
    step = replace(firing(again, None), fires=fires(again.id, moment, skip_reason="missed: policy skip"))
    assert await opened.store.fire([step]) == 1
    await check(opened, step.fires[0].id, "skipped_missed", "was skipped at TIME: missed: policy skip")


def test_every_code_is_listed_and_every_listed_code_is_given() -> None:
    """Programs rely on them."""
    text = "".join(Path(module.__file__ or "").read_text() for module in (why, why_schedules))
    given = set(re.findall(r'Why\(\s*"([a-z_]+)"', text)) | {"skipped", "skipped_missed", "skipped_overlap"}
    assert given == set(CODES)
