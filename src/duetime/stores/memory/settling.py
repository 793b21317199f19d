"""Writing a decision about a running job, and recognising one that was written before."""

from __future__ import annotations

from duetime.model.job import State
from duetime.model.settle import Settlement
from duetime.stores.memory.jobs import Jobs
from duetime.stores.memory.row import Row


def write(jobs: Jobs, row: Row, decision: Settlement) -> list[Row]:
    """Answers the jobs that waited for this one to finish."""
    if decision.state is State.RUNNING:
        if row.node is not None:  # said again, it moves no deadline
            jobs.hand_over(row, decision)
        return []
    jobs.record(row, decision)
    if decision.state is State.PENDING:
        jobs.put_back(row, decision)
        return []
    row.failures, row.losses = decision.failures, decision.losses
    row.started_at, row.result = decision.started_at, decision.result
    return jobs.finish(row, decision.state, decision.finished_at, decision.error)


def was_written(jobs: Jobs, decision: Settlement) -> bool:
    """The same decision again, after its reply was lost. Another decision about the same attempt is not that."""
    row = jobs.live.get(decision.id) or jobs.past.get(decision.id)
    if row is None or (row.attempt, row.state) != (decision.attempt, decision.state):
        return False
    return row.state.final or row.draft.due_at == decision.due_at
