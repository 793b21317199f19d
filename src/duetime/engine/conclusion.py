"""The end of an attempt that had something written down: its last progress, and the transaction of its own writes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from duetime.engine.desk import WritingDesk
from duetime.engine.failpoint import failpoint
from duetime.errors import Fenced
from duetime.invoker import Context
from duetime.model.settle import Settlement
from duetime.store import Transaction

Answer = TypeVar("Answer")


async def conclude(context: Context, desk: WritingDesk, settlement: Settlement) -> None:
    """Commits the task's writes together with the settlement. Raises Fenced when the attempt does not count any more, StoreUnavailable
    when nobody knows whether it was committed; after anything else it surely was not."""
    transaction = await context.close()
    # A store may have but one writer, and that is the transaction: waiting for anything else to be written would last for ever.
    await desk.end(context.job_id, context.attempt, wait=transaction is None)
    if transaction is None:
        return
    try:
        failpoint("worker.before_commit")
        if not await transaction.finish(settlement):
            raise Fenced("the job does not run under this attempt number any more: what it wrote was rolled back")
        failpoint("worker.after_commit")
    except BaseException:
        await _abandon(transaction)
        raise


async def undo(context: Context, desk: WritingDesk) -> None:
    """The attempt ended in any other way than success: nothing of its writes stays."""
    transaction = await context.close()
    if transaction is not None:
        await _abandon(transaction)
    await desk.end(context.job_id, context.attempt, wait=True)


async def _abandon(transaction: Transaction) -> None:
    with suppress(Exception):  # a connection that is gone has rolled back by itself
        await transaction.abandon()


async def undisturbed(work: Coroutine[Any, Any, Answer]) -> Answer:
    """To its end, whoever wants this attempt stopped meanwhile: the task is done, and half a commit helps nobody."""
    inner = asyncio.ensure_future(work)
    while not inner.done():
        try:
            await asyncio.wait([inner])
        except asyncio.CancelledError:
            continue
    return inner.result()
