"""What was changed on a schedule, by whom: a row for each version, in the same transaction."""

from __future__ import annotations

import asyncio

from duetime.model.schedule import Change, Schedule, ScheduleVersion
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    known,
    pause_schedule,
    put,
    put_schedule,
    remove_schedule,
    resume_schedule,
    schedule,
)
from duetime.testing.conformance.submit import AWKWARD


async def versions(store: Store, name: str = "schedule") -> list[ScheduleVersion]:
    return await store.list_versions(TENANT, name, 100)


async def remove(store: Store, author: str | None = None) -> Schedule:
    gone = await remove_schedule(store, TENANT, "schedule", author)
    assert gone is not None
    return gone


class ScheduleVersionConformance:
    async def test_every_change_leaves_a_row(self, store: Store) -> None:
        made = await put_schedule(store, schedule(payload=b"1"), 1, 0, "ann")
        changed = await put_schedule(store, schedule(payload=b"2", queue="other", priority=9), 2, 1, "bob")
        paused = await pause_schedule(store, TENANT, "schedule", "holidays", "cid")
        resumed = await resume_schedule(store, TENANT, "schedule", 5, "dan")
        before = await store.time()
        gone = await remove(store, "eve")
        assert made is not None
        assert changed is not None
        assert paused is not None
        assert resumed is not None
        removed, *others = await versions(store)
        assert others == [
            ScheduleVersion(4, resumed.updated_at, "dan", Change.RESUMED, False, changed.draft),
            ScheduleVersion(3, paused.updated_at, "cid", Change.PAUSED, True, changed.draft),
            ScheduleVersion(2, changed.updated_at, "bob", Change.REPLACED, False, changed.draft),
            ScheduleVersion(1, made.updated_at, "ann", Change.CREATED, False, made.draft),
        ]
        assert removed == ScheduleVersion(5, removed.at, "eve", Change.REMOVED, False, gone.draft)
        assert before <= removed.at <= await store.time()

    async def test_author_is_optional(self, store: Store) -> None:
        await put(store, schedule(), 1)
        await pause_schedule(store, TENANT, "schedule", None)
        assert [(row.version, row.author) for row in await versions(store)] == [(2, None), (1, None)]

    async def test_a_change_of_a_paused_schedule_says_so(self, store: Store) -> None:
        await put(store, schedule(), 1)
        await pause_schedule(store, TENANT, "schedule", None)
        await put(store, schedule(payload=b"2"), 1)
        await remove(store)
        assert [row.paused for row in await versions(store)] == [True, True, True, False]

    async def test_what_is_refused_leaves_none(self, store: Store) -> None:
        await put(store, schedule(), 1)
        assert await put_schedule(store, schedule(payload=b"2"), 1, 0, "ann") is None
        assert await put_schedule(store, schedule(payload=b"2"), 1, 7, "ann") is None
        assert await put_schedule(store, schedule("new"), 1, 7, "ann") is None
        await resume_schedule(store, TENANT, "schedule", 5, "ann")
        assert [row.version for row in await versions(store)] == [1]
        assert await versions(store, "new") == []

    async def test_versions_in_pages(self, store: Store) -> None:
        for number in range(7):
            await put(store, schedule(payload=b"%d" % number), 1)
        seen: list[int] = []
        while page := await store.list_versions(TENANT, "schedule", 3, seen[-1] if seen else None):
            assert len(page) <= 3
            seen += [row.version for row in page]
        assert seen == [7, 6, 5, 4, 3, 2, 1]

    async def test_versions_belong_to_their_tenant_and_name(self, store: Store) -> None:
        mine, other = await put(store, schedule(), 1), await put(store, schedule("other"), 1)
        theirs = await put(store, schedule(tenant="other"), 1)
        assert [row.draft for row in await versions(store)] == [mine.draft]
        assert [row.draft for row in await versions(store, "other")] == [other.draft]
        assert [row.draft for row in await store.list_versions("other", "schedule", 10)] == [theirs.draft]

    async def test_any_author_is_kept(self, store: Store) -> None:
        for text in AWKWARD:
            await put_schedule(store, schedule(), 1, None, text)
        assert [row.author for row in await versions(store)] == list(reversed(AWKWARD))

    async def test_firing_is_no_change(self, store: Store) -> None:
        made = await put(store, schedule(), 1)
        assert (await known(store)).version == made.version == 1
        assert len(await versions(store)) == 1


class VersionNumberConformance:
    async def test_a_new_schedule_of_an_old_name_goes_on_numbering(self, store: Store) -> None:
        """A caller that read version 1 of the removed schedule must not replace version 1 of the new one."""
        first = await put(store, schedule(payload=b"old"), 1)
        await remove(store)
        again = await put_schedule(store, schedule(payload=b"new"), 2, 0)
        assert again is not None
        assert (again.version, again.id != first.id) == (3, True)
        assert await put_schedule(store, schedule(payload=b"late"), 2, first.version) is None
        rows = await versions(store)
        assert [(row.version, row.change) for row in rows] == [
            (3, Change.CREATED),
            (2, Change.REMOVED),
            (1, Change.CREATED),
        ]
        assert [row.draft.id for row in rows] == [again.id, first.id, first.id]

    async def test_numbers_are_single_in_any_race(self, store: Store, second_store: Store) -> None:
        async def come_and_go(handle: Store) -> None:
            for _ in range(8):
                await put_schedule(handle, schedule(), 1, 0)
                await remove_schedule(handle, TENANT, "schedule")

        await asyncio.gather(*(come_and_go(handle) for handle in (store, second_store) * 2))
        numbers = [row.version for row in await versions(store)]
        assert numbers == list(range(len(numbers), 0, -1))
        assert [row.change for row in await versions(store)] == [Change.REMOVED, Change.CREATED] * (
            len(numbers) // 2
        )


class RemovalConformance:
    async def test_only_the_version_expected_is_removed(self, store: Store) -> None:
        """I-4: an edit made meanwhile is not removed unseen."""
        await put(store, schedule(payload=b"1"), 1)
        second = await put(store, schedule(payload=b"2"), 1)
        for version in (0, 1, 3):
            assert await remove_schedule(store, TENANT, "schedule", "ann", version) is None
        assert await known(store) == second
        assert [row.change for row in await versions(store)] == [Change.REPLACED, Change.CREATED]
        gone = await remove_schedule(store, TENANT, "schedule", "ann", 2)
        assert gone is not None
        assert gone.draft == second.draft
        assert await store.get_schedule(TENANT, "schedule") is None
        assert [(row.version, row.author) for row in (await versions(store))[:1]] == [(3, "ann")]

    async def test_of_an_edit_and_a_removal_of_the_same_version_one_happens(
        self, store: Store, second_store: Store
    ) -> None:
        for _ in range(10):
            made = await put(store, schedule(), 1)
            edit = put_schedule(store, schedule(payload=b"2"), 1, made.version)
            removal = remove_schedule(second_store, TENANT, "schedule", None, made.version)
            edited, removed = await asyncio.gather(edit, removal)
            assert (edited is None) != (removed is None)
            found = await store.get_schedule(TENANT, "schedule")
            assert found == edited
            if found is not None:
                await remove(store)


class VersionPruneConformance:
    async def test_versions_of_a_removed_schedule_stay_until_pruned(self, store: Store) -> None:
        await put(store, schedule(), 1)
        await remove(store)
        now = await store.time()
        await store.prune(now - HOUR)
        assert len(await versions(store)) == 2
        await store.prune(now + HOUR)
        assert await versions(store) == []

    async def test_versions_of_a_living_schedule_stay(self, store: Store) -> None:
        await put(store, schedule(payload=b"1"), 1)
        await put(store, schedule(payload=b"2"), 1)
        await store.prune(await store.time() + DAY)
        assert [row.version for row in await versions(store)] == [2, 1]

    async def test_an_earlier_schedule_of_the_name_is_forgotten_by_itself(self, store: Store) -> None:
        await put(store, schedule(), 1)
        await remove(store)
        again = await put(store, schedule(), 1)
        await store.prune(await store.time() + DAY)
        assert [row.draft.id for row in await versions(store)] == [again.id]
        assert (await put(store, schedule(), 1)).version == 4
