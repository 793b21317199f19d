"""Every call of the clients, on a service that really listens."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

import duetime as dt
from duetime.errors import (
    AccessDenied,
    JobFinished,
    JobNotFound,
    ScheduleExists,
    ScheduleNotFound,
    VersionConflict,
    WaitTimeout,
    WorkerNotFound,
)
from duetime.model.lease import NodeDraft
from duetime.model.signing import report_token
from duetime.model.views import JobView, Submitted
from duetime.store import ClaimRequest, Lane
from duetime.testing.conformance.drafts import hand_over, settle
from tests.api.conftest import RING
from tests.remote.conftest import Caller, Served

SOON = datetime(2099, 1, 1, 9, tzinfo=UTC)
MISSING = "01935c2e-7b3a-7000-8000-000000000000"


def test_both_clients_have_the_same_calls_with_the_same_signatures() -> None:
    def calls(client: type) -> dict[str, Any]:
        return {
            name: inspect.signature(member)
            for name, member in inspect.getmembers(client, inspect.isfunction)
            if name[0] != "_"
        }

    ours = {"run", "close", "events"}
    one, other = calls(dt.Client), calls(dt.AsyncClient)
    assert {name: one[name] for name in one.keys() - ours} == {
        name: other[name] for name in other.keys() - ours
    }
    assert [name for name in one if not getattr(dt.Client, name).__doc__] == []


async def test_a_job_is_submitted_with_every_option_and_read(service: Caller) -> None:
    done = await service.submit(
        "send",
        {"n": 1},
        at=SOON,
        queue="mail",
        priority=8,
        timeout=timedelta(minutes=5),
        retry=dt.Retry(max_attempts=3),
        delivery="at_most_once",
        expires=timedelta(hours=1),
        jitter="1s..5s",
        unique_key="k",
        owner="anna",
        labels={"team": "blue"},
    )
    assert isinstance(done, Submitted)
    assert (done.created, done.state, done.fire_time) == (True, dt.State.PENDING, SOON)
    job = await service.get_job(done.id)
    assert isinstance(job, JobView)
    assert (job.id, job.task, job.payload, job.queue, job.priority) == (done.id, "send", {"n": 1}, "mail", 8)
    assert (job.timeout, job.delivery, job.owner, job.labels) == (
        "5m",
        "at_most_once",
        "anna",
        {"team": "blue"},
    )
    assert (job.expires, job.fire_time) == ("1h", SOON)
    assert timedelta(seconds=1) <= job.due_at - SOON <= timedelta(seconds=5)
    assert job.retry is not None
    assert job.retry["max_attempts"] == 3
    assert job.due_at.utcoffset() == timedelta()
    again = await service.submit("send", unique_key="k")
    assert (again.id, again.created) == (done.id, False)
    with pytest.raises(AttributeError, match="cannot assign"):
        setattr(job, "queue", "other")  # noqa: B010  # mypy knows that it cannot be assigned to


async def test_http_target_needs_only_its_url(service: Caller) -> None:
    done = await service.submit({"url": "https://agent.example/run", "method": "PUT"}, None, delay="1h")
    job = await service.get_job(done.id)
    assert (job.target["type"], job.target["method"], job.task, job.payload) == ("http", "PUT", None, None)


async def test_many_jobs_are_submitted_and_listed_over_pages(
    service: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.remote.calls.fields.MAX_PAGE", 2)
    done = await service.submit_many(
        [dt.NewJob("send", {"n": number}, at=SOON, owner="anna") for number in range(5)]
    )
    assert (len(done.ids), done.created) == (5, 5)
    assert {job.id for job in await service.jobs(owner="anna")} == set(done.ids)
    assert len(await service.jobs(limit=3)) == 3
    assert await service.jobs(state="dead") == []
    assert len(await service.jobs(due_after=SOON, due_before=SOON + timedelta(seconds=1))) == 5


async def test_job_is_rescheduled_run_and_cancelled(service: Caller) -> None:
    job_id = (await service.submit("send", delay="1h")).id
    assert (await service.reschedule_job(job_id, at=SOON, priority=9)).due_at == SOON
    assert (await service.run_job(str(job_id))).due_at < SOON
    assert (await service.cancel_job(job_id)).state is dt.State.CANCELLED
    with pytest.raises(JobFinished):
        await service.cancel_job(job_id)


@pytest.mark.parametrize("job_id", [MISSING, "nonsense", "../schedules"])
async def test_unknown_job_raises_job_not_found(service: Caller, job_id: str) -> None:
    with pytest.raises(JobNotFound):
        await service.get_job(job_id)


async def test_wait_for_returns_the_final_job(service: Caller, served: Served) -> None:
    @served.app.task("double")
    async def double(n: int) -> int:
        return 2 * n

    @served.app.task("boom", retry=dt.Retry(max_attempts=1))
    async def boom() -> None:
        raise ValueError("bad luck")

    job_id = (await service.submit("double", {"n": 21})).id
    with pytest.raises(WaitTimeout):
        await service.wait_for(job_id, "10ms")
    async with served.app.running(roles=("worker",)):
        assert (await service.wait_for(job_id, "60s")).result == 42
        dead = (await service.submit("boom")).id
        with pytest.raises(dt.JobFailed, match="bad luck"):
            await service.wait_for(dead, "60s", raise_on_failure=True)
    assert [job.id for job in await service.dead_letters()] == [dead]
    again = await service.retry_job(dead, {})
    assert again.retry_of == dead
    assert await service.dead_letters() == []
    assert (await service.get_job(dead)).attempts[0].ending == "failed"


async def handed_over(service: Caller, served: Served) -> UUID:
    """As by a worker that has called an agent which answered 202."""
    job_id: UUID = (await service.submit({"url": "https://agent.example/run", "async": True})).id
    store = served.app.store
    node = await store.join(NodeDraft("n", ("worker",), "1"), 60_000_000)
    [claimed], _ = await store.claim(ClaimRequest(node, (Lane("default", 5, 0),), ("@http",), 10, 0))
    now = await store.time()
    assert await settle(store, [hand_over(claimed, now + 60_000_000, now)]) == []
    return job_id


async def test_external_worker_reports_success(service: Caller, served: Served) -> None:
    job_id = await handed_over(service, served)
    token = report_token(RING, "default", job_id, 1)
    beaten = await service.heartbeat(job_id, token, progress={"done": 1, "total": 2}, checkpoint={"page": 1})
    assert (beaten.progress["done"], beaten.checkpoint) == (1, {"page": 1})
    assert (await service.complete(job_id, token, {"ok": True})).result == {"ok": True}
    with pytest.raises(JobFinished):
        await service.fail(job_id, token, "too late")
    with pytest.raises(AccessDenied, match="token") as refused:
        await service.fail(job_id, "wrong", "x")
    assert refused.value.code == "token_invalid"


async def test_external_worker_reports_its_output(service: Caller, served: Served) -> None:
    job_id = await handed_over(service, served)
    token = report_token(RING, "default", job_id, 1)
    await service.heartbeat(job_id, token, output=["page 1 read", {"text": "odd", "level": "warning"}])
    so_far = await service.job_output(job_id)
    assert [(line.number, line.text, line.level) for line in so_far.lines] == [
        (1, "page 1 read", "info"),
        (2, "odd", "warning"),
    ]
    assert not so_far.ended
    await service.fail(
        job_id, token, "no page 2", retry=False, output=[{"text": "password=x1y2", "stream": "stderr"}]
    )
    ended = await service.job_output(job_id, attempt=1, after=2)
    assert [(line.number, line.stream) for line in ended.lines] == [(3, "stderr")]
    assert ended.ended
    with pytest.raises(JobFinished):
        await service.complete(job_id, token, output=["too late"])
    assert (await service.job_output(job_id)).total == 3
    with pytest.raises(dt.InvalidInput, match="level"):
        await service.complete(job_id, token, output=[{"text": "x", "level": "loud"}])


async def test_report_may_have_a_thousand_lines(service: Caller, served: Served) -> None:
    job_id = await handed_over(service, served)
    lines = [{"text": f"page {n}", "stream": "stdout", "level": "info"} for n in range(1_000)]
    await service.complete(job_id, report_token(RING, "default", job_id, 1), output=lines)
    assert (await service.job_output(job_id)).total == 1_000


async def test_external_worker_reports_failure(service: Caller, served: Served) -> None:
    job_id = await handed_over(service, served)
    failed = await service.fail(job_id, report_token(RING, "default", job_id, 1), "no such page", retry=False)
    assert (failed.state, failed.error) == (dt.State.DEAD, "no such page")


async def test_remote_worker_claims_and_reports(service: Caller) -> None:
    tasks = [{"name": "mail", "timeout": "1m"}, "other"]
    joined = await service.join_worker("mailer", tasks, concurrency=5, lease="20s")
    assert (joined.tasks, joined.queues, joined.lease_seconds) == (["mail", "other"], ["default"], 20.0)
    worker = joined.worker
    ids = [(await service.submit("mail", {"n": n})).id for n in range(5)]
    jobs = {job.id: job for _ in range(5) for job in await service.claim_jobs(worker, wait="5s")}
    assert [jobs[job].payload for job in ids] == [{"n": n} for n in range(5)]
    mine = [{"id": str(job), "attempt": 1} for job in ids]
    missing = {"id": MISSING, "attempt": 1}
    assert [one.reason for one in await service.heartbeat_worker(worker, [*mine, missing])] == ["lost"]
    assert await service.add_output(worker, [{**mine[0], "lines": [{"text": "sent"}]}]) == []
    assert [line.text for line in (await service.job_output(ids[0], attempt=1)).lines] == ["sent"]
    assert [one.id for one in await service.complete_jobs(worker, [{**mine[0], "result": 7}, missing])] == [
        UUID(MISSING)
    ]
    assert await service.fail_jobs(worker, [{**mine[1], "error": {"message": "no"}, "retry": False}]) == []
    assert await service.snooze_jobs(worker, [{**mine[2], "after": "1h"}]) == []
    assert await service.release_jobs(worker, [{**mine[3], "started": False}]) == []
    await service.leave_worker(worker)
    states = [(await service.get_job(job)).state for job in ids]
    assert states == ["succeeded", "dead", "pending", "pending", "pending"]
    with pytest.raises(WorkerNotFound):
        await service.claim_jobs(worker)


async def test_schedule_is_created_replaced_paused_and_removed(service: Caller) -> None:
    made = await service.schedule(
        "nightly", "report", dt.Cron("30 2 * * *", tz="Europe/Berlin"), overlap="skip", labels={"a": "b"}
    )
    assert (made.rule, made.overlap, made.version) == (dt.Cron("30 2 * * *", tz="Europe/Berlin"), "skip", 1)
    assert (
        await service.schedule(
            "nightly", "report", dt.Cron("30 2 * * *", tz="Europe/Berlin"), overlap="skip", labels={"a": "b"}
        )
    ) == made
    with pytest.raises(ScheduleExists):
        await service.schedule("nightly", "report", dt.Every("5m"))
    replaced = await service.schedule(
        "nightly", "other", dt.Every("5m"), replace=True, missed=dt.Missed("all", within="1h")
    )
    assert (replaced.id, replaced.version, replaced.task, replaced.overlap, replaced.labels) == (
        made.id,
        2,
        "other",
        "allow",
        {},
    )
    assert replaced.missed["policy"] == "all"
    assert (await service.edit_schedule("nightly", {"priority": 9, "missed": None}, version=2)).priority == 9
    with pytest.raises(VersionConflict):
        await service.edit_schedule("nightly", {"priority": 8}, version=2)
    assert (await service.pause("nightly", "month end")).pause_note == "month end"
    assert (await service.resume(str(made.id))).paused is False
    job = await service.trigger("nightly")
    assert (job.schedule, job.task) == ("nightly", "other")
    fires = (await service.preview_schedule("nightly", count=3)).fires
    assert len(fires) == 3
    with pytest.raises(VersionConflict):
        await service.remove("nightly", version=1)
    await service.remove("nightly")
    with pytest.raises(ScheduleNotFound):
        await service.get_schedule("nightly")


async def test_names_with_special_characters_are_quoted_in_paths(service: Caller) -> None:
    await service.schedule("a/b?c#d %\u00e4", "report", dt.Every("5m"))
    assert (await service.get_schedule("a/b?c#d %\u00e4")).name == "a/b?c#d %\u00e4"


async def test_schedules_are_listed_over_pages(service: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duetime.remote.calls.fields.MAX_PAGE", 2)
    for number in range(5):
        await service.schedule(f"s{number}", "t", dt.Every("5m"))
    assert [one.name for one in await service.schedules()] == ["s0", "s1", "s2", "s3", "s4"]
    assert [one.name for one in await service.schedules(after="s1", limit=2)] == ["s2", "s3"]


async def test_queues_tasks_and_nodes_are_listed(service: Caller, served: Served) -> None:
    await service.submit("send", queue="mail")
    assert (await service.pause_queue("mail", "server moves")).pause_note == "server moves"
    [mail] = [queue for queue in await service.queues() if queue.name == "mail"]
    assert (mail.paused, mail.pending) == (True, 1)
    assert (await service.resume_queue("mail")).paused is False
    assert await service.known_tasks() == []

    @served.app.task("send", queue="mail")
    async def send() -> None:
        """Send it."""

    [task] = await service.known_tasks()
    assert (task.name, task.queue, task.doc, task.delivery) == ("send", "mail", "Send it.", "at_least_once")
    async with served.app.running(roles=("planner",)):
        [node] = await service.nodes()
        assert (node.state, node.roles) == ("alive", ["planner"])
        assert await service.leases()


async def test_schedule_edit_is_planned_applied_and_restored(service: Caller) -> None:
    await service.schedule("yearly", "report", dt.Cron("0 9 1 1 *"))
    plan = await service.plan_schedule(
        "yearly", {"when": dt.Cron("0 10 1 1 *"), "priority": 9}, horizon="800d", count=1
    )
    assert ({change.field for change in plan.diff}, plan.version, plan.complete) == (
        {"when", "priority"},
        1,
        True,
    )
    assert (len(plan.fires.moved), plan.counts.moved >= 2) == (1, True)
    assert plan.fires.moved[0]["to"] - plan.fires.moved[0]["from"] == timedelta(hours=1)
    assert "10:00" in (plan.words.after or "")
    await service.edit_schedule(
        "yearly", {"when": {"every": "5m"}, "retry": dt.Retry(max_attempts=2), "missed": dt.Missed("all")}
    )
    newest, first = await service.schedule_versions("yearly")
    assert (newest.version, newest.change, first.change) == (2, "replaced", "created")
    assert "when" in {change.field for change in newest.diff}
    assert (await service.restore_schedule("yearly", 1, expect_version=2)).rule == dt.Cron("0 9 1 1 *")
    with pytest.raises(VersionConflict):
        await service.restore_schedule("yearly", 1, expect_version=2)
    with pytest.raises(dt.NotFound):
        await service.restore_schedule("yearly", 99)


async def test_previews_show_fires_with_clock_changes(service: Caller) -> None:
    after = datetime(2030, 3, 30, 12, tzinfo=UTC)
    found = await service.preview_when(dt.Cron("30 2 * * *", tz="Europe/Berlin"), count=2, after=after)
    assert found.words == "at 02:30, every day, Europe/Berlin time"
    assert [fire.at.isoformat() for fire in found.fires] == [
        "2030-03-31T01:00:00+00:00",
        "2030-04-01T00:30:00+00:00",
    ]
    assert "does not exist" in found.fires[0].note
    await service.schedule("s", "report", dt.Cron("30 2 * * *", tz="Europe/Berlin"))
    assert (await service.preview_schedule("s", count=2, after=after)).fires == found.fires


async def test_backfill_continues_at_next_from(service: Caller) -> None:
    await service.schedule("daily", "report", dt.Cron("0 9 * * *"))
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC)
    part = await service.backfill("daily", first, last, limit=2, rate="1/1s")
    assert (part.added, part.existing, part.next_from) == (2, 0, datetime(2026, 1, 3, 9, tzinfo=UTC))
    rest = await service.backfill("daily", part.next_from, last)
    assert (rest.added, rest.existing, rest.next_from) == (1, 0, None)
    assert (await service.backfill("daily", first, last)).existing == 3


async def test_labels_and_payload_fields_with_colons_are_found(service: Caller) -> None:
    named = {"env:team": "web:shop", "path\\": "c"}
    await service.schedule("nightly", "report", dt.Every("5m"), labels=named)
    sent = await service.submit("send", payload={"a:b": {"c": "d:e"}}, at=SOON, labels=named)
    for label in named.items():
        assert [one.name for one in await service.schedules(label=label)] == ["nightly"]
        assert [one.id for one in await service.jobs(label=label)] == [sent.id]
    assert [one.id for one in await service.jobs(payload=("a:b.c", "d:e"))] == [sent.id]
    assert await service.jobs(label=("env", "team:web:shop")) == []
    assert (await service.bulk_jobs("cancel", payload=("a:b.c", "d:e"))).done == 1


async def test_bulk_actions_run_until_all_chunks_are_done(
    service: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.app.bulk.MAX_ITEMS", 2)
    for number in range(5):
        await service.schedule(f"s{number}", "report", dt.Every("5m"), owner="anna", labels={"team": "blue"})
    assert (await service.bulk_schedules("pause", owner="anna", dry_run=True)).matched == 5
    seen: list[int] = []
    done = await service.bulk_schedules(
        "pause", owner="anna", note="moving", progress=lambda bulk: seen.append(bulk.done)
    )
    assert (done.matched, done.done, done.failed, seen) == (5, 5, [], [2, 4, 5])
    assert {one.pause_note for one in await service.schedules(paused=True, label=("team", "blue"))} == {
        "moving"
    }
    mixed = await service.bulk_schedules("resume", ids=["s1", "unknown"])
    assert (mixed.done, [failure.code for failure in mixed.failed]) == (1, ["schedule_not_found"])
    ids = (await service.submit_many([dt.NewJob("send", at=SOON, queue="mail") for _ in range(5)])).ids
    assert (await service.bulk_jobs("run", queue="mail", due_after=SOON)).done == 5
    assert (await service.bulk_jobs("cancel", ids=ids[:2])).done == 2
    assert (await service.bulk_jobs("cancel", queue="mail", state="pending")).done == 3


async def test_why_explains_jobs_and_schedules(service: Caller) -> None:
    job_id = (await service.submit("send", queue="mail")).id
    await service.pause_queue("mail", "server moves")
    why = await service.why_job(job_id)
    assert (why.code, "queue mail has been paused since" in why.why) == ("queue_paused", True)
    assert why.since is not None
    await service.schedule("s", "report", dt.Every("5m"))
    assert (await service.why_schedule("s")).why


async def test_dead_letters_are_grouped_by_error(service: Caller, served: Served) -> None:
    ids = [await handed_over(service, served) for _ in range(2)]
    for job_id in ids:
        await service.fail(job_id, report_token(RING, "default", job_id, 1), "no such page", retry=False)
    [group] = (await service.dead_groups()).items
    assert (group.error, group.target, group.count) == ("no such page", "@http", 2)
    assert {job.id for job in await service.dead_letters(target=group.target, error=group.error)} == set(ids)
    await service.discard_job(ids[0])
    assert [job.id for job in await service.dead_letters()] == ids[1:]


async def test_stats_calendar_and_me_are_read(service: Caller) -> None:
    await service.submit("send")
    assert (await service.stats("1h", "5m")).live.pending == 1
    assert len((await service.queue_depth("1h", "5m")).times) == 13
    await service.schedule("s", "report", dt.Every("1h"))
    now = (await service.me()).now
    calendar = await service.calendar(now, now + timedelta(days=1), bucket="1h")
    assert sum(bucket.count for bucket in calendar.buckets) in (23, 24, 25)
    assert (await service.me()).tenant == "default"


async def test_on_conflict_decides_what_happens_to_a_taken_unique_key(service: Caller) -> None:
    first = await service.submit("send", at=SOON, unique_key="k")
    moved = await service.submit(
        "send", at=SOON + timedelta(days=1), unique_key="k", on_conflict="reschedule"
    )
    assert (moved.id, moved.conflict, moved.created) == (first.id, "rescheduled", False)
    replaced = await service.submit("send", at=SOON, unique_key="k", on_conflict="replace")
    assert (replaced.conflict, replaced.created, replaced.id != first.id) == ("replaced", True, True)
    assert (await service.get_job(first.id)).state is dt.State.CANCELLED


async def test_cancel_reason_is_stored(service: Caller) -> None:
    job_id = (await service.submit("send", at=SOON)).id
    assert (await service.cancel_job(job_id, "wrong m\u00f6nth & more")).error == "wrong m\u00f6nth & more"


async def test_events_are_streamed(service: Caller) -> None:
    following = asyncio.create_task(service.first_events(2, types=["schedule"]))
    while not following.done():
        await service.schedule("s", "report", dt.Every("5m"))
        await service.remove("s")
        await asyncio.wait([following], timeout=0.3)
    events = following.result()
    assert {event.kind for event in events} <= {"schedule", "reset"}
    assert all(event.id is not None for event in events)


async def test_queue_limit_is_set_and_removed(service: Caller) -> None:
    assert (await service.limit_queue("mail", 5, "100/1m")).rate == "100/1m"
    lifted = await service.limit_queue("mail")
    assert (lifted.max_running, lifted.rate) == (None, None)
    with pytest.raises(dt.InvalidInput, match="often"):
        await service.limit_queue("mail", rate="often")


async def test_secret_of_a_channel_is_kept_when_left_out_and_removed_by_none(service: Caller) -> None:
    target = {"type": "webhook", "url": "https://hooks.example.org/duetime"}
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    await service.set_alert_channel("hook", **target, signing_secret=secret)
    assert (await service.set_alert_channel("hook", **target)).secrets == ["signing_secret"]
    assert (await service.set_alert_channel("hook", **target, signing_secret=None)).secrets == []
    with pytest.raises(dt.InvalidInput, match="url: is null"):
        await service.set_alert_channel("hook", type="webhook", url=None)
