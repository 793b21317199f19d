"""A long task survives `kill -9`: the next worker continues from its last checkpoint.

    python examples/survives_a_kill.py [sqlite:///kill.db]

Prints which attempt imported which page. Only the page that was being imported when the worker died is
imported twice.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys

import duetime as dt

URL = sys.argv[1] if len(sys.argv) > 1 else "sqlite:///kill.db"
PAGES = 5
app = dt.App(URL)


@app.task("pages.import")
async def import_pages(ctx: dt.Context, pages: int) -> int:
    for page in range(ctx.last_checkpoint or 0, pages):
        print(f"attempt {ctx.attempt}: page {page}", flush=True)
        await asyncio.sleep(0.5)
        await ctx.checkpoint(page + 1)
    return ctx.attempt


def work() -> None:
    app.run(lease="3s")


async def kill_and_resume() -> None:
    processes = multiprocessing.get_context("spawn")
    await app.open()
    job = await import_pages.submit(pages=PAGES)
    first = processes.Process(target=work)
    first.start()
    while (await job.refresh()).checkpoint is None:  # noqa: ASYNC110  another process writes it
        await asyncio.sleep(0.02)
    assert first.pid is not None
    first.kill()
    print("killed", flush=True)
    second = processes.Process(target=work)
    second.start()
    await job.wait(timeout="1m", raise_on_failure=True)
    print(f"done by attempt {job.result}, failures {job.failures}", flush=True)
    second.terminate()
    first.join()
    second.join()
    await app.close()


if __name__ == "__main__":
    asyncio.run(kill_and_resume())
