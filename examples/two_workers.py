"""Two worker processes on one machine share a queue in PostgreSQL.

    python examples/two_workers.py postgresql://user@host/database        (or set DUETIME_STORE)

In production, run the workers with `duetime serve --app ...` on separate machines. Any program can submit.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from collections import Counter

import duetime as dt

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("DUETIME_STORE", "")
app = dt.App(URL or "memory://")


@app.task("thumbnail.make")
async def make_thumbnail(picture: int) -> int:
    await asyncio.sleep(0.05)
    return os.getpid()


def worker() -> None:
    app.run(concurrency=5, lease="3s")


async def submit_and_count(pictures: int) -> Counter[int]:
    await app.open()
    jobs = await app.submit_many(
        dt.NewJob("thumbnail.make", {"picture": number}) for number in range(pictures)
    )
    by_process = Counter([(await job.wait(timeout="1m")).result for job in jobs])
    await app.close()
    return by_process


def main() -> None:
    if not URL:
        sys.exit("no database: run python examples/two_workers.py postgresql://user@host/database")
    app.sync.migrate()
    app.sync.close()
    processes = multiprocessing.get_context("spawn")
    workers = [processes.Process(target=worker) for _ in range(2)]
    for process in workers:
        process.start()
    for pid, count in asyncio.run(submit_and_count(100)).items():
        print(f"process {pid} made {count} thumbnails", flush=True)
    for process in workers:
        process.terminate()  # SIGTERM: running jobs finish first
        process.join()
    print("workers ended with", [process.exitcode for process in workers], flush=True)


if __name__ == "__main__":
    main()
