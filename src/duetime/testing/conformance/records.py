"""Records: small documents of the edges, compared before they are changed."""

from __future__ import annotations

import asyncio

import pytest

from duetime.store import Record, Store
from duetime.testing.conformance.drafts import DAY, HOUR, TENANT, delete_record, passed
from duetime.testing.conformance.submit import AWKWARD


async def gone_by_now(store: Store, key: str = "key") -> int:
    """A record that has just expired; answers the version it had."""
    now = await store.time()
    version = await store.put_record("kind", TENANT, key, b"old", expires_at=now + 2)
    await passed(store, now + 4)
    return version


class RecordConformance:
    async def test_a_record_comes_back(self, store: Store) -> None:
        until = await store.time() + HOUR
        version = await store.put_record("kind", TENANT, "key", b"\x00\xff", expires_at=until)
        assert version > 0
        assert await store.get_record("kind", TENANT, "key") == Record(
            "kind", TENANT, "key", b"\x00\xff", version, until
        )

    async def test_kind_tenant_and_key_name_it(self, store: Store) -> None:
        """S10: two tenants use the same key."""
        await store.put_record("kind", TENANT, "key", b"1")
        for kind, tenant, key in (
            ("other", TENANT, "key"),
            ("kind", "other", "key"),
            ("kind", TENANT, "other"),
        ):
            assert await store.get_record(kind, tenant, key) is None
            assert not await delete_record(store, kind, tenant, key)
            assert await store.put_record(kind, tenant, key, b"2", expect=0) > 0
        found = await store.get_record("kind", TENANT, "key")
        assert found is not None
        assert found.value == b"1"

    @pytest.mark.parametrize("text", AWKWARD)
    async def test_any_text_names_a_record(self, store: Store, text: str) -> None:
        version = await store.put_record(text, text, text, text.encode())
        assert await store.list_records(text, text, 10) == [
            Record(text, text, text, text.encode(), version, None)
        ]

    async def test_deleting_a_record(self, store: Store) -> None:
        await store.put_record("kind", TENANT, "key", b"1")
        assert await delete_record(store, "kind", TENANT, "key")
        assert await store.get_record("kind", TENANT, "key") is None
        assert not await delete_record(store, "kind", TENANT, "key")

    async def test_another_handle_sees_a_record(self, store: Store, second_store: Store) -> None:
        await store.put_record("kind", TENANT, "key", b"1")
        assert await second_store.get_record("kind", TENANT, "key") == await store.get_record(
            "kind", TENANT, "key"
        )


class RecordVersionConformance:
    async def test_each_change_of_a_record_has_a_higher_version(self, store: Store) -> None:
        versions = [await store.put_record("kind", TENANT, "key", b"%d" % number) for number in range(3)]
        assert versions == sorted(set(versions))

    async def test_only_the_version_expected_is_replaced(self, store: Store) -> None:
        first = await store.put_record("kind", TENANT, "key", b"1")
        second = await store.put_record("kind", TENANT, "key", b"2", expect=first)
        assert second > first
        for wrong in (0, first, second + 1):
            assert await store.put_record("kind", TENANT, "key", b"3", expect=wrong) == 0
        found = await store.get_record("kind", TENANT, "key")
        assert found is not None
        assert (found.value, found.version) == (b"2", second)

    async def test_zero_expects_that_there_is_none(self, store: Store) -> None:
        assert await store.put_record("kind", TENANT, "key", b"1", expect=0) > 0
        assert await store.put_record("kind", TENANT, "key", b"2", expect=0) == 0

    async def test_a_version_of_what_is_not_there_fails(self, store: Store) -> None:
        assert await store.put_record("kind", TENANT, "key", b"1", expect=1) == 0
        assert await store.get_record("kind", TENANT, "key") is None

    async def test_replacing_sets_the_expiry_again(self, store: Store) -> None:
        await store.put_record("kind", TENANT, "key", b"1", expires_at=await store.time() + HOUR)
        await store.put_record("kind", TENANT, "key", b"2")
        found = await store.get_record("kind", TENANT, "key")
        assert found is not None
        assert found.expires_at is None

    async def test_versions_rise_over_a_deletion(self, store: Store) -> None:
        """The holder of the removed record must not take the record that replaced it."""
        first = await store.put_record("kind", TENANT, "key", b"1")
        await delete_record(store, "kind", TENANT, "key")
        assert await store.put_record("kind", TENANT, "key", b"2", expect=0) > first
        assert await store.put_record("kind", TENANT, "key", b"late", expect=first) == 0

    async def test_of_many_who_take_it_one_gets_it(self, store: Store, second_store: Store) -> None:
        for round_number in range(10):
            takers = [(each, b"%d" % number) for number, each in enumerate([store, second_store] * 4)]
            taken = await asyncio.gather(
                *(
                    each.put_record("kind", TENANT, f"{round_number}", value, expect=0)
                    for each, value in takers
                )
            )
            [winner] = [number for number, version in enumerate(taken) if version]
            found = await store.get_record("kind", TENANT, f"{round_number}")
            assert found is not None
            assert (found.value, found.version) == (takers[winner][1], taken[winner])

    async def test_of_many_who_change_it_none_is_lost(self, store: Store, second_store: Store) -> None:
        await store.put_record("kind", TENANT, "key", b"0")

        async def count_up(handle: Store) -> None:
            for _ in range(5):
                version = 0
                while not version:
                    known = await handle.get_record("kind", TENANT, "key")
                    assert known is not None
                    version = await handle.put_record(
                        "kind", TENANT, "key", b"%d" % (int(known.value) + 1), expect=known.version
                    )

        await asyncio.gather(*(count_up(handle) for handle in (store, second_store) * 2))
        found = await store.get_record("kind", TENANT, "key")
        assert found is not None
        assert found.value == b"20"


class RecordExpiryConformance:
    async def test_an_expired_record_is_none(self, store: Store) -> None:
        version = await gone_by_now(store)
        assert await store.get_record("kind", TENANT, "key") is None
        assert await store.list_records("kind", TENANT, 10) == []
        assert await store.put_record("kind", TENANT, "key", b"late", expect=version) == 0
        assert not await delete_record(store, "kind", TENANT, "key")

    async def test_an_expired_record_makes_room(self, store: Store) -> None:
        version = await gone_by_now(store)
        assert await store.put_record("kind", TENANT, "key", b"new", expect=0) > version
        assert await store.put_record("kind", TENANT, "key", b"late", expect=version) == 0

    async def test_expired_records_are_pruned(self, store: Store) -> None:
        version = await gone_by_now(store)
        kept = await store.put_record("kind", TENANT, "kept", b"1", expires_at=await store.time() + HOUR)
        await store.prune(await store.time() - DAY)
        assert [found.version for found in await store.list_records("kind", None, 10)] == [kept]
        assert await store.put_record("kind", TENANT, "key", b"new", expect=0) > version


class RecordListConformance:
    async def test_records_in_pages(self, store: Store) -> None:
        names = [(tenant, key) for tenant in ("B", "a", "日本") for key in ("B", "a", "a b", "é", "🦄")]
        for tenant, key in reversed(names):
            await store.put_record("kind", tenant, key, b"")
        await store.put_record("other", "a", "c", b"")
        seen: list[tuple[str, str]] = []
        while page := await store.list_records("kind", None, 4, seen[-1] if seen else None):
            assert len(page) <= 4
            seen += [(found.tenant, found.key) for found in page]
        assert seen == names

    async def test_records_of_one_tenant(self, store: Store) -> None:
        for tenant in ("a", "b", "c"):
            for key in ("1", "2", "3"):
                await store.put_record("kind", tenant, key, b"")
        assert [found[1:3] for found in await store.list_records("kind", "b", 10)] == [
            ("b", "1"),
            ("b", "2"),
            ("b", "3"),
        ]
        assert [found.key for found in await store.list_records("kind", "b", 10, ("b", "1"))] == ["2", "3"]
        assert [found.key for found in await store.list_records("kind", "b", 1, ("b", "1"))] == ["2"]
        assert await store.list_records("kind", "d", 10) == []
