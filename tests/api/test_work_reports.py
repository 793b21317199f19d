"""The worker protocol: reports, heartbeats and the end of remote workers."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from duetime.model.instant import SECOND
from duetime.model.lease import NodeDraft
from tests.api.conftest import Api, refused
from tests.api.keyed_api import KeyedApi, keyed_api
from tests.api.remote_worker import MISSING, TimedApi, job, join, named, timed

__all__ = ["keyed_api", "timed"]


# -- reports
async def test_completed_jobs_have_their_results(api: Api) -> None:
    worker = await join(api)
    ids = [await api.submit() for _ in range(3)]
    got = await worker.claim()
    reports = [{**named(one), "result": {"number": n}} for n, one in enumerate(got)]
    assert await worker.report("complete", *reports) == []
    assert [(await job(api, one))["result"] for one in ids] == [{"number": n} for n in range(3)]


async def test_report_with_another_attempt_number_is_refused(api: Api) -> None:
    worker = await join(api)
    job_id = await api.submit()
    got = await worker.claim_one()
    wrong = [{"id": job_id, "attempt": 2}, {"id": MISSING, "attempt": 1}]
    assert await worker.report("complete", *wrong, got, got) == [job_id, MISSING, job_id]
    assert (await job(api, job_id))["state"] == "succeeded"


async def test_report_on_the_job_of_another_worker_is_refused(api: Api) -> None:
    mine, other = await join(api), await join(api)
    job_id = await api.submit()
    got = await mine.claim_one()
    for verb in ("complete", "release"):
        assert await other.report(verb, got) == [job_id]
    assert await other.report("fail", {**got, "error": {"message": "no"}}) == [job_id]
    assert (await job(api, job_id))["state"] == "running"


async def test_any_process_takes_the_report(api: Api) -> None:
    """The cache of the process that served the claim is not needed."""
    worker = await join(api)
    job_id = await api.submit()
    got = await worker.claim_one()
    api.app.remote_work._nodes.clear()
    assert await worker.report("complete", got) == []
    assert (await job(api, job_id))["state"] == "succeeded"


async def test_report_reads_only_the_jobs_that_it_names(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await join(keyed_api, authorization=await keyed_api.key("work"))
    for _ in range(5):
        await keyed_api.app.submit("invoice.send")
    jobs = [named(one) for one in await worker.claim()]
    keyed_api.app.remote_work._nodes.clear()  # another process takes the reports
    keyed_api.count(monkeypatch, "list_jobs", "get_job")
    assert await worker.report("complete", {"id": MISSING, "attempt": 1}) == [MISSING]
    assert await worker.report("complete", jobs[0]) == []
    assert await worker.report("output", {**jobs[1], "lines": [{"text": "a"}]}) == []
    assert await worker.report("complete", jobs[1]) == []
    assert keyed_api.calls == {"get_job": 3}


async def test_failure_follows_the_policies_of_the_task(api: Api) -> None:
    worker = await join(api, task={"retry": {"max_attempts": 2, "first_delay": "0s"}})
    job_id = await api.submit()
    error = {"type": "IOError", "message": "no route", "traceback": "at send (mail.js:7)"}
    for state in ("pending", "dead"):
        assert await worker.report("fail", {**await worker.claim_one(), "error": error}) == []
        assert (await job(api, job_id))["state"] == state
    assert (await job(api, job_id))["error"] == "at send (mail.js:7)\nIOError: no route"


async def test_policies_of_the_job_come_before_those_of_the_task(api: Api) -> None:
    worker = await join(api, task={"retry": {"max_attempts": 9}})
    job_id = await api.submit(retry={"max_attempts": 1})
    assert await worker.report("fail", {**await worker.claim_one(), "error": {"message": "no"}}) == []
    assert (await job(api, job_id))["state"] == "dead"


async def test_failure_can_forbid_a_retry_or_say_when(timed: TimedApi) -> None:
    worker = await join(timed)
    first, second = await timed.submit(), await timed.submit()
    one, two = [named(got) for got in await worker.claim()]
    error = {"error": {"message": "no"}}
    assert (
        await worker.report("fail", {**one, **error, "retry": False}, {**two, **error, "after": "10m"}) == []
    )
    assert (await job(timed, first))["state"] == "dead"
    found = await timed.app.read_job(UUID(second))
    assert found.state == "pending"
    assert 590 * SECOND < found.due_at - found.created_at < 610 * SECOND


async def test_snoozed_job_comes_back_later_with_its_checkpoint(timed: TimedApi) -> None:
    worker = await join(timed, lease="10m")
    job_id = await timed.submit()
    got = await worker.claim_one()
    assert await worker.beat({**got, "checkpoint": {"page": 3}, "progress": {"done": 3, "total": 9}}) == []
    assert (await job(timed, job_id))["progress"] == {"done": 3, "total": 9}
    assert await worker.report("snooze", {**got, "after": "1m", "reason": "closed"}) == []
    assert await worker.claim() == []
    await timed.move(61)
    [again] = await worker.claim()
    assert (again["attempt"], again["failures"], again["checkpoint"]) == (2, 0, {"page": 3})


async def test_released_job_goes_to_another_worker(api: Api) -> None:
    worker, other = await join(api), await join(api)
    job_id = await api.submit()
    assert await worker.report("release", {**await worker.claim_one(), "started": False}) == []
    [got] = await other.claim()
    assert (got["id"], got["attempt"], (await job(api, job_id))["attempts"]) == (job_id, 2, [])


async def test_at_most_once_job_that_began_is_not_run_again(api: Api) -> None:
    worker = await join(api)
    job_id = await api.submit(delivery="at_most_once")
    assert await worker.report("release", await worker.claim_one()) == []
    assert (await job(api, job_id))["state"] == "dead"


async def test_concurrent_reports_share_transactions(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await keyed_api.key("work")
    worker = await join(keyed_api, authorization=key)
    handles = [await keyed_api.app.submit("invoice.send") for _ in range(50)]
    jobs = await worker.claim(50)
    settle, calls, begun = keyed_api.app.store.settle, [], asyncio.Event()

    async def slow(batch: Any, successors: Any = None) -> Any:
        calls.append(len(batch))
        if len(calls) == 1:
            await begun.wait()
        return await settle(batch, successors)

    monkeypatch.setattr(keyed_api.app.store, "settle", slow)
    sent = [asyncio.create_task(worker.report("complete", named(one))) for one in jobs]
    while len(keyed_api.app.context.shared.reports._group._waiting) < 49:
        await asyncio.sleep(0)
    begun.set()
    assert await asyncio.gather(*sent) == [[]] * 50
    assert calls == [1, 49]
    assert all([(await keyed_api.app.get_job(one.id)).state == "succeeded" for one in handles])


async def test_wrong_item_is_named(api: Api) -> None:
    worker = await join(api)
    body = {"jobs": [{"id": MISSING, "attempt": 1}, {"id": "x", "attempt": 1}]}
    refused(await api.post(f"/workers/{worker.id}/complete", body), 422, "input_invalid", "jobs[1].id")
    await api.submit()
    got = await worker.claim_one()
    body = {"jobs": [{**got, "result": "x" * 1_100_000}]}
    problem = (await api.post(f"/workers/{worker.id}/complete", body)).json()
    assert problem["field"] == "jobs[0].result"


# -- heartbeats
async def test_heartbeat_tells_which_jobs_to_stop(api: Api) -> None:
    worker = await join(api)
    cancelled, kept = await api.submit(), await api.submit()
    got = {one["id"]: named(one) for one in await worker.claim()}
    await api.ask("DELETE", f"/jobs/{cancelled}")
    lost = {"id": MISSING, "attempt": 1}
    assert await worker.beat(*got.values(), lost) == [(MISSING, "lost"), (cancelled, "cancelled")]
    assert await worker.report("fail", {**got[cancelled], "error": {"message": "stopped"}}) == []
    assert [(await job(api, one))["state"] for one in (cancelled, kept)] == ["cancelled", "running"]


async def test_flood_of_heartbeats_does_not_read_all_jobs_of_the_worker_each_time(
    keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await join(keyed_api, authorization=await keyed_api.key("work"), lease="10m")
    handles = [await keyed_api.app.submit("invoice.send") for _ in range(3)]
    jobs = [named(one) for one in await worker.claim()]
    keyed_api.count(monkeypatch, "list_jobs", "get_job")
    for _ in range(3):
        assert await worker.beat(*jobs) == []
    await keyed_api.app.cancel_job(handles[0].id)
    keyed_api.calls.clear()
    lost = {"id": MISSING, "attempt": 1}
    assert await worker.beat(*jobs, lost) == [(MISSING, "lost"), (str(handles[0].id), "cancelled")]
    assert keyed_api.calls["list_jobs"] == 0
    assert await worker.report("fail", {**jobs[0], "error": {"message": "stopped"}}) == []
    assert (await keyed_api.app.read_job(handles[0].id)).state == "cancelled"


async def test_job_past_its_timeout_is_stopped_and_then_settled(timed: TimedApi) -> None:
    worker = await join(timed, lease="30s", task={"timeout": "5s", "retry": {"max_attempts": 1}})
    job_id = await timed.submit()
    got = await worker.claim_one()
    assert await worker.beat(got) == []
    await timed.move(6)
    assert await worker.beat(got) == [(job_id, "timed_out")]
    assert (await job(timed, job_id))["state"] == "running"
    await timed.move(10)
    assert await worker.beat(got) == [(job_id, "timed_out")]
    found = await job(timed, job_id)
    assert (found["state"], found["error"]) == ("dead", "timed out")
    assert await worker.beat(got) == [(job_id, "lost")]


async def test_job_whose_claim_was_never_answered_is_released(timed: TimedApi) -> None:
    worker = await join(timed, lease="30s")
    job_id = await timed.submit()
    await worker.claim_one()
    assert await worker.beat() == []
    assert (await job(timed, job_id))["state"] == "running"  # the answer may be on its way
    for _ in range(4):
        await timed.move(10)
        assert await worker.beat() == []
    [again] = await worker.claim()
    assert (again["id"], again["attempt"]) == (job_id, 2)


async def test_worker_whose_lease_ended_joins_again_and_its_jobs_restart(timed: TimedApi) -> None:
    worker = await join(timed, lease="30s")
    job_id = await timed.submit()
    got = await worker.claim_one()
    await timed.move(31)
    assert await timed.reap() == ["mailer"]
    refused(await timed.post(f"/workers/{worker.id}/heartbeat", {"jobs": []}), 404, "worker_not_found")
    assert await worker.report("complete", got) == [job_id]
    successor = await join(timed, lease="30s")
    [again] = await successor.claim()
    assert (again["id"], again["attempt"]) == (job_id, 2)
    assert await worker.report("complete", got) == [job_id]
    assert await successor.report("complete", named(again)) == []


async def test_poisonous_job_is_quarantined_and_becomes_a_dead_letter(timed: TimedApi) -> None:
    """One at a time after two losses; each further loss is charged."""
    first, second = await timed.submit(), await timed.submit()
    for _ in range(2):
        worker = await join(timed, lease="1s")
        assert {one["id"] for one in await worker.claim()} == {first, second}
        await timed.move(2)
        await timed.reap()
    worker = await join(timed, lease="10m")
    await timed.move(2)  # they become due one by one
    [got] = await worker.claim()
    await timed.move(2)
    assert await worker.claim() == []
    assert await worker.report("complete", named(got)) == []
    await timed.move(2)
    [other] = await worker.claim()
    assert {got["id"], other["id"]} == {first, second}


async def test_worker_that_leaves_releases_its_jobs(api: Api) -> None:
    worker, other = await join(api), await join(api)
    job_id = await api.submit()
    await worker.claim_one()
    assert (await api.ask("DELETE", f"/workers/{worker.id}")).status_code == 204
    assert [one["id"] for one in await other.claim()] == [job_id]
    states = {node["id"]: node["state"] for node in (await api.get("/nodes")).json()["items"]}
    assert states == {worker.id: "left", other.id: "alive"}
    refused(await api.post(f"/workers/{worker.id}/claim", {}), 404, "worker_not_found")


async def test_node_that_is_not_a_remote_worker_is_not_found(api: Api) -> None:
    node = await api.app.store.join(NodeDraft("python", ("worker",), "1"), 60 * SECOND)
    for worker in (node, 999):
        refused(await api.post(f"/workers/{worker}/claim", {}), 404, "worker_not_found")


# -- output
async def test_output_of_a_remote_worker_is_kept_in_order(api: Api) -> None:
    worker = await join(api)
    job_id = await api.submit()
    got = await worker.claim_one()
    lines = [{"text": "begins"}, {"text": "Bearer abcdefgh12345678", "stream": "stderr", "level": "warning"}]
    assert await worker.report("output", {**got, "lines": lines}) == []
    api.app.remote_work._nodes.clear()  # another process takes the next request
    assert await worker.report("output", {**got, "lines": [{"text": "ends"}]}) == []
    assert await worker.report("complete", got) == []
    assert await worker.report("output", {**got, "lines": [{"text": "too late"}]}) == [job_id]
    output = (await api.get(f"/jobs/{job_id}/output")).json()
    assert [(line["number"], line["stream"], line["level"], line["text"]) for line in output["lines"]] == [
        (1, "log", "info", "begins"),
        (2, "stderr", "warning", "Bearer ***"),
        (3, "log", "info", "ends"),
    ]
    assert output["ended"]


async def test_wrong_output_is_refused(api: Api) -> None:
    worker = await join(api)
    body = {"jobs": [{"id": MISSING, "attempt": 1, "lines": [{"text": "a", "stream": "tape"}]}]}
    refused(
        await api.post(f"/workers/{worker.id}/output", body), 422, "input_invalid", "jobs[0].lines[0].stream"
    )
