"""A user's program: worker and client in one file, with Duetime's public names only. Prints one line of
JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvloop

import duetime as dt
from bench.starts import (
    PROBE,
    PROBE_EVERY,
    QUEUE_VARIABLE,
    ROLES_VARIABLE,
    SAMPLING_VARIABLE,
    SLOTS_VARIABLE,
    STARTS_VARIABLE,
    STORE_VARIABLE,
    TRACES_VARIABLE,
    StartWriter,
)

CONCURRENCY = 500
BULK = 5_000
QUEUES = 5
PRIORITIES = 10
AT_ONCE = 2  # running jobs per key, if limited

Answer = dict[str, Any]

app = dt.App(
    os.environ[STORE_VARIABLE],
    queue=os.environ.get(QUEUE_VARIABLE),
    traces=os.environ.get(TRACES_VARIABLE),
    trace_sampling=float(os.environ.get(SAMPLING_VARIABLE, "1")),
)
starts = StartWriter(Path(os.environ[STARTS_VARIABLE]))


@app.task("noop")
async def noop(ctx: dt.Context, n: int) -> None:
    starts.record(n)


@app.task("limited", limit=dt.Limit(AT_ONCE, per="key"))
async def limited(ctx: dt.Context, n: int, key: int, seconds: float) -> None:
    await _take_time(n, seconds)


@app.task("unlimited")
async def unlimited(ctx: dt.Context, n: int, key: int, seconds: float) -> None:
    await _take_time(n, seconds)


async def _take_time(n: int, seconds: float) -> None:
    starts.record(n)
    await asyncio.sleep(seconds)
    starts.record_end(n)


@app.task("brief")
async def brief(ctx: dt.Context, n: int) -> None:
    if n % PROBE_EVERY == 0:
        starts.record(PROBE)
    await asyncio.sleep(0.001)


@app.task("compute")
def compute(until: float) -> None:
    """In a thread that never releases the interpreter voluntarily."""
    while time.time() < until:
        sum(range(1_000))


def worker() -> None:
    """Everything is imported; wait for the signal, so that several begin together."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    roles = {"roles": os.environ[ROLES_VARIABLE].split(",")} if ROLES_VARIABLE in os.environ else {}
    app.run(concurrency=int(os.environ.get(SLOTS_VARIABLE, CONCURRENCY)), **roles)


async def bulk(count: int) -> Answer:
    return await _submit_in_bulk([dt.NewJob("noop", {"n": n}) for n in range(count)])


async def lanes(count: int) -> Answer:
    """As `bulk`, but over every pair of queue and priority."""
    return await _submit_in_bulk(
        [
            dt.NewJob("noop", {"n": n}, queue=f"queue-{n % QUEUES}", priority=n // QUEUES % PRIORITIES)
            for n in range(count)
        ]
    )


async def keyed(task: str, count: int, keys: int, seconds: float) -> Answer:
    """As `bulk`, with jobs that take some time, one key after another."""
    return await _submit_in_bulk(
        [dt.NewJob(task, {"n": n, "key": n % keys, "seconds": seconds}) for n in range(count)]
    )


async def flood(count: int) -> Answer:
    """Jobs of a millisecond, of the lowest priority."""
    return await _submit_in_bulk([dt.NewJob("brief", {"n": n}, priority=0) for n in range(count)])


async def due(count: int, first: float, span: float) -> Answer:
    """`count` jobs, due evenly over `span` seconds from the instant `first`."""
    jobs = [
        dt.NewJob("noop", {"n": n}, at=datetime.fromtimestamp(first + span * n / count, UTC))
        for n in range(count)
    ]
    return {**await _submit_in_bulk(jobs), "too_late": time.time() > first}


async def computing(until: float) -> Answer:
    await compute.submit(until=until)
    return {}


async def single(count: int) -> Answer:
    """One after another: each waits until the previous one is durable."""
    for n in range(20):
        await noop.submit(n=n)
    began = time.perf_counter()
    for n in range(count):
        await noop.submit(n=n)
    return {"seconds": time.perf_counter() - began}


async def concurrent(count: int, submitters: int) -> Answer:
    numbers = iter(range(count))

    async def submit_some() -> None:
        for n in numbers:
            await noop.submit(n=n)

    await noop.submit(n=PROBE)
    began = time.perf_counter()
    await asyncio.gather(*(submit_some() for _ in range(submitters)))
    return {"seconds": time.perf_counter() - began}


async def probe() -> Answer:
    await noop.submit(n=PROBE)
    return {}


async def paced(per_second: int, seconds: int) -> Answer:
    """One job at a time at a steady pace; the result has the instant before each call."""
    return {"sent": await _at_pace(1 / per_second, per_second * seconds, lambda n: noop.submit(n=n))}


async def answers(count: int) -> Answer:
    """One after another: each is submitted when the caller knows that the previous one has ended. The
    result has the time of each."""
    took = []
    for n in range(count):
        began = time.perf_counter()
        await (await noop.submit(n=n)).wait("30s")
        took.append(time.perf_counter() - began)
    return {"took": took}


async def urgent(per_second: int, seconds: int) -> Answer:
    """As `paced`, with the highest priority."""
    return {
        "sent": await _at_pace(1 / per_second, per_second * seconds, lambda n: noop.submit(n=n, priority=9))
    }


async def sustained(per_second: int, seconds: int, batch: int) -> Answer:
    """Batches at a steady pace; job n belongs to call n // batch."""

    def submit(call: int) -> Awaitable[object]:
        return app.submit_many([dt.NewJob("noop", {"n": n}) for n in range(call * batch, (call + 1) * batch)])

    return {"sent": await _at_pace(batch / per_second, per_second * seconds // batch, submit)}


async def schedules(count: int, expression: str) -> Answer:
    numbers = iter(range(count))

    async def declare_some() -> None:
        for n in numbers:
            await app.schedule(f"schedule-{n}", noop, dt.Cron(expression), payload={"n": n})

    began = time.perf_counter()
    await asyncio.gather(*(declare_some() for _ in range(20)))
    return {"seconds": time.perf_counter() - began}


async def far(days: int) -> Answer:
    """One job in the far future, which the pending workloads copy."""
    handle = await noop.submit(n=PROBE, delay=f"{days * 24}h")
    return {"id": str(handle.id)}


async def later(count: int, days: int) -> Answer:
    """As many in the far future, a millisecond apart."""
    first = datetime.now(UTC) + timedelta(days=days)
    began = time.perf_counter()
    for n in range(0, count, BULK):
        await app.submit_many(
            [
                dt.NewJob("noop", {"n": PROBE}, at=first + timedelta(milliseconds=k))
                for k in range(n, min(count, n + BULK))
            ]
        )
    return {"seconds": time.perf_counter() - began}


async def _submit_in_bulk(jobs: Sequence[dt.NewJob]) -> Answer:
    began = time.perf_counter()
    for first in range(0, len(jobs), BULK):
        await app.submit_many(jobs[first : first + BULK])
    return {"seconds": time.perf_counter() - began}


async def _at_pace(interval: float, calls: int, call: Callable[[int], Awaitable[object]]) -> list[float]:
    """A call that takes longer than the interval does not delay the next one: a slow store must get the
    same load."""
    first = time.time() + 0.1
    sent = []
    async with asyncio.TaskGroup() as calling:
        for n in range(calls):
            await asyncio.sleep(max(0.0, first + n * interval - time.time()))
            sent.append(time.time())
            calling.create_task(_whole(call(n)))
    return sent


async def _whole(call: Awaitable[object]) -> None:
    await call


COMMANDS: dict[str, Callable[..., Awaitable[Answer]]] = {
    command.__name__: command
    for command in (
        bulk,
        lanes,
        keyed,
        flood,
        due,
        computing,
        single,
        concurrent,
        probe,
        paced,
        answers,
        urgent,
        sustained,
        schedules,
        far,
        later,
    )
}


async def _migrate() -> Answer:
    await app.migrate()
    return {}


async def _as_client(command: str, arguments: list[Any]) -> Answer:
    await app.open()
    try:
        return await COMMANDS[command](*arguments)
    finally:
        await app.close()


def main(command: str, *arguments: str) -> None:
    if command == "worker":
        worker()
        return
    action = (
        _migrate() if command == "migrate" else _as_client(command, json.loads(f"[{','.join(arguments)}]"))
    )
    sys.stdout.write(json.dumps(uvloop.run(action)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
