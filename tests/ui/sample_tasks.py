"""Tasks of an imaginary company, for the screenshots."""

from __future__ import annotations

import asyncio
from typing import Any

import duetime as dt

app = dt.App("memory://")  # the command line sets another store
LATER = dt.Retry(max_attempts=4, first_delay="2s", max_delay="10s")
ONCE = dt.Retry(max_attempts=1)
_calls = 0


@app.task("invoice.send", queue="billing", retry=LATER)
async def send_invoice(ctx: dt.Context, customer: str = "c1") -> dict[str, Any]:
    """Every sixth call fails: the mail server is busy."""
    global _calls  # noqa: PLW0603  # the only state is a counter
    _calls += 1
    await asyncio.sleep(0.05 + _calls % 5 * 0.06)
    if _calls % 6 == 0:
        raise RuntimeError("mail.example.org answered 451: try again later")
    return {"customer": customer, "message": f"m-{_calls:05}"}


@app.task("report.build", queue="reports", timeout="5m")
async def build_report(ctx: dt.Context, month: str = "2026-11") -> dict[str, Any]:
    for page in range(260, 1_200):
        await ctx.progress(page, 1_200, "pages written")
        await asyncio.sleep(1)
    return {"pages": 1_200}


@app.task("search.index")
async def index(ctx: dt.Context) -> dict[str, Any]:
    await asyncio.sleep(0.4)
    return {"documents": 1_284}


@app.task("crm.sync", retry=ONCE)
async def sync_crm(ctx: dt.Context, page: int = 1) -> None:
    raise ConnectionError("crm.example.org refused the connection")


@app.task("thumbnail.make", queue="media", retry=ONCE)
async def make_thumbnail(ctx: dt.Context, image: str) -> None:
    raise ValueError(f"unknown image format: {image.rpartition('.')[2]}")
