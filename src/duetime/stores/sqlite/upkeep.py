"""Forgetting the past, a bounded piece at a time so that writers are not held up."""

from __future__ import annotations

from collections.abc import Mapping

from duetime.model.instant import SECOND, Micros
from duetime.stores.sqlite import edges
from duetime.stores.sqlite.session import Row, Session, Transaction

BATCH = 5_000
WINDOW = 50_000  # past jobs looked at in one go for those of certain targets
LATE = 7_200 * SECOND  # a job may be recorded this long after its end, and is found all the same

Moment = tuple[Micros, int]  # an end and a row: where a look into the past goes on


class Retention:
    """Up to when the jobs of targets with an instant of their own are gone, so that not all the past is looked through each time."""

    def __init__(self) -> None:
        self._gone_before: dict[str, Micros] = {}

    def start(self, instants: Mapping[str, Micros]) -> Moment | None:
        """Where to begin, if there is anything to do."""
        return (min(self._gone_before.get(target, LATE) for target in instants) - LATE, 0) if instants else None

    def done(self, instants: Mapping[str, Micros]) -> None:
        self._gone_before |= instants


def begin(transaction: Transaction, before: Micros) -> None:
    transaction.change("prune_nodes", (before,))
    transaction.change("forget_gates", (transaction.now,))
    transaction.change("prune_versions", (before,))
    edges.forget(transaction)


def prune(transaction: Transaction, before: Micros) -> int:
    """Answers how many jobs went; fewer than a batch means that none is left."""
    for statement in ("prune_attempts", "prune_marks", "prune_past_gates"):
        transaction.change(statement, (before, BATCH))
    return transaction.change("prune_jobs", (before, BATCH))


def of_targets(session: Session, instants: Mapping[str, Micros], start: Moment) -> tuple[list[Row], Moment | None]:
    """Ids of jobs of these targets that ended before the instants of their own, from `start` on; and where to go on, if anywhere."""
    window = session.all("past_window", (*start, max(instants.values()), WINDOW))
    chosen: list[Row] = [(job_id,) for _, job_id, target, finished_at in window if finished_at < instants.get(target, 0)]
    return chosen, (window[-1][3], window[-1][0]) if len(window) == WINDOW else None


def forget(transaction: Transaction, ids: list[Row]) -> int:
    for statement in ("forget_attempts", "forget_marks", "forget_past_gates"):
        transaction.change_many(statement, ids)
    return transaction.change_many("forget_jobs", ids)
