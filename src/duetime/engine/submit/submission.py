"""The one path of new jobs into the store: `Task.submit`, `App.submit` and `POST /jobs` end in `submit`, bulk
requests in `submit_many`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from duetime.engine.node.loop import without_collecting
from duetime.engine.submit.build import (
    NO_DEFAULTS,
    Defaults,
    NewJob,
    at_number,
    job_draft,
    job_drafts,
    refuse_rule,
    rule_of,
)
from duetime.engine.submit.commands import Commands
from duetime.errors import InvalidInput, InvalidPayload
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.unique import Rule
from duetime.tracing import Tracer, TracerSlot

NULL_PAYLOAD = Defaults(encode=lambda _: b"null")


class JobRequest(NamedTuple):
    """A job to submit whose target may be other than a task."""

    new: NewJob
    spec: bytes | None = None  # of a target that is not a task; `new.task` is then its kind, such as "@http"
    null_payload: bool = False  # the payload is JSON null, not left out


Request = NewJob | JobRequest


class SubmittedJob(NamedTuple):
    draft: JobDraft
    id: UUID
    conflict: str | None  # as JobHandle.conflict


@dataclass(frozen=True, slots=True)
class Submission:
    """For one tenant. `resolve` gives the name of a task and its defaults, None if it is not registered in
    this process; `published` gives the defaults that other processes have published for it.

    Jobs are durable when a call returns; with a connection of the caller, when the caller commits."""

    commands: Commands
    ids: Ids
    tenant: str
    resolve: Callable[[Any], tuple[str, Defaults | None]]
    published: Callable[[str], Awaitable[Defaults]]
    tracing: TracerSlot = field(default_factory=TracerSlot)

    async def submit(
        self, request: Request, defaults: Defaults | None = None, connection: Any = None
    ) -> SubmittedJob:
        """Store one job. `defaults` are those of its task, if the caller knows them."""
        draft, rule = await self.build(request, defaults)
        await self.commands.quota.check([draft])
        tracer = self.tracing.tracer
        if tracer is not None:
            return await self._submit_traced(tracer, draft, rule, connection)
        return await self._store(draft, rule, connection)

    async def _submit_traced(
        self, tracer: Tracer, draft: JobDraft, rule: Rule | None, connection: Any
    ) -> SubmittedJob:
        with tracer.send([draft], await self.commands.moment()) as [traced]:
            return await self._store(traced, rule, connection)

    async def _store(self, draft: JobDraft, rule: Rule | None, connection: Any) -> SubmittedJob:
        if connection is not None:
            refuse_rule(rule)
            [job_id] = await self.commands.submit_within(connection, [draft])
        elif rule is not None:
            admission = await self.commands.admit(draft, rule)
            return SubmittedJob(draft, admission.id, admission.conflict)
        else:
            [job_id] = await self.commands.submit_many([draft])
        return SubmittedJob(draft, job_id, None if job_id is draft.id or job_id == draft.id else "skipped")

    async def submit_many(self, requests: Sequence[Request], connection: Any = None) -> list[SubmittedJob]:
        """Store all of them or none."""
        drafts = await self.build_many(requests)
        await self.commands.quota.check(drafts)
        tracer = self.tracing.tracer
        if tracer is not None and drafts:
            with tracer.send(drafts, await self.commands.moment()) as traced:
                return await self._store_many(traced, connection)
        return await self._store_many(drafts, connection)

    async def _store_many(self, drafts: Sequence[JobDraft], connection: Any) -> list[SubmittedJob]:
        if connection is not None:
            return submitted(drafts, await self.commands.submit_within(connection, drafts))
        return submitted(drafts, await self.commands.submit_many(drafts))

    async def build(self, request: Request, defaults: Defaults | None = None) -> tuple[JobDraft, Rule | None]:
        """The row, and the job's own uniqueness rule if it has one: the store applies it when it adds the
        job."""
        new, spec = request, None
        if defaults is None or not isinstance(new, NewJob):
            new, own, spec = self._resolved(new)
            defaults = await self.published(new.task) if own is None else own
        draft = job_draft(self.ids, self.tenant, new, defaults, await self.commands.moment())
        return draft if spec is None else draft._replace(target_spec=spec), rule_of(new, defaults)

    async def build_many(self, requests: Sequence[Request]) -> list[JobDraft]:
        """Errors name the job: `jobs[3].priority`. In bulk, jobs cannot have their own uniqueness rules."""
        now, published = await self.commands.moment(), await self._published(requests)
        with without_collecting():
            return self._build_many(requests, published, now)

    def _build_many(
        self, requests: Sequence[Request], published: Mapping[str, Defaults], now: Micros
    ) -> list[JobDraft]:
        pairs: list[tuple[NewJob, Defaults]] = []
        specs: dict[int, bytes] = {}
        task, name, known = None, "", NO_DEFAULTS  # of the previous job: there are few tasks and many jobs
        for number, request in enumerate(requests):
            if type(request) is NewJob and request.task is task and task is not None:
                new, defaults = request if task is name else request._replace(task=name), known
            else:
                if not isinstance(request, NewJob | JobRequest):
                    remedy = "write dt.NewJob(task, payload)"
                    raise InvalidInput(f"jobs[{number}]", f"{request!r} is not a NewJob: {remedy}")
                try:
                    new, own, spec = self._resolved(request)
                except InvalidInput as problem:
                    raise at_number(problem, number) from problem
                defaults = published[new.task] if own is None else own
                if spec is not None:
                    specs[number] = spec
                elif isinstance(request, NewJob):
                    task, name, known = request.task, new.task, defaults
            if new.unique is not None or new.on_conflict is not None or defaults.unique is not None:
                _refuse_rule(new, defaults, number)
            pairs.append((new, defaults))
        drafts = job_drafts(self.ids, self.tenant, pairs, now)
        for number, spec in specs.items():
            drafts[number] = drafts[number]._replace(target_spec=spec)
        return drafts

    def _resolved(self, request: Request) -> tuple[NewJob, Defaults | None, bytes | None]:
        """The job under the name of its task, the defaults if they are known here, and the spec of a target
        that is not a task."""
        if isinstance(request, NewJob):
            new = request
        else:
            new, spec, null_payload = request
            if spec is not None:
                return new, NULL_PAYLOAD if null_payload else NO_DEFAULTS, spec
            if null_payload or not (new.payload is None or isinstance(new.payload, dict)):
                raise InvalidPayload("payload", "a task takes named arguments: give an object")
        name, defaults = self.resolve(new.task)
        return new if new.task is name else new._replace(task=name), defaults, None

    async def _published(self, requests: Sequence[Request]) -> dict[str, Defaults]:
        """By name, of the tasks that are not registered in this process."""
        jobs = (
            request.new if isinstance(request, JobRequest) and request.spec is None else request
            for request in requests
        )
        unknown = set()
        for name in {new.task for new in jobs if isinstance(new, NewJob) and isinstance(new.task, str)}:
            with suppress(InvalidInput):  # reported later, with the number of the job
                if self.resolve(name)[1] is None:
                    unknown.add(name)
        return {name: await self.published(name) for name in unknown}


def _refuse_rule(new: NewJob, defaults: Defaults, number: int) -> None:
    try:
        refuse_rule(rule_of(new, defaults))
    except InvalidInput as problem:
        raise at_number(problem, number) from problem


def submitted(drafts: Sequence[JobDraft], ids: Sequence[UUID]) -> list[SubmittedJob]:
    with without_collecting():
        conflicts = [
            None if own is draft.id or own == draft.id else "skipped"
            for own, draft in zip(ids, drafts, strict=True)
        ]
        return list(map(SubmittedJob._make, zip(drafts, ids, conflicts, strict=True)))
