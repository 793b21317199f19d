"""Bare asyncpg loops. `python -m bench.raw.postgres WHAT URL COUNT` prints one line of JSON; `drain`
begins on a signal."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg
import uvloop

from bench.raw.layout import PAYLOAD, POSTGRES

BATCH = 1_000
COLUMNS = ("id", "tenant", "fire_time", "due_at", "queue", "priority", "target", "payload", "created_at")
CLAIM = """UPDATE jobs SET state = 1, attempt = attempt + 1, node = 1, claimed_at = $2 WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM jobs WHERE state = 0 AND queue = 'default' AND priority = 5 AND due_at <= $2
  ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, attempt, target, payload, due_at, queue, priority"""
SETTLE = """WITH gone AS (DELETE FROM jobs WHERE id = ANY($1::uuid[]) RETURNING *)
  INSERT INTO history SELECT gone.*, $2, $2, NULL FROM gone"""
INSERT = """INSERT INTO jobs (id, tenant, fire_time, due_at, queue, priority, target, payload, created_at)
  SELECT id, 'default', $2, $2, 'default', 5, 'noop', payload, $2
  FROM unnest($1::uuid[], $3::bytea[]) AS new (id, payload)"""
# A plan for a table that was empty when it was analysed is not reliable.
SESSION = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "jit": "off"}

Answer = dict[str, Any]


def identifiers(count: int, salt: int = 0) -> list[UUID]:
    """Ascending, like ids that begin with the time."""
    first = time.time_ns() // 1_000_000 << 80 | salt << 64
    return [UUID(int=first + number) for number in range(count)]


def now() -> int:
    return time.time_ns() // 1_000


async def connect(url: str) -> Any:
    return await asyncpg.connect(url, server_settings=SESSION)


async def prepare(url: str, count: int) -> Answer:
    """Fresh tables with `count` due jobs; the time of the COPY is the ceiling of bulk submission."""
    connection = await connect(url)
    await connection.execute(f"DROP TABLE IF EXISTS jobs, history; {POSTGRES}")
    began = time.perf_counter()
    for first in range(0, count, 5_000):
        part = identifiers(min(5_000, count - first), first)
        moment = now()
        rows = [(id, "default", moment, moment, "default", 5, "noop", PAYLOAD, moment) for id in part]
        await connection.copy_records_to_table("jobs", records=rows, columns=COLUMNS)
    seconds = time.perf_counter() - began
    await connection.execute("ANALYZE jobs")
    await connection.close()
    return {"seconds": seconds}


async def drain(url: str) -> Answer:
    """Claim and settle, history kept, until nothing is due; one batch is settled while the next is
    claimed."""
    claimer, settler = await connect(url), await connect(url)
    claim, settle = await claimer.prepare(CLAIM), await settler.prepare(SETTLE)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    began, cpu, count = time.time(), time.process_time(), 0
    settling: Awaitable[Any] = asyncio.sleep(0)
    while rows := await claim.fetch(BATCH, now()):
        await settling
        count += len(rows)
        settling = asyncio.ensure_future(settle.fetch([row[0] for row in rows], now()))
    await settling
    ended, cpu = time.time(), time.process_time() - cpu
    await asyncio.gather(claimer.close(), settler.close())
    return {"count": count, "began": began, "ended": ended, "cpu": cpu}


async def inserts(url: str, count: int, rows: int) -> Answer:
    """One transaction after another, each with `rows` rows."""
    connection = await connect(url)
    statement = await connection.prepare(INSERT)
    ids = identifiers(count * rows)
    began = time.perf_counter()
    for first in range(0, count * rows, rows):
        await statement.fetch(ids[first : first + rows], now(), [PAYLOAD] * rows)
    seconds = time.perf_counter() - began
    await connection.close()
    return {"seconds": seconds}


async def round_trips(url: str, count: int) -> Answer:
    connection = await connect(url)
    statement = await connection.prepare("SELECT 1")
    began = time.perf_counter()
    for _ in range(count):
        await statement.fetchval()
    seconds = time.perf_counter() - began
    await connection.close()
    return {"seconds": seconds}


async def send(url: str, count: int) -> Answer:
    """One row after another with NOTIFY, for `take` in another process."""
    connection = await connect(url)
    insert = await connection.prepare(
        f"WITH new AS ({INSERT} RETURNING 1) SELECT pg_notify('bench', 'x') FROM new"
    )
    for id in identifiers(count):
        await asyncio.sleep(0.02)  # the pace of the workload: a process that slept is slower
        await insert.fetch([id], now(), [PAYLOAD])
    await connection.close()
    return {}


async def take(url: str, count: int) -> Answer:
    """From before each row was sent until it is claimed here: the shortest way from one process's job to
    another."""
    connection = await connect(url)
    claim = await connection.prepare(CLAIM)
    heard = asyncio.Event()
    await connection.add_listener("bench", lambda *_: heard.set())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    taken: list[float] = []
    while len(taken) < count:
        await heard.wait()
        heard.clear()
        rows = await claim.fetch(BATCH, now())
        moment = now()
        taken.extend((moment - row["due_at"]) / 1e6 for row in rows)
    await connection.close()
    return {"seconds": taken}


COMMANDS: dict[str, Callable[..., Awaitable[Answer]]] = {
    command.__name__: command for command in (prepare, drain, inserts, round_trips, send, take)
}


def main(command: str, url: str, *numbers: str) -> None:
    action = COMMANDS[command](url, *map(int, numbers))
    sys.stdout.write(json.dumps(asyncio.Runner(loop_factory=uvloop.new_event_loop).run(action)) + "\n")  # type: ignore[arg-type]  # a coroutine


if __name__ == "__main__":
    main(*sys.argv[1:])
