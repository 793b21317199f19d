"""HTTP targets as a node runs them: from the store, through the worker, back to the store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.engine.submit.submission import JobRequest
from duetime.invokers.http.echo import EchoAgent
from duetime.invokers.http.handler import HttpHandler
from duetime.model.codec import decode
from duetime.model.instant import Micros
from duetime.model.job import Job, State
from duetime.model.target import HTTP, HttpTarget
from duetime.model.url import Egress
from duetime.model.views import JobView
from tests.app.waiting import eventually
from tests.http.scene import LOCAL, RING, Names


async def run(target: dict[str, Any], app: dt.App | None = None, **options: Any) -> tuple[Job, EchoAgent]:
    """One job from submission to its end; a path is called at the agent."""
    app = app or dt.App("memory://")
    app.use_target(HTTP, lambda now: HttpHandler(now, LOCAL, RING))
    async with EchoAgent() as agent, app.running():
        where = agent.url + target["url"] if target["url"].startswith("/") else target["url"]
        spec = HttpTarget.from_json({**target, "url": where}).to_spec()
        made = await app.jobs.submit_request(JobRequest(dt.NewJob(HTTP, payload={"a": 1}, **options), spec))
        await (await app.get_job(made.id)).wait(timeout="60s")
        return await app.read_job(made.id), agent


async def test_call_succeeds_and_its_response_is_kept() -> None:
    done, agent = await run({"url": "/run"})
    [call] = agent.calls
    assert (done.state, decode(done.result or b"")["status"]) == (State.SUCCEEDED, 200)
    assert (call.body, call.header("Idempotency-Key"), call.header("Duetime-Attempt")) == (
        b'{"a":1}',
        str(done.id),
        "1",
    )


async def test_tried_again_under_the_same_key_then_dead_with_the_answer() -> None:
    done, agent = await run({"url": "/status/503"}, retry=dt.Retry(max_attempts=3, first_delay="1ms"))
    assert (done.state, done.failures, decode(done.result or b"")["status"]) == (State.DEAD, 3, 503)
    assert [call.header("Duetime-Attempt") for call in agent.calls] == ["1", "2", "3"]
    assert len({call.header("Idempotency-Key") for call in agent.calls}) == 1


async def test_response_of_every_attempt_is_kept(tmp_path: Path) -> None:
    app = dt.App(f"sqlite:///{tmp_path}/duetime.db")
    done, _ = await run({"url": "/status/503"}, app, retry=dt.Retry(max_attempts=3, first_delay="1ms"))
    await app.open()
    view = JobView.of(done, await app.store.list_attempts(done.id))
    await app.close()
    assert [attempt.result["status"] for attempt in view.attempts] == [503, 503, 503]
    assert all(attempt.result["headers"]["Content-Type"] for attempt in view.attempts)
    assert all('"path":"/status/503"' in attempt.result["body"] for attempt in view.attempts)


async def test_give_up_makes_a_dead_letter() -> None:
    done, agent = await run({"url": "/status/404"})
    assert (done.state, done.attempt, len(agent.calls)) == (State.DEAD, 1, 1)
    assert decode(done.result or b"")["status"] == 404


async def test_job_that_one_node_may_not_run_waits_for_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its name leads to a private address: only an attempt can tell."""
    store, count = f"sqlite:///{tmp_path}/duetime.db", 5
    poor, rich = dt.App(store), dt.App(store)
    for app, egress in ((poor, Egress()), (rich, LOCAL)):
        app.use_target(HTTP, partial(_resolving_to_this_machine, egress))
    async with EchoAgent() as agent:
        spec = HttpTarget.from_json({"url": agent.url.replace("127.0.0.1", "agent.example")}).to_spec()
        async with poor.running(name="poor"):
            request = JobRequest(dt.NewJob(HTTP, delivery="at_most_once"), spec)
            jobs = [await poor.jobs.submit_request(request) for _ in range(count)]

            async def tried() -> bool:
                return all([await poor.read_attempts(job.id) for job in jobs])

            await eventually(tried)
            waiting, reason = await poor.read_job(jobs[0].id), await poor.why.job(jobs[0].id)
            assert (waiting.state, waiting.failures, len(agent.calls)) == (State.PENDING, 0, 0)
            assert (waiting.error or "").startswith("cannot run on this node: target not allowed")
            assert reason.code == "permission_missing"
            assert "node poor (1) did not run it" in reason.why
            assert "no other live worker is known to" in reason.why
            assert "it is left to other nodes" in caplog.text
            async with rich.running(name="rich"):
                for job in jobs:
                    await (await poor.get_job(job.id)).wait(timeout="60s")
                    done = await poor.read_job(job.id)
                    assert (done.state, done.failures) == (State.SUCCEEDED, 0)
        assert len(agent.calls) == count


def _resolving_to_this_machine(egress: Egress, now: Callable[[], Micros]) -> HttpHandler:
    return HttpHandler(now, egress, RING, resolver=Names(agent_example=[["127.0.0.1"]]))
