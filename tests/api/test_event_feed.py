"""Events are only written while a process listens, and every listener gets those that follow."""

from __future__ import annotations

import asyncio

import pytest

import duetime as dt
from duetime.app import event_feed
from duetime.app.event_feed import FeedEvent, Subscription
from duetime.observers import event_log
from duetime.store import EventPage, Record
from duetime.testing.conformance.drafts import last_event
from tests.api.event_listeners import ServedApp, until, worker


async def test_events_are_not_written_without_a_listener(served: ServedApp) -> None:
    async with served.app.running():
        await (await served.app.submit("greet")).wait("60s")
        await served.app.pause_queue("mail")
    await served.app.watch().event_log.close()  # writes pending events
    assert await last_event(served.app.store) == 0


async def test_first_listener_gets_a_reset_for_earlier_events(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes learn of the first listener with a delay; events in between are not written, and a reset says
    so."""
    await served.app.pause_queue("mail")
    async with served.listening() as listener:
        assert (await listener.next()).kind == "reset"


async def passed(app: dt.App, lapse: int) -> None:
    """Wait until the clock of the store has gone on by so many microseconds."""
    end = await app.store.time() + lapse

    async def over() -> bool:
        return await app.store.time() > end

    await until(over)


def listen_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions of three seconds instead of a minute, checked early because the machine may be busy."""
    monkeypatch.setattr(event_feed, "RECORD_TTL", 3_000_000)
    monkeypatch.setattr(event_feed, "RENEW_INTERVAL", 100_000)
    monkeypatch.setattr(event_feed, "POLL_INTERVAL", 50_000)
    monkeypatch.setattr(event_log, "CHECK_INTERVAL", 100_000)
    monkeypatch.setattr(event_log, "RENEWAL_MARGIN", 2_700_000)


async def test_events_are_written_while_another_process_listens(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes still listen."""
    listen_shortly(monkeypatch)
    other = worker(served.app.store)
    await other.open()
    other.watch()
    events = other.events(["queue"])
    coming = asyncio.ensure_future(anext(events))
    await until(lambda: other.event_feed.size == 1)
    async with served.listening():
        pass
    await passed(served.app, event_feed.RECORD_TTL)  # the record has been renewed, or would have expired
    await served.app.pause_queue("mail")
    assert (await coming).kind == "queue"
    await events.aclose()
    await other.close()


async def test_listener_of_a_quiet_fleet_is_not_forgotten(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next event is sent, and not a reset."""
    listen_shortly(monkeypatch)
    works = worker(served.app.store)
    async with served.listening() as listener:
        await works.open()
        await until(lambda: works.watch().event_log.listened)
        async with works.running():
            await listener.until("node", "joined")
            await passed(works, event_feed.RECORD_TTL)
            await works.pause_queue("mail")
            assert (await listener.next()).kind == "queue"
        await works.close()


async def test_check_for_listeners_is_repeated_after_a_store_failure(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen_shortly(monkeypatch)
    monkeypatch.setattr(event_log, "RETRY_INTERVAL", 20_000)
    works, failures = worker(served.app.store), 0
    await works.open()
    async with served.listening() as listener:
        await until(lambda: works.watch().event_log.listened)
        store = works.watch().event_log._store
        read = store.get_record

        async def away(kind: str, tenant: str, key: str) -> Record | None:
            nonlocal failures
            failures += 1
            if failures < 4:
                raise dt.errors.StoreUnavailable("away")
            return await read(kind, tenant, key)

        monkeypatch.setattr(store, "get_record", away)
        await until(lambda: failures >= 4)
        await passed(works, event_feed.RECORD_TTL)
        await works.pause_queue("mail")
        assert (await listener.next()).kind == "queue"
    await works.close()


async def test_empty_claims_cause_no_reset(served: ServedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "GAP_WINDOW", 1_500_000)
    works = worker(served.app.store)
    async with works.running():
        await passed(works, event_log.GAP_WINDOW + 500_000)
        async with served.listening() as listener:
            await until(lambda: works.watch().event_log.listened)
            await works.pause_queue("mail")
            assert (await listener.next()).kind == "queue"


async def test_events_stop_after_the_last_listener_left(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "RECORD_TTL", 300_000)
    async with served.listening():
        pass
    await until(lambda: served.app.event_feed.size == 0)

    async def expired() -> bool:
        return await served.app.store.get_record(*event_log.SUBSCRIBERS) is None

    await until(expired)
    before = await last_event(served.app.store)
    await served.app.pause_queue("mail")
    async with served.app.running():
        await (await served.app.submit("greet")).wait("60s")
    await served.app.watch().event_log.close()
    assert await last_event(served.app.store) == before


def test_full_subscription_is_replaced_by_a_reset() -> None:
    left: list[Subscription] = []
    subscription = Subscription("t", frozenset({"job"}), left.append)
    for number in range(event_feed.MAX_WAITING):
        subscription.offer(FeedEvent(number, "job", {}, "t"))
        subscription.offer(FeedEvent(number, "node", {}))
    assert not subscription.over
    subscription.offer(FeedEvent(5_000, "job", {}, "t"))
    subscription.offer(FeedEvent(5_001, "job", {}, "t"))
    assert subscription.over
    assert (subscription.take(), subscription.take()) == (
        FeedEvent(5_000, "reset", {"action": "reset"}),
        None,
    )


async def test_listener_continues_after_a_store_failure(
    served: ServedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "AFTER_FAILURE", 10_000)
    store = served.app.store
    read, failures = store.list_events, 0

    async def away(after: int, limit: int) -> EventPage:
        nonlocal failures
        failures += 1
        if failures < 4:
            raise dt.errors.StoreUnavailable("away")
        return await read(after, limit)

    async with served.listening() as listener:
        monkeypatch.setattr(store, "list_events", away)
        await served.app.pause_queue("mail")
        assert (await listener.next()).kind == "queue"
        assert failures >= 4


async def test_app_listens_without_a_service() -> None:
    app = worker("memory://")
    await app.open()
    app.watch()
    events = app.events(["queue"])
    coming = asyncio.ensure_future(anext(events))
    await until(lambda: app.event_feed.size == 1)
    await app.pause_queue("mail")
    assert (await coming).data["action"] == "paused"
    await events.aclose()
    assert app.event_feed.size == 0
    await app.close()
