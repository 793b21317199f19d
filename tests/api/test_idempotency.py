"""`Idempotency-Key` when something goes wrong: two at once, a process that dies in the middle, a store that
does not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.responses import Response

import duetime as dt
from duetime.api.idempotency import TAKEOVER_TIMEOUT
from duetime.api.problems import ApiProblem
from duetime.api.state import ServiceState
from duetime.app.services import Services
from duetime.errors import StoreUnavailable
from duetime.model.ids import RepeatedIds
from duetime.store import Store
from tests.api.conftest import TASK, Api, refused

JOB: dict[str, Any] = {"target": TASK, "delay": "1h"}
SCHEDULE = {"name": "nightly", "when": {"every": "1h"}, "target": TASK}


class Lost(BaseException):
    """The process is gone: nothing after this point happens."""


def state_of(api: Api) -> ServiceState:
    # The transport in use has one.
    state: ServiceState = api.client._transport.app.state.service  # type: ignore[attr-defined]
    return state


async def jobs(api: Api) -> list[str]:
    return [item["id"] for item in (await api.get("/jobs")).json()["items"]]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duetime.api.idempotency.TAKEOVER_TIMEOUT", -1)


async def test_a_refused_request_leaves_its_key_free(api: Api) -> None:
    refused(await api.post("/jobs", {**JOB, "queue": "@x"}, idempotency_key="two"), 422, "input_invalid")
    assert (await api.post("/jobs", JOB, idempotency_key="two")).status_code == 201


async def test_duplicates_at_the_same_time_do_the_work_once(api: Api) -> None:
    answers = await asyncio.gather(*(api.post("/jobs", JOB, idempotency_key="three") for _ in range(10)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len((await api.get("/jobs")).json()["items"]) == 1


async def test_duplicate_request_does_not_wait_without_limit(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.api.idempotency.MAX_POLLS", 2)
    memory = state_of(api).idempotency
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Services) -> Response:
        entered.set()
        await leave.wait()
        return Response(b"{}", 201)

    first = asyncio.create_task(memory.once(api.app, "four", b"r", slow))
    await entered.wait()
    with pytest.raises(ApiProblem) as second:
        await memory.once(api.app, "four", b"r", slow)
    assert (second.value.status, second.value.code) == (409, "idempotency_in_progress")
    leave.set()
    assert (await first).status_code == 201
    assert TAKEOVER_TIMEOUT > 0


async def test_a_late_failure_keeps_the_answer_of_the_request_that_took_over(
    api: Api, impatient: None
) -> None:
    memory = state_of(api).idempotency
    entered, leave = asyncio.Event(), asyncio.Event()

    async def late(_: Services) -> Response:
        entered.set()
        await leave.wait()
        raise ApiProblem(409, "job_finished", "the other request has retried it")

    async def done(_: Services) -> Response:
        return Response(b"{}", 201)

    first = asyncio.create_task(memory.once(api.app, "five", b"r", late))
    await entered.wait()
    assert (await memory.once(api.app, "five", b"r", done)).status_code == 201
    leave.set()
    with pytest.raises(ApiProblem):
        await first
    again = await memory.once(api.app, "five", b"r", done)
    assert again.headers["idempotency-replayed"] == "true"


async def _dead(api: Api) -> str:
    async with api.app.running():
        job = await api.app.submit("fails", retry=dt.Retry(max_attempts=1))
        await job.wait(timeout="60s")
    return str(job.id)


@pytest.mark.parametrize("what", ["job", "batch", "trigger", "retry"])
async def test_request_of_a_dead_process_is_done_once(
    api: Api, what: str, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    """The jobs are stored, the answer is not: a repeated request gets the same jobs, also when they have
    finished."""
    if what == "retry":
        api.app.task("fails")(_fail)
    dead = await _dead(api) if what == "retry" else ""
    if what == "trigger":
        await api.post("/schedules", SCHEDULE)
    path, body = {
        "job": ("/jobs", JOB),
        "batch": ("/jobs/batch", {"jobs": [JOB] * 30}),
        "trigger": ("/schedules/nightly/trigger", None),
        "retry": (f"/jobs/{dead}/retry", None),
    }[what]
    store = state_of(api).idempotency.store
    put = store.put_record

    async def die(
        kind: str,
        tenant: str,
        key: str,
        value: bytes,
        expect: int | None = None,
        expires_at: int | None = None,
    ) -> int:
        if b"status" in value:
            raise Lost
        return await put(kind, tenant, key, value, expect, expires_at)

    before = await jobs(api)
    monkeypatch.setattr(store, "put_record", die)
    with pytest.raises(Lost):
        await api.post(path, body, idempotency_key="k")
    monkeypatch.setattr(store, "put_record", put)
    stored = await jobs(api)
    assert len(stored) == len(before) + (30 if what == "batch" else 1)
    again = await api.post(path, body, idempotency_key="k")
    assert again.status_code == 201, again.text
    assert "idempotency-replayed" not in again.headers
    assert await jobs(api) == stored
    named = set(again.json()["ids"]) if what == "batch" else {again.json()["id"]}
    assert named == set(stored) - set(before)
    assert (await api.post(path, body, idempotency_key="k")).headers["idempotency-replayed"] == "true"


def _fail() -> None:
    raise ValueError("no")


async def test_repeated_request_does_not_run_a_finished_job_again(
    api: Api, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    ran: list[int] = []
    api.app.task("counted")(lambda: ran.append(1))
    body = {"target": {"type": "task", "name": "counted"}}
    store: Store = state_of(api).idempotency.store
    add = store.add_jobs

    async def lose(*arguments: Any, **options: Any) -> Any:
        await add(*arguments, **options)
        raise StoreUnavailable("the reply was lost")

    monkeypatch.setattr(store, "add_jobs", lose)
    refused(await api.post("/jobs", body, idempotency_key="k"), 503, "store_unavailable")
    monkeypatch.setattr(store, "add_jobs", add)
    [job_id] = await jobs(api)
    async with api.app.running():
        await (await api.app.get_job(job_id)).wait(timeout="60s")
    assert (await api.post("/jobs", body, idempotency_key="k")).json()["id"] == job_id
    assert (await jobs(api), ran) == ([job_id], [1])


def test_repeated_ids_are_deterministic() -> None:
    one, other, stranger = RepeatedIds(b"seed"), RepeatedIds(b"seed"), RepeatedIds(b"other seed")
    singly = [one.new(5_000_000) for _ in range(50)]
    assert singly == other.new_many([5_000_000] * 20) + other.new_many([5_000_000] * 30)
    assert len(set(singly)) == 50
    assert not set(singly) & {stranger.new(5_000_000) for _ in range(50)}
