"""GET /broker, and the brokers of nodes: what the API says about a broker that answers, that is down, and that
never answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.app import broker as reader
from duetime.config import Settings
from duetime.engine.fetch import broker as link
from duetime.model.instant import SECOND
from duetime.queue import Message, Ticket
from duetime.queues.memory import MemoryBroker, MemoryQueue
from tests.api.conftest import RING, Api, client_of, refused
from tests.api.keyed_api import KeyedApi, keyed_api

__all__ = ["keyed_api"]

NO_BROKER = "the broker does not answer: workers claim jobs from the store until it does"


class CountingQueue(MemoryQueue):
    """A connection that counts its calls; `silent`: the broker accepts connections and never answers."""

    def __init__(self, broker: MemoryBroker, calls: Counter[str], silent: bool = False) -> None:
        super().__init__(broker)
        self._calls = calls
        self._silent = silent

    async def open(self) -> None:
        self._calls["open"] += 1
        if self._silent:
            await asyncio.Event().wait()
        await super().open()

    async def close(self) -> None:
        self._calls["close"] += 1
        await super().close()

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        self._calls["depth"] += 1
        return await super().depth(queues)


@asynccontextmanager
async def api_with(broker: MemoryBroker, calls: Counter[str], silent: bool = False) -> AsyncIterator[Api]:
    app = dt.App("memory://", queue=lambda: CountingQueue(broker, calls, silent))
    await app.open()
    async with client_of(build(app, Settings(), ring=RING)) as client:
        yield Api(app, client)
    await app.close()


def put(broker: MemoryBroker, queue: str, priority: int, jobs: list[dt.JobHandle]) -> None:
    broker.put(Message(queue, priority, tuple(Ticket(job.id, 0) for job in jobs)))


async def test_process_without_a_broker_says_so(api: Api) -> None:
    answer = await api.get("/broker")
    assert answer.json() == {"address": None, "up": False, "remark": None, "depth": []}


async def test_depth_is_shown_by_queue_and_priority_and_asked_once_for_many_readers() -> None:
    broker, calls = MemoryBroker(), Counter[str]()
    async with api_with(broker, calls) as api:
        jobs = await api.app.submit_many(
            dt.NewJob("work", queue=name) for name in ("mail", "billing", "idle")
        )
        put(broker, "mail", 9, jobs[:1])
        put(broker, "mail", 2, jobs[:1])
        put(broker, "mail", 2, jobs[:1])
        put(broker, "billing", 5, jobs[1:2])
        answers = await asyncio.gather(*(api.get("/broker") for _ in range(10)))
        assert calls == {"open": 1, "depth": 1}
        [found] = {answer.text: answer.json() for answer in answers}.values()
        assert (found["up"], found["remark"]) == (True, None)
        assert found["depth"] == [
            {"queue": "billing", "priority": 6, "messages": 1},
            {"queue": "mail", "priority": 9, "messages": 1},
            {"queue": "mail", "priority": 3, "messages": 2},
        ]
    assert calls["close"] == 1, "the connection ends with the app"


async def test_broker_that_is_down_gives_a_remark_and_is_found_again() -> None:
    broker, calls = MemoryBroker(), Counter[str]()
    broker.go_down()
    async with api_with(broker, calls) as api:
        answer = await api.get("/broker")
        assert (answer.status_code, answer.json()["up"], answer.json()["remark"]) == (200, False, NO_BROKER)
        assert answer.json()["address"]
        broker.come_back()
        assert (await api.get("/broker")).json()["up"], "a failure is not kept"


async def test_silent_broker_does_not_delay_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CALL_TIMEOUT", 3_600 * SECOND)
    monkeypatch.setattr(reader, "ANSWER_TIMEOUT", 0.01)
    calls = Counter[str]()
    async with api_with(MemoryBroker(), calls, silent=True) as api:
        async with asyncio.timeout(60):
            answers = [(await api.get("/broker")).json() for _ in range(3)]
        assert [(one["up"], one["remark"]) for one in answers] == [(False, NO_BROKER)] * 3
        assert calls["open"] == 1, "readers wait for the same attempt to connect"


async def test_nodes_show_their_broker() -> None:
    broker, calls = MemoryBroker(), Counter[str]()
    async with api_with(broker, calls) as api, api.app.running(name="n1", roles=["dispatcher", "worker"]):
        async with asyncio.timeout(60):
            while (await node_of(api))["broker"] is None:  # published by a loop of the node
                await asyncio.sleep(0.01)
        node = await node_of(api)
        assert (node["roles"], node["broker"]) == (["dispatcher", "worker"], "a queue of the program")


async def node_of(api: Api) -> dict[str, object]:
    [node] = (await api.get("/nodes")).json()["items"]
    return dict(node)


async def test_other_tenants_do_not_see_the_broker(keyed_api: KeyedApi) -> None:
    keyed_api.app.use_queue(lambda: MemoryQueue(MemoryBroker()))
    own, other = await keyed_api.key("read"), await keyed_api.key("read", tenant="other")
    refused(await keyed_api.get("/broker", authorization=other), 403, "tenant_not_allowed")
    assert (await keyed_api.get("/broker", authorization=own)).json()["up"]
    async with keyed_api.app.running(name="n1"):
        async with asyncio.timeout(60):
            while not (await nodes(keyed_api, own))[0]["broker"]:
                await asyncio.sleep(0.01)
        assert [node["broker"] for node in await nodes(keyed_api, other)] == [None]


async def nodes(api: KeyedApi, key: str) -> list[dict[str, object]]:
    return list((await api.get("/nodes", authorization=key)).json()["items"])
