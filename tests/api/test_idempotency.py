"""`Idempotency-Key` when something goes wrong: two at once, a process that dies in the middle, a store that does not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.responses import Response

import duetime as dt
from duetime.api.edge import Edge
from duetime.api.idempotency import PATIENCE
from duetime.api.problems import Refused
from duetime.app.operations import Operations
from duetime.errors import StoreUnavailable
from duetime.model.ids import RepeatedIds
from duetime.store import Store
from tests.api.conftest import TASK, Api, refused

JOB: dict[str, Any] = {"target": TASK, "delay": "1h"}
SCHEDULE = {"name": "nightly", "when": {"every": "1h"}, "target": TASK}


class Lost(BaseException):
    """The process is gone: nothing after this point happens."""


def edge_of(api: Api) -> Edge:
    edge: Edge = api.client._transport.app.state.edge  # type: ignore[attr-defined]  # the transport in use has one
    return edge


async def jobs(api: Api) -> list[str]:
    return [item["id"] for item in (await api.get("/jobs")).json()["items"]]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duetime.api.idempotency.PATIENCE", -1)


async def test_a_refused_request_leaves_its_key_free(api: Api) -> None:
    refused(await api.post("/jobs", {**JOB, "queue": "@x"}, idempotency_key="two"), 422, "input_invalid")
    assert (await api.post("/jobs", JOB, idempotency_key="two")).status_code == 201


async def test_duplicates_at_the_same_time_do_the_work_once(api: Api) -> None:
    answers = await asyncio.gather(*(api.post("/jobs", JOB, idempotency_key="three") for _ in range(10)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len((await api.get("/jobs")).json()["items"]) == 1


async def test_a_duplicate_does_not_wait_for_ever(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duetime.api.idempotency.LOOKS", 2)
    memory = edge_of(api).memory
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Operations) -> Response:
        entered.set()
        await leave.wait()
        return Response(b"{}", 201)

    first = asyncio.create_task(memory.once(api.app, "four", b"r", slow))
    await entered.wait()
    with pytest.raises(Refused) as second:
        await memory.once(api.app, "four", b"r", slow)
    assert (second.value.status, second.value.code) == (409, "idempotency_in_progress")
    leave.set()
    assert (await first).status_code == 201
    assert PATIENCE > 0


async def _dead(api: Api) -> str:
    async with api.app.running():
        job = await api.app.submit("fails", retry=dt.Retry(max_attempts=1))
        await job.wait(timeout="60s")
    return str(job.id)


@pytest.mark.parametrize("what", ["job", "batch", "trigger", "retry"])
async def test_a_process_that_dies_before_it_can_answer_has_done_it_once(
    api: Api, what: str, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    """The jobs are stored, the answer is not: whoever repeats the request gets the same jobs, also when they have finished meanwhile."""
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
    store = edge_of(api).memory.store
    put = store.put_record

    async def die(kind: str, tenant: str, key: str, value: bytes, expect: int | None = None, expires_at: int | None = None) -> int:
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


async def test_a_job_that_has_finished_meanwhile_does_not_run_again(api: Api, monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    ran: list[int] = []
    api.app.task("counted")(lambda: ran.append(1))
    body = {"target": {"type": "task", "name": "counted"}}
    store: Store = edge_of(api).memory.store
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


def test_repeated_ids_are_the_same_however_they_are_asked_for() -> None:
    one, other, stranger = RepeatedIds(b"seed"), RepeatedIds(b"seed"), RepeatedIds(b"other seed")
    singly = [one.new(5_000_000) for _ in range(50)]
    assert singly == other.new_many([5_000_000] * 20) + other.new_many([5_000_000] * 30)
    assert len(set(singly)) == 50
    assert not set(singly) & {stranger.new(5_000_000) for _ in range(50)}
