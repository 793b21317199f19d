"""Searches of one tenant do not stop the reads of another: they take turns, and only a few may wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from duetime.api.state import MAX_SEARCHES_PER_TENANT
from duetime.model.job import JobFilter
from tests.api.conftest import refused
from tests.api.keyed_api import KeyedApi, keyed_api

__all__ = ["keyed_api"]

SEARCH = "/jobs?payload=a.b:1"


class HeldLists:
    """Lists of jobs that do not end before the test says so."""

    def __init__(self, keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[tuple[str, bool]] = []
        self.released = asyncio.Event()
        self._list = keyed_api.app.store.list_jobs
        monkeypatch.setattr(keyed_api.app.store, "list_jobs", self._held)

    async def _held(self, wanted: JobFilter, *rest: Any) -> Any:
        self.begun.append((wanted.tenant, wanted.is_search))
        await self.released.wait()
        return await self._list(wanted, *rest)

    async def until(self, number: int) -> None:
        async with asyncio.timeout(20):
            while len(self.begun) < number:
                await asyncio.sleep(0.001)


async def full(keyed_api: KeyedApi, path: str, key: str) -> list[asyncio.Task[Any]]:
    """As many searches as may be open."""
    sent = [
        asyncio.create_task(keyed_api.get(path, authorization=key)) for _ in range(MAX_SEARCHES_PER_TENANT)
    ]
    async with asyncio.timeout(20):
        while keyed_api.service.state.service.searches._open.total() < MAX_SEARCHES_PER_TENANT:
            await asyncio.sleep(0.001)
    return sent


@pytest.fixture
async def lists(keyed_api: KeyedApi, monkeypatch: pytest.MonkeyPatch) -> HeldLists:
    return HeldLists(keyed_api, monkeypatch)


async def test_searches_of_a_tenant_run_one_after_another_and_delay_no_other_tenant(
    keyed_api: KeyedApi, lists: HeldLists
) -> None:
    mine, other = await keyed_api.key("read", tenant="mine"), await keyed_api.key("read", tenant="other")
    searches = [asyncio.create_task(keyed_api.get(SEARCH, authorization=mine)) for _ in range(3)]
    await lists.until(1)
    quick = asyncio.create_task(keyed_api.get("/jobs", authorization=mine))
    await lists.until(2)
    await_other = asyncio.create_task(keyed_api.get(SEARCH, authorization=other))
    await lists.until(3)
    assert lists.begun == [("mine", True), ("mine", False), ("other", True)]
    lists.released.set()
    answers = await asyncio.gather(*searches, quick, await_other)
    assert [one.status_code for one in answers] == [200] * 5
    assert lists.begun[3:] == [("mine", True)] * 2


@pytest.mark.parametrize("path", [SEARCH, "/jobs?label=a:b", "/jobs?id=01935c2e", "/dead?error=lost"])
async def test_more_searches_of_a_tenant_than_may_wait_are_refused(
    keyed_api: KeyedApi, lists: HeldLists, path: str
) -> None:
    mine, other = await keyed_api.key("read", tenant="mine"), await keyed_api.key("read", tenant="other")
    waiting = await full(keyed_api, path, mine)
    answer = await keyed_api.get(path, authorization=mine)
    refused(answer, 429, "searches_exhausted")
    assert answer.headers["retry-after"] == "1"
    lists.released.set()
    assert (await keyed_api.get("/jobs", authorization=mine)).status_code == 200
    assert (await keyed_api.get(path, authorization=other)).status_code == 200
    assert [one.status_code for one in await asyncio.gather(*waiting)] == [200] * MAX_SEARCHES_PER_TENANT


async def test_bulk_action_by_search_takes_a_place_too(keyed_api: KeyedApi, lists: HeldLists) -> None:
    mine = await keyed_api.key("manage", "read", tenant="mine")
    body = {"action": "cancel", "filter": {"payload": "a:1"}}
    waiting = await full(keyed_api, SEARCH, mine)
    refused(await keyed_api.post("/jobs/bulk", body, authorization=mine), 429, "searches_exhausted")
    lists.released.set()
    await asyncio.gather(*waiting)
