"""The Redis store: the conformance suite, and what is specific to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from duetime.stores.redis import RedisStore
from duetime.testing.conformance import StoreConformance


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore.from_url(redis_url)
    await store.migrate()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def second_store(store: RedisStore) -> AsyncIterator[RedisStore]:
    second = store.clone()
    await second.open()
    yield second
    await second.close()


class TestRedis(StoreConformance):
    """Everything the contract says, with the fixtures of this file."""
