"""Bare loops on Redis: one connection, a hash of jobs, a sorted set of due ones, a hash of finished ones."""

from __future__ import annotations

import time
from typing import Any

from redis import Redis

from bench.raw.layout import PAYLOAD
from bench.raw.postgres import identifiers, now

BATCH = 1_000
CLAIM = """local ids = redis.call('ZRANGE', KEYS[2], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
if #ids == 0 then return {} end
redis.call('ZREM', KEYS[2], unpack(ids))
for _, id in ipairs(ids) do redis.call('HSET', KEYS[3], id, '1') end
return {ids, redis.call('HMGET', KEYS[1], unpack(ids))}"""
SETTLE = """local rows = redis.call('HMGET', KEYS[1], unpack(ARGV))
for i, id in ipairs(ARGV) do redis.call('HSET', KEYS[4], id, rows[i]) end
redis.call('HDEL', KEYS[1], unpack(ARGV))
redis.call('HDEL', KEYS[3], unpack(ARGV))"""
JOBS, DUE, RUNNING, PAST = KEYS = ("raw:jobs", "raw:due", "raw:running", "raw:past")


def bulk(client: Redis, count: int) -> float:
    """Seconds."""
    ids, began = [id.bytes for id in identifiers(count)], time.perf_counter()
    for first in range(0, count, BATCH):
        _insert(client, ids[first : first + BATCH])
    return time.perf_counter() - began


def drain(client: Redis) -> int:
    """How many jobs: claims and settlements of one batch after the other, history kept."""
    claim: Any = client.register_script(CLAIM)
    settle: Any = client.register_script(SETTLE)
    finished = 0
    while reply := claim(KEYS, [now(), BATCH]):
        settle(KEYS, reply[0])
        finished += len(reply[0])
    return finished


def inserts(client: Redis, count: int, rows: int) -> float:
    """Seconds; `rows` in each call."""
    ids = [id.bytes for id in identifiers(count * rows)]
    began = time.perf_counter()
    for first in range(0, count * rows, rows):
        _insert(client, ids[first : first + rows])
    return time.perf_counter() - began


def _insert(client: Redis, ids: list[bytes]) -> None:
    moment = now()
    with client.pipeline(transaction=False) as pipeline:
        pipeline.hset(JOBS, mapping=dict.fromkeys(ids, PAYLOAD))
        pipeline.zadd(DUE, dict.fromkeys(ids, moment))
        pipeline.execute()
