"""GET /events: server-sent events, followed over real connections."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import duetime as dt
from duetime.api import server, streams
from duetime.api.caller import AuthRequest, Caller
from duetime.api.problems import ApiProblem
from duetime.model.api_key import Scope
from duetime.observers import event_log
from duetime.observers.event_log import LogEntry
from tests.api.conftest import Api, refused
from tests.api.event_listeners import WAIT_TIMEOUT, ServedApp, service, until, worker


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
async def test_listeners_receive_events_of_other_processes(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path / 'd.db'}" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    works = worker(url)
    await works.migrate()
    async with service(dt.App(url)) as served, works.running(name="w1"), served.listening() as listener:
        await until(lambda: works.watch().event_log.listened)
        await works.schedule("hourly", "greet", dt.Every("1h"))
        assert (await listener.until("schedule", "created")).data["name"] == "hourly"
        await works.schedules.edit("hourly", {"priority": 8})
        assert (await listener.until("schedule", "replaced")).data["name"] == "hourly"
        job = await works.submit("greet")
        states = {"submitted": "pending", "started": "running", "succeeded": "succeeded"}
        for told in await listener.all_of(job, states):
            assert (told.data["state"], told.data["queue"], told.data["name"]) == (
                states[told.data["action"]],
                "default",
                "greet",
            )
            assert told.data["at"].endswith("Z")
        await listener.all_of(
            await works.submit("fail"), ("submitted", "started", "retrying", "started", "dead")
        )
        await works.pause_queue("mail")
        assert (await listener.until("queue", "paused")).data["id"] == "mail"
        await works.trigger("hourly")
        assert (await listener.until("job", "succeeded")).data["schedule"] == "hourly"
        waiting = await works.submit("greet", delay="1h")
        await waiting.cancel()
        assert (await listener.until("job", "cancelled")).data["id"] == str(waiting.id)


async def test_leaving_node_is_an_event(served: ServedApp) -> None:
    async with served.listening("?types=node") as listener:
        async with served.app.running():
            joined = await listener.until("node", "joined")
        assert (await listener.until("node", "left")).data["id"] == joined.data["id"]


async def test_listener_continues_after_its_last_event(served: ServedApp) -> None:
    async with served.app.running():
        async with served.listening() as listener:
            await served.app.submit("greet")
            seen = await listener.until("job", "started")
        job = await served.app.submit("greet")
        await job.wait("60s")
        async with served.listening(last_event_id=str(seen.id)) as listener:
            told = [await listener.next() for _ in range(4)]
            assert [one.data["action"] for one in told] == ["succeeded", "submitted", "started", "succeeded"]
            assert [one.id for one in told] == list(range(seen.id + 1, seen.id + 5))
            last = await served.app.submit("greet")
            assert (await listener.until("job", "submitted")).data["id"] == str(last.id)


@pytest.mark.parametrize("last_seen", ["0", "999999999"])
async def test_listener_with_an_unknown_position_gets_a_reset(served: ServedApp, last_seen: str) -> None:
    """Events before the first listener were not written, and a position beyond the log is unknown."""
    async with served.listening(last_event_id=last_seen) as listener:
        reset = await listener.next()
        assert (reset.kind, reset.data["action"]) == ("reset", "reset")
        await served.app.pause_queue("mail")
        assert (await listener.next()).id > reset.id


async def test_pruned_events_are_a_reset(served: ServedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served.listening() as listener:
        await served.app.pause_queue("mail")
        seen = await listener.next()
        await served.app.resume_queue("mail")
        await listener.next()
        await served.app.pause_queue("mail")
        last = await listener.next()
    monkeypatch.setattr("duetime.stores.memory.event_log.EVENTS_KEPT_FOR", 0)
    await served.app.store.prune(0)
    async with served.listening(last_event_id=str(seen.id)) as listener:
        assert (await listener.next())[:2] == (last.id, "reset")
    async with served.listening(last_event_id=str(last.id)) as listener:
        await served.app.resume_queue("mail")
        assert (await listener.next()).kind == "queue"


async def test_burst_of_events_is_counted(served: ServedApp) -> None:
    async with served.listening("?types=job") as listener:
        await served.app.submit_many([dt.NewJob("greet") for _ in range(500)])
        told = [await listener.next() for _ in range(event_log.MAX_JOB_EVENTS + 1)]
        assert {one.kind for one in told[:-1]} == {"job"}
        assert (told[-1].kind, told[-1].data["count"]) == ("many", 500 - event_log.MAX_JOB_EVENTS)


class Keys:
    """The tenant stands in the header; a key that was revoked is refused."""

    local = False

    def __init__(self) -> None:
        self.revoked = False

    async def authenticate(self, request: AuthRequest) -> Caller:
        tenant = request.headers.get("authorization", "")
        if not tenant or self.revoked:
            raise ApiProblem(401, "key_missing", "give a key")
        return Caller(tenant, frozenset({Scope.READ}), key_prefix=tenant)


async def test_tenant_receives_its_own_events_and_those_of_the_fleet() -> None:
    app = worker("memory://")
    async with service(app, authenticator=Keys()) as served, AsyncExitStack() as stack:
        mine = await stack.enter_async_context(served.listening(authorization="mine"))
        theirs = await stack.enter_async_context(served.listening(authorization="theirs"))
        operator = await stack.enter_async_context(served.listening(authorization="default"))
        jobs = {
            tenant: await app.for_tenant(tenant).submit_many([dt.NewJob("greet")] * count)
            for tenant, count in (("mine", 1), ("theirs", 90))
        }
        await app.pause_queue("mail")
        assert (await operator.until("queue", "paused")).data["name"] == "mail"
        last = (await app.for_tenant("mine").submit("greet")).id
        heard = [await mine.next()]
        while heard[-1].data["id"] != str(last):
            heard.append(await mine.next())
        assert [(one.kind, one.data["id"]) for one in heard] == [
            ("job", str(jobs["mine"][0].id)),
            ("job", str(last)),
        ], "queues may be of other tenants"
        assert (await theirs.next()).data["id"] == str(jobs["theirs"][0].id)
        again = await stack.enter_async_context(
            served.listening(authorization="mine", last_event_id=str(heard[0].id))
        )
        assert (await again.next()).data["id"] == str(last)
        refused_stream = await stack.enter_async_context(served.listening())
        refused(refused_stream.answer, 401, "key_missing")


async def test_stream_of_a_revoked_key_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEY_CHECK_INTERVAL", 0.02)
    keys = Keys()
    async with (
        service(worker("memory://"), authenticator=keys) as served,
        served.listening(authorization="mine") as listener,
    ):
        keys.revoked = True
        assert await listener.rest() == []
        await until(lambda: served.app.event_feed.size == 0)


async def test_streams_of_one_key_are_limited_and_released(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.state.streams, "max_per_key", 2)
    async with served.listening(), served.listening(), served.listening() as third:
        refused(third.answer, 429, "streams_exhausted")
        assert third.answer.headers["retry-after"] == "5"
    await until(lambda: served.app.event_feed.size == 0)
    async with served.listening() as again:
        assert again.answer.status_code == 200


async def test_stopping_service_ends_streams_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the time that requests under way have."""
    monkeypatch.setattr(server, "SHUTDOWN_TIMEOUT", 3_600)
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(WAIT_TIMEOUT), service(worker("memory://")) as served:
            listeners = [await stack.enter_async_context(served.listening()) for _ in range(3)]
        for listener in listeners:
            assert await listener.rest() == []


async def test_stream_sends_heartbeats(served: ServedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_INTERVAL", 0.02)
    async with served.listening() as listener:
        lines = [await anext(listener._lines) for _ in range(6)]
    assert lines == ["retry: 2000", "", ": still here", "", ": still here", ""]
    assert listener.answer.headers["content-type"] == "text/event-stream; charset=utf-8"


async def test_slow_listener_is_disconnected(served: ServedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SEND_TIMEOUT", 0.2)
    host, port = served.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as lazy:
        lazy.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        await until(lambda: served.app.event_feed.size == 1)
        event = LogEntry("job", None, {"action": "x" * 4_000, "id": "1"}).to_bytes()

        async def flooded() -> bool:
            await served.app.store.add_events([event] * 500)
            return served.app.event_feed.size == 0

        await until(flooded)
    async with served.listening() as listener:
        await served.app.pause_queue("mail")
        assert (await listener.next()).kind == "queue"


@pytest.mark.parametrize(
    ("query", "field"), [("?types=job,people", "types"), ("?types=", "types"), ("?type=job", "type")]
)
async def test_unknown_event_type_is_refused(api: Api, query: str, field: str) -> None:
    refused(await api.get(f"/events{query}"), 422, "input_invalid", field)


@pytest.mark.parametrize("value", ["x", "-1", "1.5", str(2**63)])
async def test_invalid_last_event_id_is_refused(api: Api, value: str) -> None:
    refused(await api.get("/events", last_event_id=value), 422, "input_invalid", "Last-Event-ID")
