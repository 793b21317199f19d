"""From what a caller wrote to rows the store takes: every option checked, every error naming its field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from duetime.engine.checks import (
    check_arguments,
    check_delivery,
    check_key,
    check_max_runs,
    check_missed,
    check_name,
    check_overlap,
    check_priority,
    check_retry,
    encode_labels,
    refuse_unknown,
)
from duetime.engine.identity import PLAIN_RULE, gate_name, key_name, unique_of
from duetime.errors import InvalidInput, UnknownOption
from duetime.model import duration, instant
from duetime.model.codec import decode, encode, encode_payload
from duetime.model.duration import Duration
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, Job, JobDraft, Overlap
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.schedule import Missed, ScheduleDraft
from duetime.model.unique import Rule, Unique
from duetime.model.when import At, Cron, Every, RRule, When, seeded

NO_ARGUMENTS = b"{}"


class NewJob(NamedTuple):
    """A job to submit with `submit_many`. A tuple, because there may be millions."""

    task: Any  # a task, or its name
    payload: Any = None  # None: no arguments
    at: datetime | None = None
    delay: Duration | None = None
    priority: int | None = None
    queue: str | None = None
    unique_key: str | None = None
    timeout: Duration | None = None
    retry: Retry | None = None
    delivery: str | None = None
    owner: str | None = None
    labels: Mapping[str, str] | None = None
    unique: Unique | bool | None = None  # None: as the task says
    on_conflict: str | None = None


JOB_OPTIONS = tuple(name for name in NewJob._fields if name not in ("task", "payload"))


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a task's registration says for jobs that do not say otherwise."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    delivery: str | None = None  # carried by every job, so that whoever finds it orphaned knows
    version: int = 1  # of the payload
    encode: Callable[[Any], bytes] = encode_payload
    limit: Limit | None = None
    unique: Unique | None = None
    names: frozenset[str] | None = None  # of the task's arguments; None: any
    left_out: Mapping[str, Any] = field(default_factory=dict)  # what arguments have which a caller leaves out

    def arguments(self, payload: bytes) -> dict[str, Any]:
        """All that the task will be called with, as JSON has it."""
        value = decode(payload)
        return {**self.left_out, **value} if isinstance(value, dict) else {"": value}

    def gate(self, task: str, payload: bytes, owner: str | None, tenant: str) -> str | None:
        return None if self.limit is None else gate_name(task, self.limit, self.arguments(payload), owner, tenant)

    def key(self, task: str, unique: Unique, payload: bytes) -> str:
        check_arguments("unique.by", unique.by or (), self.names)
        return key_name(task, unique.by, self.arguments(payload))


NO_DEFAULTS = Defaults()


def job_draft(ids: Ids, tenant: str, new: NewJob, defaults: Defaults, now: Micros) -> JobDraft:
    fire_time = fire_time_of(new.at, new.delay, now)
    return _draft(ids.new(fire_time), tenant, new, defaults, fire_time)


def job_drafts(ids: Ids, tenant: str, wanted: Iterable[tuple[NewJob, Defaults]], now: Micros) -> list[JobDraft]:
    pairs = list(wanted)
    try:
        times = [now if new.at is None and new.delay is None else fire_time_of(new.at, new.delay, now) for new, _ in pairs]
        made = ids.new_many(times)
        return [_draft(job_id, tenant, new, defaults, time) for job_id, (new, defaults), time in zip(made, pairs, times, strict=True)]
    except InvalidInput as problem:
        raise _numbered(problem, ids, tenant, pairs, now) from None


def _numbered(problem: InvalidInput, ids: Ids, tenant: str, pairs: Sequence[tuple[NewJob, Defaults]], now: Micros) -> InvalidInput:
    """The same, told with the job it is about: looked for only now, so that jobs without a mistake need not be counted."""
    for number, (new, defaults) in enumerate(pairs):
        try:
            _draft(ids.new(now), tenant, new, defaults, fire_time_of(new.at, new.delay, now))
        except InvalidInput as found:
            return type(found)(f"jobs[{number}].{found.field}", found.reason)
    return problem


def _draft(job_id: UUID, tenant: str, new: NewJob, defaults: Defaults, fire_time: Micros) -> JobDraft:
    task, arguments, _, _, priority, queue, unique_key, timeout, retry, delivery, owner, labels, unique, on_conflict = new
    payload = NO_ARGUMENTS if arguments is None else defaults.encode(arguments)
    if unique_key is not None:
        check_key(unique_key)
    elif unique is not None or on_conflict is not None or defaults.unique is not None:
        rule = unique_of(unique, on_conflict, False, defaults.unique)
        unique_key = None if rule is None else defaults.key(task, rule, payload)
    return JobDraft(
        job_id,
        tenant,
        None,
        None,
        fire_time,
        fire_time,
        defaults.queue if queue is None else check_name(queue, "queue"),
        defaults.priority if priority is None else check_priority(priority),
        None,
        task,
        None,
        payload,
        policies(timeout, retry, delivery or defaults.delivery, defaults.version),
        owner if owner is None else check_name(owner, "owner"),
        labels if labels is None else encode_labels(labels),
        unique_key,
        None,
        None if defaults.limit is None else defaults.gate(task, payload, owner, tenant),
    )


def revived_draft(job_id: UUID, job: Job, payload: Any, defaults: Defaults, now: Micros) -> JobDraft:
    """A dead letter as a new job that is due now; `payload`, unless it is None, takes the place of its own."""
    data = job.payload if payload is None else defaults.encode(payload)
    return JobDraft(
        job_id, job.tenant, job.schedule_id, job.schedule, job.fire_time, now, job.queue, job.priority, job.overlap, job.target,
        job.target_spec, data, job.policies if payload is None else at_version(job.policies, defaults.version), job.owner, job.labels,
        _key_again(job, data, defaults), job.id, defaults.gate(job.target, data, job.owner, job.tenant) or job.gate,
    )  # fmt: skip


def _key_again(job: Job, payload: bytes, defaults: Defaults) -> str | None:
    """A key that was made of the arguments is made of them again."""
    unique = defaults.unique
    made = job.unique_key is not None and unique is not None and job.unique_key == defaults.key(job.target, unique, job.payload)
    return defaults.key(job.target, unique, payload) if made and unique is not None else job.unique_key


def rule_of(new: NewJob, defaults: Defaults) -> Rule | None:
    """What the store has to decide about this job before it is stored; None when its key alone says it all."""
    if new.unique is None and new.on_conflict is None and defaults.unique is None:
        return None
    unique = unique_of(new.unique, new.on_conflict, new.unique_key is not None, defaults.unique)
    return None if unique is None or unique.rule == PLAIN_RULE else unique.rule


def refuse_rule(rule: Rule | None) -> None:
    """In bulk, or within a transaction of the caller's, a job can only be unique by its key."""
    if rule is not None:
        raise InvalidInput(
            "unique", "in bulk and within your own transaction a job can only be skipped while another with its key is live: leave out "
            "states, within and on_conflict, or submit it by itself",
        )  # fmt: skip


def check_schedule_options(options: Mapping[str, Any], arguments: Collection[str]) -> None:
    """Refuses what is no option of a schedule; `arguments` are the task's, which callers may take for such."""
    for name in options:
        if name in arguments and name not in SCHEDULE_OPTIONS:
            raise UnknownOption(name, f"is an argument of the task: write payload={{{name!r}: ...}}")
    refuse_unknown(options, SCHEDULE_OPTIONS)


def schedule_draft(
    ids: Ids, tenant: str, name: str, task: str, when: When, defaults: Defaults, now: Micros, options: Mapping[str, Any]
) -> ScheduleDraft:
    refuse_unknown(options, SCHEDULE_OPTIONS)
    if not isinstance(when, Cron | Every | At | RRule):
        raise InvalidInput("when", f"{when!r} is not a Cron, Every, At or RRule: write it like dt.Cron('0 9 * * MON') or dt.Every('5m')")
    owner = None if options.get("owner") is None else check_name(options["owner"], "owner")
    payload = defaults.encode(options.get("payload", {}))
    return ScheduleDraft(
        id=ids.new(now),
        tenant=tenant,
        name=check_name(name, "name"),
        when=seeded(when, name),
        target=task,
        target_spec=None,
        payload=payload,
        policies=policies(options.get("timeout"), options.get("retry"), options.get("delivery") or defaults.delivery, defaults.version),
        queue=check_name(options.get("queue", defaults.queue), "queue"),
        priority=check_priority(options.get("priority", defaults.priority)),
        overlap=check_overlap(options.get("overlap", Overlap.ALLOW)),
        missed=check_missed(options.get("missed", Missed())),
        jitter=duration.parse(options.get("jitter", "0s"), "jitter"),
        start_at=_instant(options, "start_at"),
        end_at=_instant(options, "end_at"),
        max_runs=check_max_runs(options.get("max_runs")),
        owner=owner,
        labels=None if options.get("labels") is None else encode_labels(options["labels"]),
        gate=defaults.gate(task, payload, owner, tenant),
    )


def declared(draft: ScheduleDraft, options: Mapping[str, Any]) -> ScheduleDraft:
    """Of a schedule what its caller said: without what follows from the task, which may change from one release to the next."""
    own = {} if draft.policies is None else decode(draft.policies)
    kept = {name: value for name, value in own.items() if name in options}
    queue = draft.queue if "queue" in options else ""
    return replace(draft, queue=queue, priority=draft.priority if "priority" in options else 0, gate=None, policies=encode(kept))


SCHEDULE_OPTIONS = (
    "payload", "missed", "overlap", "jitter", "start_at", "end_at", "max_runs", "queue", "priority", "timeout", "retry",
    "delivery", "owner", "labels",
)  # fmt: skip


def fire_time_of(at: datetime | None, delay: Duration | None, now: Micros) -> Micros:
    if at is not None and delay is not None:
        raise InvalidInput("delay", "give either `at` or `delay`, not both")
    if at is not None:
        return instant.read(at, "at")
    return now if delay is None else now + duration.parse(delay, "delay")


def policies(timeout: Duration | None, retry: Retry | None, delivery: str | None, version: int = 1) -> bytes | None:
    """JSON of what differs from the target's defaults; None when nothing does."""
    if timeout is None and retry is None and delivery is None and version == 1:
        return None
    own: dict[str, Any] = {}
    if timeout is not None:
        own["timeout"] = duration.show(duration.positive(timeout, "timeout"))
    if retry is not None:
        own["retry"] = check_retry(retry).to_json()
    if delivery is not None:
        own["delivery"] = check_delivery(delivery).value
    if version != 1:
        own["version"] = version
    return encode(own)


def at_version(stored: bytes | None, version: int) -> bytes | None:
    """A job's policies after its payload was written anew."""
    own = {} if stored is None else decode(stored)
    own.pop("version", None)
    if version != 1:
        own["version"] = version
    return encode(own) if own else None


def _instant(options: Mapping[str, Any], field: str) -> Micros | None:
    value = options.get(field)
    return None if value is None else instant.read(value, field)
