"""GET /events: server-sent events, followed over real connections."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import duetime as dt
from duetime.api import server, streams
from duetime.api.auth import Asked, Caller, Scope
from duetime.api.problems import Refused
from duetime.observers import journal
from duetime.observers.entries import Entry
from tests.api.conftest import Api, refused
from tests.api.listeners import PATIENCE, Place, service, until, worker


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_what_one_process_does_is_seen_by_listeners_of_another(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path / 'd.db'}" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    works = worker(url)
    await works.migrate()
    async with service(dt.App(url)) as place, works.running(name="w1"), place.listening() as listener:
        await until(lambda: works.watch().journal.listened)
        await works.schedule("hourly", "greet", dt.Every("1h"))
        assert (await listener.until("schedule", "created")).data["name"] == "hourly"
        await works.edit_schedule("hourly", {"priority": 8})
        assert (await listener.until("schedule", "replaced")).data["name"] == "hourly"
        job = await works.submit("greet")
        states = {"submitted": "pending", "started": "running", "succeeded": "succeeded"}
        for told in await listener.all_of(job, states):
            assert (told.data["state"], told.data["queue"], told.data["name"]) == (states[told.data["action"]], "default", "greet")
            assert told.data["at"].endswith("Z")
        await listener.all_of(await works.submit("fail"), ("submitted", "started", "retrying", "started", "dead"))
        await works.pause_queue("mail")
        assert (await listener.until("queue", "paused")).data["id"] == "mail"
        await works.trigger("hourly")
        assert (await listener.until("job", "succeeded")).data["schedule"] == "hourly"
        waiting = await works.submit("greet", delay="1h")
        await waiting.cancel()
        assert (await listener.until("job", "cancelled")).data["id"] == str(waiting.id)


async def test_a_node_that_leaves_is_told(place: Place) -> None:
    async with place.listening("?types=node") as listener:
        async with place.app.running():
            joined = await listener.until("node", "joined")
        assert (await listener.until("node", "left")).data["id"] == joined.data["id"]


async def test_a_listener_goes_on_where_it_was(place: Place) -> None:
    async with place.app.running():
        async with place.listening() as listener:
            await place.app.submit("greet")
            seen = await listener.until("job", "started")
        job = await place.app.submit("greet")
        await job.wait("60s")
        async with place.listening(last_event_id=str(seen.id)) as listener:
            told = [await listener.next() for _ in range(4)]
            assert [one.data["action"] for one in told] == ["succeeded", "submitted", "started", "succeeded"]
            assert [one.id for one in told] == list(range(seen.id + 1, seen.id + 5))
            last = await place.app.submit("greet")
            assert (await listener.until("job", "submitted")).data["id"] == str(last.id)


@pytest.mark.parametrize("last_seen", ["0", "999999999"])
async def test_where_the_log_does_not_reach_the_listener_begins_anew(place: Place, last_seen: str) -> None:
    """Before the first listener nobody wrote, and what is not there yet cannot have been seen."""
    async with place.listening(last_event_id=last_seen) as listener:
        reset = await listener.next()
        assert (reset.kind, reset.data["action"]) == ("reset", "reset")
        await place.app.pause_queue("mail")
        assert (await listener.next()).id > reset.id


async def test_what_is_no_longer_kept_is_a_reset(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.listening() as listener:
        await place.app.pause_queue("mail")
        seen = await listener.next()
        await place.app.resume_queue("mail")
        await listener.next()
        await place.app.pause_queue("mail")
        last = await listener.next()
    monkeypatch.setattr("duetime.stores.memory.events.EVENTS_KEPT_FOR", 0)
    await place.app.store.prune(0)
    async with place.listening(last_event_id=str(seen.id)) as listener:
        assert (await listener.next())[:2] == (last.id, "reset")
    async with place.listening(last_event_id=str(last.id)) as listener:
        await place.app.resume_queue("mail")
        assert (await listener.next()).kind == "queue"


async def test_too_many_at_once_are_only_counted(place: Place) -> None:
    async with place.listening("?types=job") as listener:
        await place.app.submit_many([dt.NewJob("greet") for _ in range(500)])
        told = [await listener.next() for _ in range(journal.MOST_A_MOMENT + 1)]
        assert {one.kind for one in told[:-1]} == {"job"}
        assert (told[-1].kind, told[-1].data["count"]) == ("many", 500 - journal.MOST_A_MOMENT)


class Keys:
    """The tenant stands in the header; a key that was revoked is refused."""

    local = False

    def __init__(self) -> None:
        self.revoked = False

    async def admit(self, asked: Asked) -> Caller:
        tenant = asked.headers.get("authorization", "")
        if not tenant or self.revoked:
            raise Refused(401, "key_missing", "give a key")
        return Caller(tenant, frozenset({Scope.READ}), key_prefix=tenant)


async def test_a_tenant_hears_of_its_own_and_of_the_fleet() -> None:
    """S10, I16."""
    app = worker("memory://")
    async with service(app, gate=Keys()) as place, AsyncExitStack() as stack:
        mine = await stack.enter_async_context(place.listening(authorization="mine"))
        theirs = await stack.enter_async_context(place.listening(authorization="theirs"))
        jobs = {
            tenant: await app.for_tenant(tenant).submit_many([dt.NewJob("greet")] * count)
            for tenant, count in (("mine", 1), ("theirs", 90))
        }
        await app.pause_queue("mail")
        heard = []
        while (told := await mine.next()).kind != "queue":
            heard.append(told)
        assert [one.data["id"] for one in heard] == [str(jobs["mine"][0].id)]
        assert (await theirs.next()).data["id"] == str(jobs["theirs"][0].id)
        seen = heard[0].id
        again = await stack.enter_async_context(place.listening(authorization="mine", last_event_id=str(seen)))
        assert (await again.next()).kind == "queue"
        refused_stream = await stack.enter_async_context(place.listening())
        refused(refused_stream.answer, 401, "key_missing")


async def test_a_key_that_is_revoked_hears_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CHECK_KEY", 0.02)
    keys = Keys()
    async with service(worker("memory://"), gate=keys) as place, place.listening(authorization="mine") as listener:
        keys.revoked = True
        assert await listener.rest() == []
        await until(lambda: place.app.audience.size == 0)


async def test_streams_of_one_key_are_limited_and_places_are_given_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """S56."""
    monkeypatch.setattr(streams, "MOST_OF_ONE", 2)
    async with place.listening(), place.listening(), place.listening() as third:
        refused(third.answer, 429, "streams_exhausted")
        assert third.answer.headers["retry-after"] == "5"
    await until(lambda: place.app.audience.size == 0)
    async with place.listening() as again:
        assert again.answer.status_code == 200


async def test_the_end_of_the_service_ends_streams_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after the time that requests under way have."""
    monkeypatch.setattr(server, "PATIENCE", 3_600)
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(PATIENCE), service(worker("memory://")) as place:
            listeners = [await stack.enter_async_context(place.listening()) for _ in range(3)]
        for listener in listeners:
            assert await listener.rest() == []


async def test_a_comment_comes_while_nothing_happens(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.02)
    async with place.listening() as listener:
        lines = [await anext(listener._lines) for _ in range(6)]
    assert lines == ["retry: 2000", "", ": still here", "", ": still here", ""]
    assert listener.answer.headers["content-type"] == "text/event-stream; charset=utf-8"


async def test_who_takes_nothing_is_dropped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SEND_WITHIN", 0.2)
    host, port = place.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as lazy:
        lazy.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        await until(lambda: place.app.audience.size == 1)
        event = Entry("job", None, {"action": "x" * 4_000, "id": "1"}).to_bytes()

        async def flooded() -> bool:
            await place.app.store.add_events([event] * 500)
            return place.app.audience.size == 0

        await until(flooded)
    async with place.listening() as listener:
        await place.app.pause_queue("mail")
        assert (await listener.next()).kind == "queue"


@pytest.mark.parametrize(("query", "field"), [("?types=job,people", "types"), ("?types=", "types"), ("?type=job", "type")])
async def test_types_there_are_none_of_are_refused(api: Api, query: str, field: str) -> None:
    refused(await api.get(f"/events{query}"), 422, "input_invalid", field)


@pytest.mark.parametrize("value", ["x", "-1", "1.5", str(2**63)])
async def test_an_id_that_is_no_number_is_refused(api: Api, value: str) -> None:
    refused(await api.get("/events", last_event_id=value), 422, "input_invalid", "Last-Event-ID")
