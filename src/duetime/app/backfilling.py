"""Backfill: jobs for fires of a past range that no job stands for. Bounded, spread over time, and safe to repeat.

A filled-in fire has an id made of (schedule, fire time) like any fire, from a name of its own: the row of a fire that was skipped stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple
from uuid import UUID, uuid5

from duetime.engine.commands import Commands
from duetime.errors import InvalidInput
from duetime.model.ids import fire_id
from duetime.model.instant import Micros
from duetime.model.job import JobDraft, JobFilter, State
from duetime.model.schedule import Schedule
from duetime.store import Store

MOST_FIRES = 1_000  # in one call; the answer says where to go on
PAGE = 1_000
NOT_RUN = frozenset({State.SKIPPED, State.CANCELLED})


class Plan(NamedTuple):
    start: Micros  # included
    end: Micros  # excluded, and never later than now
    spacing: Micros = 0  # between the due times of two jobs
    most: int = MOST_FIRES


class Backfilled(NamedTuple):
    jobs: list[UUID]  # one for each fire that had none, oldest first
    covered: int  # fires that have a job already
    next_start: Micros | None  # where the next call goes on; None: the range is done


async def carry_out(store: Store, commands: Commands, schedule: Schedule, plan: Plan) -> Backfilled:
    now = await commands.now()
    end = min(plan.end, now)
    if plan.start >= end:
        raise InvalidInput("from", "must be before `to`, and in the past: fires to come are planned by the schedule itself")
    moments = list(islice(_fires(schedule, plan.start, end), plan.most + 1))
    rest = moments.pop() if len(moments) > plan.most else None
    present = await _present(store, schedule, plan.start, end if rest is None else rest)
    wanted = [moment for moment in moments if moment not in present]
    drafts = [_draft(schedule, moment, now + number * plan.spacing) for number, moment in enumerate(wanted)]
    stored = await store.add_jobs(drafts, again=True) if drafts else []
    return Backfilled(stored, len(moments) - len(wanted), rest)


def _fires(schedule: Schedule, start: Micros, end: Micros) -> Iterator[Micros]:
    draft = schedule.draft
    moment = draft.when.next_us(start - 1)
    while moment is not None and moment < end:
        yield moment
        moment = draft.when.next_us(moment)


async def _present(store: Store, schedule: Schedule, start: Micros, end: Micros) -> set[Micros]:
    """Fire times in the range that a job stands for which ran, runs or waits."""
    wanted = JobFilter(schedule.draft.tenant, schedule=schedule.draft.name)
    before = (end, UUID(int=0))
    present: set[Micros] = set()
    while found := await store.list_jobs(wanted, PAGE, before):
        present.update(job.fire_time for job in found if job.state not in NOT_RUN and job.schedule_id == schedule.id)
        before = (found[-1].fire_time, found[-1].id)
        if before[0] < start:
            break
    return present


def _draft(schedule: Schedule, moment: Micros, due_at: Micros) -> JobDraft:
    draft = schedule.draft
    return JobDraft(
        fire_id(uuid5(schedule.id, "backfill"), moment), draft.tenant, schedule.id, draft.name, moment, due_at, draft.queue,
        draft.priority, draft.overlap, draft.target, draft.target_spec, draft.payload, draft.policies, draft.owner, draft.labels, None,
        None, draft.gate,
    )  # fmt: skip
