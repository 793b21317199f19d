"""The simulated client: submits, schedules, edits, pauses, cancels and retries with the real commands. It
repeats unclear calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from duetime.engine.submit.build import Defaults, NewJob, job_draft, job_drafts
from duetime.engine.submit.commands import Commands
from duetime.engine.submit.schedules import schedule_draft
from duetime.errors import DuetimeError, StoreUnavailable
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Delivery, JobDraft, JobFilter, Overlap, State
from duetime.model.limit import Queue
from duetime.model.retry import Retry
from duetime.model.schedule import Missed, ScheduleDraft
from duetime.model.unique import LIVE, OnConflict, Rule
from duetime.model.when import At, Cron, Every, When
from duetime.store import Store
from duetime.testing.simulation.tasks import (
    KINDS,
    LIMITED_KINDS,
    MAX_RUN_TIME,
    PERMIT_KINDS,
    SAFE_KINDS,
    WRITING_KINDS,
)

TENANT = "default"
QUEUES = ("default", "default", "mail", "reports")
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
QUICK = tuple(name for name, kind in KINDS.items() if kind.quick)
Answer = TypeVar("Answer")


class SimulatedClient:
    def __init__(
        self,
        commands: Commands,
        store: Store,
        chance: Random,
        acknowledged: Callable[[UUID, JobDraft | None], None],
    ) -> None:
        self._commands = commands
        self._store = store
        self._chance = chance
        self._ids = Ids(chance.randbytes)
        self._acknowledged = acknowledged
        self._submitted: list[UUID] = []
        self.gap = 0.3  # seconds between requests, on average
        self.active = True
        self.disruptive = True

    async def run(self) -> None:
        for _ in range(2):
            asyncio.get_running_loop().create_task(self._request(SimulatedClient.put))
        while self.active:
            [request] = self._chance.choices(_REQUESTS, _WEIGHTS)
            asyncio.get_running_loop().create_task(self._request(request))
            await asyncio.sleep(self.gap * 2 * self._chance.random())

    async def _request(self, request: Callable[[SimulatedClient], Awaitable[None]]) -> None:
        try:
            await request(self)
        except DuetimeError:
            return  # refused or unclear: the invariants check the outcome

    # -- jobs ------------------------------------------------------------------------------------------------
    async def submit(self) -> None:
        now = await self._commands.now()
        new = self._new_job(now)
        draft = self._limited(job_draft(self._ids, TENANT, new, _defaults(new.task), now))
        stored = await self._repeat(lambda: self._commands.submit(draft))
        self._acknowledged(stored, draft)
        self._submitted.append(stored)

    async def submit_unique(self) -> None:
        """With a random rule: an existing job may win, be replaced, be rescheduled or give up its key."""
        now = await self._commands.now()
        new = self._new_job(now)._replace(unique_key=f"key-{self._chance.randrange(3)}")
        draft = self._limited(job_draft(self._ids, TENANT, new, _defaults(new.task), now))
        states = LIVE if self._chance.random() < 0.7 else LIVE - {State.RUNNING}
        rule = Rule(states, self._chance.choice((None, SECOND)), self._chance.choice(list(OnConflict)))
        again = iter((False, True, True, True))
        admission = await self._repeat(lambda: self._store.add_unique(draft, rule, next(again)))
        self._acknowledged(admission.id, draft)

    async def pause_queue(self) -> None:
        if self.disruptive:
            queue = self._chance.choice(QUEUES)
            await self._repeat(lambda: self._store.set_queue(Queue(queue, paused=True)))
            await asyncio.sleep(self._chance.random())
            await self._repeat(lambda: self._store.set_queue(Queue(queue)))

    async def submit_many(self) -> None:
        now = await self._commands.now()
        limited_kind = self._chance.choice(LIMITED_KINDS) if self._chance.random() < 0.5 else None
        news = [self._new_job(now, limited_kind) for _ in range(self._chance.randint(2, 8))]
        drafts = [
            self._limited(draft)
            for draft in job_drafts(self._ids, TENANT, [(new, _defaults(new.task)) for new in news], now)
        ]
        for stored, draft in zip(
            await self._repeat(lambda: self._commands.submit_many(drafts)), drafts, strict=True
        ):
            self._acknowledged(stored, draft)

    async def submit_burst(self) -> None:
        """More jobs of one limit key than may run at the same time: the others wait for their permits."""
        now = await self._commands.now()
        kind = self._chance.choice(PERMIT_KINDS)
        key = f"{kind}/{self._chance.randrange(2)}"
        news = [
            NewJob(kind, self._payload(kind), queue=self._chance.choice(QUEUES[1:3]))
            for _ in range(self._chance.randint(4, 12))
        ]
        drafts = [
            draft._replace(limit_key=key)
            for draft in job_drafts(self._ids, TENANT, [(new, _defaults(kind)) for new in news], now)
        ]
        for stored, draft in zip(
            await self._repeat(lambda: self._commands.submit_many(drafts)), drafts, strict=True
        ):
            self._acknowledged(stored, draft)

    async def cancel(self) -> None:
        if self._submitted:
            job_id = self._chance.choice(self._submitted[-5:])
            await self._repeat(
                lambda: self._commands.cancel_job(TENANT, job_id, "cancelled by the simulation")
            )

    async def retry_dead(self) -> None:
        listed = await self._store.list_jobs(
            JobFilter(TENANT, states=frozenset({State.DEAD}), undisposed=True), 5
        )
        dead = [job for job in listed if job.unique_key is None]  # another job may have the key by now
        if dead and self._chance.random() < 0.3:
            await self._commands.discard_job(TENANT, dead[0].id)
        elif dead:
            self._acknowledged(await self._commands.retry_job(TENANT, dead[0].id), None)

    # -- schedules -------------------------------------------------------------------------------------------
    async def put(self) -> None:
        draft = self._schedule(await self._commands.now())
        replacing = self._chance.random() < 0.7
        await self._repeat(lambda: self._commands.put_schedule(draft, replacing))

    async def pause(self) -> None:
        name = self._chance.choice(NAMES)
        await self._repeat(lambda: self._commands.pause_schedule(TENANT, name, None))

    async def resume(self) -> None:
        name = self._chance.choice(NAMES)
        await self._repeat(lambda: self._commands.resume_schedule(TENANT, name))

    async def remove(self) -> None:
        name = self._chance.choice(NAMES)
        await self._repeat(lambda: self._commands.remove_schedule(TENANT, name))

    async def trigger(self) -> None:
        name = self._chance.choice(NAMES)
        self._acknowledged(await self._commands.trigger_schedule(TENANT, name), None)

    # -- choices ---------------------------------------------------------------------------------------------
    def _new_job(self, now: int, kind: str | None = None) -> NewJob:
        chance = self._chance
        kinds = WRITING_KINDS if chance.random() < 0.25 else SAFE_KINDS
        kind = kind or ("deadly" if self.disruptive and chance.random() < 0.03 else chance.choice(kinds))
        key = f"key-{chance.randrange(3)}" if chance.random() < 0.15 else None
        retry = Retry(chance.randint(1, 2), "300ms", 2.0, "1s") if chance.random() < 0.1 else None
        draw = chance.random()
        at = to_datetime(now) - timedelta(seconds=chance.choice((0.5, 8, 30))) if draw < 0.12 else None
        delay = timedelta(seconds=3 * chance.random()) if 0.12 <= draw < 0.5 else None
        queue, priority = chance.choice(QUEUES), chance.choice((1, 5, 5, 9))
        return NewJob(kind, self._payload(kind), at, delay, priority, queue, key, retry=retry)

    def _limited(self, draft: JobDraft) -> JobDraft:
        """Sets the limit key, as for a registered task with a limit."""
        return (
            draft._replace(limit_key=f"{draft.target}/{self._chance.randrange(2)}")
            if draft.target in LIMITED_KINDS
            else draft
        )

    def _payload(self, kind: str) -> dict[str, Any]:
        most = MAX_RUN_TIME / SECOND / 2 if KINDS[kind].long else 0.3
        return {
            "seconds": round(most * self._chance.random(), 3),
            "failures": self._chance.choice((0, 1, 1, 2)),
        }

    def _schedule(self, now: int) -> ScheduleDraft:
        chance = self._chance
        overlap = chance.choice(list(Overlap))
        kind = chance.choice(QUICK if overlap is Overlap.QUEUE else SAFE_KINDS)
        options: dict[str, Any] = {
            "payload": self._payload(kind),
            "overlap": overlap,
            "missed": Missed.restore(
                {
                    "policy": chance.choice(("latest", "all", "all", "skip")),
                    "within": chance.choice((None, "8s")),
                    "max": chance.choice((None, 3)),
                }
            ),
            "jitter": chance.choice(("0s", "0s", "250ms", "100ms..250ms")),
            "max_runs": chance.choice((None, None, None, 6)),
            "queue": chance.choice(QUEUES),
        }
        name = chance.choice(NAMES)
        draft = schedule_draft(self._ids, TENANT, name, kind, self._when(now), _defaults(kind), now, options)
        return replace(draft, limit_key=f"{kind}/0") if kind in LIMITED_KINDS else draft

    def _when(self, now: int) -> When:
        chance = self._chance
        draw = chance.random()
        if draw < 0.5:
            return Cron(f"{chance.choice(('*', '*/2', '*/7'))} * * * * *")
        if draw < 0.9:
            return Every(chance.choice(("700ms", "1s", "2500ms")), to_datetime(chance.randrange(SECOND)))
        return At(to_datetime(now) + timedelta(seconds=4 * chance.random()))

    async def _repeat(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Whether an unclear call was committed is settled by repeating it; some callers give up."""
        for _ in range(3):
            try:
                return await call()
            except StoreUnavailable:
                if self._chance.random() < 0.3:
                    raise
                await asyncio.sleep(0.2 * self._chance.random())
        return await call()


def _defaults(kind: str) -> Defaults:
    """As for a registered task: a delivery other than the default is stored with the job."""
    delivery = KINDS[kind].policies.delivery
    return Defaults(delivery=None if delivery is Delivery.AT_LEAST_ONCE else delivery.value)


_REQUESTS = (
    SimulatedClient.submit,
    SimulatedClient.submit_many,
    SimulatedClient.cancel,
    SimulatedClient.retry_dead,
    SimulatedClient.put,
    SimulatedClient.pause,
    SimulatedClient.resume,
    SimulatedClient.remove,
    SimulatedClient.trigger,
    SimulatedClient.submit_unique,
    SimulatedClient.pause_queue,
    SimulatedClient.submit_burst,
)
_WEIGHTS = (38, 4, 8, 4, 22, 7, 9, 3, 7, 6, 2, 3)
