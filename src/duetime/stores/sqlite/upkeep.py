"""Forgetting the past, a bounded piece at a time so that writers are not held up."""

from __future__ import annotations

from duetime.model.instant import Micros
from duetime.stores.sqlite.session import Transaction

BATCH = 5_000


def prune(transaction: Transaction, before: Micros) -> int:
    """Answers how many jobs went; fewer than a batch means that none is left."""
    transaction.change("prune_attempts", (before, BATCH))
    return transaction.change("prune_jobs", (before, BATCH))
