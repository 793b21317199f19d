"""Whether anybody listens, and what is kept for those who do."""

from __future__ import annotations

import asyncio

import pytest

import duetime as dt
from duetime.app import audience
from duetime.app.audience import Notice, Seat
from duetime.observers import journal
from duetime.store import Record
from tests.api.listeners import Place, until, worker


async def test_while_nobody_listens_nothing_is_written(place: Place) -> None:
    async with place.app.running():
        await (await place.app.submit("greet")).wait("60s")
        await place.app.pause_queue("mail")
    await place.app.watch().journal.close()  # what waits to be written is
    assert await place.app.store.last_event() == 0


async def test_what_happened_right_before_somebody_listened_is_made_known(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first listener's record takes a moment to get round: what a process did meanwhile it could not tell."""
    await place.app.pause_queue("mail")
    async with place.listening() as listener:
        assert (await listener.next()).kind == "reset"


def listen_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """For three seconds instead of a minute, and looking long before their end: this machine may be busy."""
    monkeypatch.setattr(audience, "LISTENING_FOR", 3_000_000)
    monkeypatch.setattr(audience, "RENEW", 100_000)
    monkeypatch.setattr(audience, "LOOK", 50_000)
    monkeypatch.setattr(journal, "LOOK_AGAIN", 100_000)
    monkeypatch.setattr(journal, "BEFORE_THE_END", 2_700_000)


async def test_who_listened_here_and_left_is_not_the_only_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others still listen elsewhere."""
    listen_shortly(monkeypatch)
    other = worker(place.app.store)
    await other.open()
    other.watch()
    events = other.events(["queue"])
    coming = asyncio.ensure_future(anext(events))
    await until(lambda: other.audience.size == 1)
    async with place.listening():
        pass
    await asyncio.sleep(4)
    await place.app.pause_queue("mail")
    assert (await coming).kind == "queue"
    await events.aclose()
    await other.close()


async def test_in_a_fleet_where_nothing_happens_those_who_listen_are_not_forgotten(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens then is told, and not that something was missed."""
    listen_shortly(monkeypatch)
    works = worker(place.app.store)
    async with place.listening() as listener:
        await works.open()
        await until(lambda: works.watch().journal.listened)
        async with works.running():
            await listener.until("node", "joined")
            await asyncio.sleep(4)
            await works.pause_queue("mail")
            assert (await listener.next()).kind == "queue"
        await works.close()


async def test_who_cannot_look_for_a_moment_tries_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    listen_shortly(monkeypatch)
    monkeypatch.setattr(journal, "AFTER_FAILURE", 20_000)
    works, failures = worker(place.app.store), 0
    await works.open()
    async with place.listening() as listener:
        await until(lambda: works.watch().journal.listened)
        store = works.watch().journal._store
        read = store.get_record

        async def away(kind: str, tenant: str, key: str) -> Record | None:
            nonlocal failures
            failures += 1
            if failures < 4:
                raise dt.errors.StoreUnavailable("away")
            return await read(kind, tenant, key)

        monkeypatch.setattr(store, "get_record", away)
        await asyncio.sleep(4)
        await works.pause_queue("mail")
        assert (await listener.next()).kind == "queue"
        assert failures >= 4
    await works.close()


async def test_looks_for_work_that_find_none_are_nothing_to_make_known(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MISSED_WITHIN", 1_500_000)
    works = worker(place.app.store)
    async with works.running():
        await asyncio.sleep(2.5)
        async with place.listening() as listener:
            await until(lambda: works.watch().journal.listened)
            await works.pause_queue("mail")
            assert (await listener.next()).kind == "queue"


async def test_an_audience_that_has_gone_is_forgotten(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audience, "LISTENING_FOR", 300_000)
    async with place.listening():
        pass
    await until(lambda: place.app.audience.size == 0)

    async def expired() -> bool:
        return await place.app.store.get_record(*journal.AUDIENCE) is None

    await until(expired)
    before = await place.app.store.last_event()
    await place.app.pause_queue("mail")
    async with place.app.running():
        await (await place.app.submit("greet")).wait("60s")
    await place.app.watch().journal.close()
    assert await place.app.store.last_event() == before


def test_a_seat_holds_so_many_and_then_begins_anew() -> None:
    left: list[Seat] = []
    seat = Seat("t", frozenset({"job"}), left.append)
    for number in range(audience.MOST_WAITING):
        seat.offer(Notice(number, "job", {}, "t"))
        seat.offer(Notice(number, "node", {}))
    assert not seat.over
    seat.offer(Notice(5_000, "job", {}, "t"))
    seat.offer(Notice(5_001, "job", {}, "t"))
    assert seat.over
    assert (seat.take(), seat.take()) == (Notice(5_000, "reset", {"action": "reset"}), None)


async def test_a_store_that_was_away_is_followed_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audience, "AFTER_FAILURE", 10_000)
    store = place.app.store
    read, failures = store.list_events, 0

    async def away(after: int, limit: int) -> list[tuple[int, bytes]]:
        nonlocal failures
        failures += 1
        if failures < 4:
            raise dt.errors.StoreUnavailable("away")
        return await read(after, limit)

    async with place.listening() as listener:
        monkeypatch.setattr(store, "list_events", away)
        await place.app.pause_queue("mail")
        assert (await listener.next()).kind == "queue"
        assert failures >= 4


async def test_an_app_can_listen_by_itself() -> None:
    app = worker("memory://")
    await app.open()
    app.watch()
    events = app.events(["queue"])
    coming = asyncio.ensure_future(anext(events))
    await until(lambda: app.audience.size == 1)
    await app.pause_queue("mail")
    assert (await coming).data["action"] == "paused"
    await events.aclose()
    assert app.audience.size == 0
    await app.close()
