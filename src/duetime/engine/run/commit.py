"""The end of an attempt that wrote something: its last progress and output, and the transaction of its own
writes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from duetime.engine.failpoint import failpoint
from duetime.engine.run.checkpoints import CheckpointWriter
from duetime.errors import Fenced
from duetime.invoker import Context
from duetime.model.settle import Settlement
from duetime.store import TaskTransaction

Answer = TypeVar("Answer")


async def commit(context: Context, checkpoints: CheckpointWriter, settlement: Settlement) -> None:
    """Commit the task's writes together with the settlement. Raises Fenced when the job no longer runs under
    this attempt, StoreUnavailable when it is unknown whether it was committed. After any other error it was
    not."""
    transaction = await context.close()
    # A store may have only one writer, which the transaction holds: waiting for another write would never end
    await checkpoints.end(context.job_id, context.attempt, wait=transaction is None)
    if transaction is None:
        await checkpoints.end_output(context.job_id, context.attempt)
        return
    try:
        failpoint("worker.before_commit")
        if not await transaction.finish(settlement):
            raise Fenced("the job no longer runs under this attempt number: its writes were rolled back")
        failpoint("worker.after_commit")
        await checkpoints.end_output(context.job_id, context.attempt)
    except BaseException:
        await _abandon(transaction)
        raise


async def rollback(context: Context, checkpoints: CheckpointWriter) -> bool:
    """The attempt did not succeed: roll back its writes. False: the store had lost them before."""
    transaction = await context.close()
    intact = transaction is None or await _abandon(transaction)
    await checkpoints.end(context.job_id, context.attempt, wait=True)
    await checkpoints.end_output(context.job_id, context.attempt)
    return intact


async def _abandon(transaction: TaskTransaction) -> bool:
    with suppress(Exception):  # a connection that is gone has rolled back by itself
        return await transaction.abandon()
    return True


async def shielded(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run this to its end, also if the attempt is asked to stop meanwhile: the task is done, and its commit
    must not be interrupted."""
    inner = asyncio.ensure_future(work)
    while not inner.done():
        try:
            await asyncio.wait([inner])
        except asyncio.CancelledError:
            continue
    return inner.result()
