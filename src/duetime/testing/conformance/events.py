"""The log of events: ids that only rise, for any number of writers, and an end that is kept."""

from __future__ import annotations

import asyncio

from duetime.model.hint import EventHint, Hint
from duetime.store import EVENTS_KEPT, Store
from duetime.testing.conformance.drafts import DAY, events_after, last_event
from duetime.testing.conformance.hints import Ear


async def logged(store: Store, *events: bytes) -> list[int]:
    """Append these; answers their ids."""
    before = await last_event(store)
    await store.add_events(events)
    found = await events_after(store, before, 1_000)
    assert [event for _, event in found] == list(events)
    return [number for number, _ in found]


class EventConformance:
    async def test_an_empty_log(self, store: Store) -> None:
        assert await last_event(store) == 0
        assert await events_after(store, 0, 10) == []

    async def test_events_come_back_in_order(self, store: Store) -> None:
        first = await logged(store, b"1", b"\x00\xff", b"3")
        second = await logged(store, b"4")
        assert first + second == sorted({*first, *second})
        assert await last_event(store) == second[0]
        assert await events_after(store, 0, 10) == [
            *zip(first, (b"1", b"\x00\xff", b"3"), strict=True),
            (second[0], b"4"),
        ]

    async def test_events_in_pages(self, store: Store) -> None:
        ids = await logged(store, *(b"%d" % number for number in range(10)))
        seen: list[int] = []
        while page := await events_after(store, seen[-1] if seen else 0, 3):
            assert len(page) <= 3
            seen += [number for number, _ in page]
        assert seen == ids
        assert await events_after(store, ids[-1] + 5, 10) == []

    async def test_nothing_to_log(self, store: Store) -> None:
        await store.add_events([])
        assert await last_event(store) == 0

    async def test_a_large_batch_keeps_its_order(self, store: Store) -> None:
        events = [b"%d" % number for number in range(3_000)]
        await store.add_events(events)
        assert [event for _, event in await events_after(store, 0, 5_000)] == events

    async def test_a_growing_log_is_announced(self, store: Store, second_store: Store) -> None:
        near, far = Ear(), Ear()
        store.subscribe(near)
        (second_store if store.capabilities.hints else store).subscribe(far)

        def tells(hint: Hint) -> bool:
            return isinstance(hint, EventHint) and hint.last > 0

        for ear in (near, far):
            assert await ear.hears(lambda: store.add_events([b"news"]), tells), ear.heard
        last = await last_event(store)
        assert all(
            hint.last <= last for ear in (near, far) for hint in ear.heard if isinstance(hint, EventHint)
        )


class EventOrderConformance:
    async def test_no_id_appears_below_one_that_was_seen(self, store: Store, second_store: Store) -> None:
        """A reader that goes on from the last id it saw misses nothing, however many write at once."""
        writers, batches = [store, second_store, store, second_store], 15
        seen: list[tuple[int, bytes]] = []

        async def write(number: int, handle: Store) -> None:
            for batch in range(batches):
                await handle.add_events([b"%d %d %d" % (number, batch, place) for place in range(3)])

        writing = asyncio.gather(*(write(number, handle) for number, handle in enumerate(writers)))
        over = False
        while not over:
            await asyncio.wait([writing], timeout=0)
            over = writing.done()
            seen += await events_after(second_store, seen[-1][0] if seen else 0, 1_000)
        await writing
        assert len({event for _, event in seen}) == len(seen) == len(writers) * batches * 3
        for number in range(len(writers)):
            own = [event for _, event in seen if event.startswith(b"%d " % number)]
            assert own == [
                b"%d %d %d" % (number, batch, place) for batch in range(batches) for place in range(3)
            ]


class EventPruneConformance:
    async def test_young_events_stay(self, store: Store) -> None:
        [young] = await logged(store, b"young")
        await store.prune(await store.time() + DAY)
        assert await events_after(store, 0, 10) == [(young, b"young")]

    async def test_only_so_many_are_kept(self, store: Store) -> None:
        await logged(store, b"first")
        for _ in range(EVENTS_KEPT // 20_000 + 1):
            await store.add_events([b"x"] * 20_000)
        await store.prune(await store.time())
        last = await last_event(store)
        [(oldest, _)] = await events_after(store, 0, 1)
        assert oldest == last - EVENTS_KEPT + 1
