"""Rows of the Redis store: written jobs are in the same keys as those that were stored one by one, and ids
come in order whatever the lists look like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from duetime.model.stored import JobRow, RowKind
from duetime.store import Lane
from duetime.stores.redis import RedisStore, bulk_jobs
from duetime.stores.redis.lists import WIDTH
from duetime.stores.redis.rows import pairs
from duetime.testing.conformance.drafts import DAY, HOUR, claim, job, joined, request, settle, success
from duetime.testing.conformance.rows import ALL, fill, rewrite

SCHEDULE_WRITE = slice(49, 57)  # names the call that wrote it


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore.from_url(redis_url)
    await store.migrate()
    await store.open()
    yield store
    await store.close()


async def _names(store: RedisStore) -> list[bytes]:
    pattern = store._address.keys.replace("{", r"\{").replace("}", r"\}") + "*"
    names: list[bytes] = await store._connection.command("KEYS", pattern)
    return names


async def stored_keys(store: RedisStore) -> dict[str, Any]:
    """Everything that another call can notice, by key."""
    command, prefix = store._connection.command, store._address.keys
    found: dict[str, Any] = {}
    for key in await _names(store):
        kind, name = await command("TYPE", key), key.decode("latin-1").removeprefix(prefix)
        match kind:
            case b"hash":
                values = await command("HGETALL", key)
                found[name] = {field: value for field, value in pairs(values) if value != b"0"}
            case b"set":
                found[name] = set(await command("SMEMBERS", key))
            case b"zset":
                found[name] = dict(pairs(await command("ZRANGE", key, 0, -1, "WITHSCORES")))
            case b"list":
                found[name] = await command("LRANGE", key, 0, -1)
            case _:
                found[name] = await command("GET", key)
    return _comparable(found)


def _comparable(found: dict[str, Any]) -> dict[str, Any]:
    """Without what is allowed to differ: the order in which jobs of a copy finished, the size of chunks, names
    of calls, traces that are deleted when next read, and counts before the last attempt of a finished job."""
    indexes = {name.split(":", 1)[1] for name in found if name.startswith("due:")}
    for name, value in list(found.items()):
        if name.startswith("finished:"):
            found[name] = set(value)
        elif name.startswith("lane:"):
            lane = name.removeprefix("lane:")
            found[name] = {part for part in value if f"{lane}\0{part.decode('latin-1')}" in indexes}
    found["lanes"] = {name for name in found["lanes"] if found.get(f"lane:{name.decode('latin-1')}")}
    found["waited"] = {name for name in found["waited"] if f"waiting:{name.decode('latin-1')}" in found}
    found["lists"] = _entries(found["lists"])
    found["past"] = {name: _without_old_counts(row) for name, row in found["past"].items()}
    found["removed"] = set(found["removed"])
    rows = found["schedules"]
    found["schedules"] = {
        name: row[: SCHEDULE_WRITE.start] + row[SCHEDULE_WRITE.stop :] for name, row in rows.items()
    }
    del found["versions"], found["queues"]  # compared as rows by the conformance suite
    return {name: value for name, value in found.items() if value}


def _without_old_counts(past: bytes) -> bytes:
    """A past row has the end of the job, the record of its last run, and its row from before."""
    at = 26
    for _ in range(2):  # result and error
        at += 4 + int.from_bytes(past[at : at + 4], "big")
    at += 16
    return past[:at] + past[at + 12 :]


def _entries(chunks: dict[bytes, bytes]) -> dict[bytes, set[bytes]]:
    found: dict[bytes, set[bytes]] = defaultdict(set)
    for chunk in chunks:
        end = 3 + int.from_bytes(chunk[1:3], "big")
        if chunk[end : end + 2] == b"\xff\xff":
            end += 4 + int.from_bytes(chunk[end + 2 : end + 4], "big")
        entries = [chunk[at : at + WIDTH] for at in range(end + WIDTH, len(chunk), WIDTH)]
        assert not found[chunk[:end]] & set(entries)
        assert len(set(entries)) == len(entries)
        found[chunk[:end]] |= set(entries)
    return found


async def test_written_rows_are_in_all_keys(store: RedisStore) -> None:
    await fill(store)
    before = await stored_keys(store)
    assert {"running", "external", "unique", "cancels", "errors", "key_use", "dead"} <= set(before)
    await rewrite(store)
    after = await stored_keys(store)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == set()


async def test_deleted_rows_leave_no_keys(store: RedisStore) -> None:
    """But counters, the limits of targets, and names that are deleted when next read."""
    await fill(store)
    await store.prune(0)  # expired records
    for kind in RowKind:
        await store.write_rows(kind, [], None, None)
    counters = {"version", "record_version", "node_number", "limits"}
    traces = ("lane", "waited", "finished:", "targets", "live", "busy", "node_running")
    names = {name.decode("latin-1").removeprefix(store._address.keys) for name in await _names(store)}
    assert {name for name in names - counters if not name.startswith(traces)} == set()


@pytest.mark.parametrize("spread", [1, 900, 2_500, HOUR])
async def test_ids_come_in_order(store: RedisStore, spread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of jobs that share a millisecond, but not its microsecond; across tenants and states."""
    monkeypatch.setattr(bulk_jobs, "MIN_IDS", 3)
    monkeypatch.setattr(bulk_jobs, "MAX_IDS", 20)
    random, now, node = Random(spread), await store.time(), await joined(store)
    base = now // 1_000 * 1_000 + DAY
    drafts = [
        job(base + random.randrange(spread), tenant=f"tenant-{random.randrange(4)}") for _ in range(400)
    ]
    await store.add_jobs(drafts)
    finished = [job(base - 2 * DAY + at % 3, queue="other") for at in range(30)]
    await store.add_jobs(finished)
    claimed = await claim(store, request(node, Lane("other", 5, 0), room=30))
    assert await settle(store, [success(one, now) for one in claimed]) == []
    expected = sorted(draft.id for draft in (*drafts, *finished))
    rows = await store.read_rows(RowKind.JOBS, None, ALL)
    assert [row.id for row in rows if isinstance(row, JobRow)] == expected
    paged: list[Any] = []
    while page := await store.read_rows(RowKind.JOBS, (paged[-1],) if paged else None, 33):
        paged += [row.id for row in page if isinstance(row, JobRow)]
    assert paged == expected
