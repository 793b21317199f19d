"""Builds job rows from what callers send: applies the task's defaults and validates every option."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

from duetime.engine.submit.validate import (
    check_arguments,
    check_delivery,
    check_key,
    check_name,
    check_priority,
    check_retry,
    check_type,
    encode_labels,
)
from duetime.errors import InvalidInput
from duetime.model import duration, expiry, instant, jitter
from duetime.model.codec import decode, encode, encode_payload
from duetime.model.duration import Duration
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.job import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    DeliveryName,
    Job,
    JobDraft,
    overlap_if_asked_for,
)
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.trace import CHILD, LINKED
from duetime.model.unique import LIVE, ConflictName, OnConflict, Rule, Unique

# The limit key and the unique key of a job, both derived from its arguments.


MAX_VALUE_LENGTH = 200  # longer ones are hashed
PLAIN_RULE = Rule(LIVE, None, OnConflict.SKIP)  # every store applies this one to any job with a key
UNIQUE_BY_ALL = Unique()


def limit_key(task: str, limit: Limit, arguments: Mapping[str, Any], owner: str | None, tenant: str) -> str:
    """Jobs with the same key share the limit. An argument called `tenant` takes precedence over the
    tenant."""
    match limit.per:
        case None:
            return task
        case name if name in arguments:
            return _key(task, arguments[name])
        case "owner":
            return _key(task, owner)
        case "tenant":
            return _key(task, tenant)
        case _:
            return _key(task, None)


def unique_key(task: str, by: Sequence[str] | None, arguments: Mapping[str, Any]) -> str:
    return _key(task, arguments if by is None else {name: arguments.get(name) for name in by})


def unique_of(
    own: Unique | bool | None, on_conflict: ConflictName | None, has_key: bool, registered: Unique | None
) -> Unique | None:
    """The uniqueness of a job: the call's own, or that of its task."""
    unique = registered if own is None else check_unique(own, registered)
    if has_key and isinstance(own, Unique) and own.by is not None:
        raise InvalidInput(
            "unique.by", "unique_key already identifies the job: give either unique_key or unique.by"
        )
    if on_conflict is None:
        return unique
    if unique is None and not has_key:
        raise InvalidInput(
            "on_conflict", "only applies to unique jobs: also give a unique_key or unique=True"
        )
    return replace(unique or UNIQUE_BY_ALL, on_conflict=on_conflict)


def check_unique(value: Any, registered: Unique | None = None) -> Unique | None:
    """False: not unique. True: as registered, or by all arguments."""
    if isinstance(value, bool):
        return (registered or UNIQUE_BY_ALL) if value else None
    return check_type(value, Unique, "unique", 'unique=True, or dt.Unique(by=["customer"])')


def _key(task: str, value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    short = text if len(text) <= MAX_VALUE_LENGTH else blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{task}/{short}"


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
    delivery: DeliveryName | None = None
    owner: str | None = None
    labels: Mapping[str, str] | None = None
    unique: Unique | bool | None = None  # None: the task's
    on_conflict: ConflictName | None = None
    expires: Duration | datetime | None = None  # skip the job if it has not started by then
    jitter: Duration | None = None  # such as "30s" or "1s..5s"


JOB_OPTIONS = tuple(name for name in NewJob._fields if name not in ("task", "payload"))


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a task's registration sets for jobs that do not set it themselves."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    delivery: str | None = None  # stored with every job, because the reaper may not know the task
    version: int = 1  # of the payload
    encode: Callable[[Any], bytes] = encode_payload
    limit: Limit | None = None
    unique: Unique | None = None
    names: frozenset[str] | None = None  # of the task's arguments; None: any
    left_out: Mapping[str, Any] = field(default_factory=dict)  # default values of arguments
    about: Mapping[str, Any] = field(default_factory=dict)  # for people: doc, arguments and policies, as JSON

    def arguments(self, payload: bytes) -> dict[str, Any]:
        """All arguments of the call, as JSON values."""
        value = decode(payload)
        return {**self.left_out, **value} if isinstance(value, dict) else {"": value}

    def limit_key(self, task: str, payload: bytes, owner: str | None, tenant: str) -> str | None:
        return (
            None
            if self.limit is None
            else limit_key(task, self.limit, self.arguments(payload), owner, tenant)
        )

    def unique_key(self, task: str, unique: Unique, payload: bytes) -> str:
        check_arguments("unique.by", unique.by or (), self.names)
        return unique_key(task, unique.by, self.arguments(payload))


NO_DEFAULTS = Defaults()


def job_draft(ids: Ids, tenant: str, new: NewJob, defaults: Defaults, now: Micros) -> JobDraft:
    fire_time = now if new.at is None and new.delay is None else fire_time_of(new.at, new.delay, now)
    return _draft(ids.new(fire_time), tenant, new, defaults, fire_time)


def job_drafts(ids: Ids, tenant: str, jobs: Iterable[tuple[NewJob, Defaults]], now: Micros) -> list[JobDraft]:
    pairs = list(jobs)
    try:
        times = [
            now if new.at is None and new.delay is None else fire_time_of(new.at, new.delay, now)
            for new, _ in pairs
        ]
        made = ids.new_many(times)
        return [
            _draft(job_id, tenant, new, defaults, time)
            for job_id, (new, defaults), time in zip(made, pairs, times, strict=True)
        ]
    except InvalidInput as problem:
        raise _numbered(problem, ids, tenant, pairs, now) from None


def _numbered(
    problem: InvalidInput, ids: Ids, tenant: str, pairs: Sequence[tuple[NewJob, Defaults]], now: Micros
) -> InvalidInput:
    """The problem with the number of its job. The job is searched for only now, so that valid batches need no
    counting."""
    for number, (new, defaults) in enumerate(pairs):
        try:
            _draft(ids.new(now), tenant, new, defaults, fire_time_of(new.at, new.delay, now))
        except InvalidInput as found:
            return at_number(found, number)
    return problem


def at_number(problem: InvalidInput, number: int) -> InvalidInput:
    return type(problem)(f"jobs[{number}].{problem.field}", problem.reason)


def _draft(job_id: UUID, tenant: str, new: NewJob, defaults: Defaults, fire_time: Micros) -> JobDraft:
    (
        task,
        arguments,
        _,
        _,
        priority,
        queue,
        key,
        timeout,
        retry,
        delivery,
        owner,
        labels,
        unique,
        on_conflict,
        expires,
        spread,
    ) = new
    payload = defaults.encode({} if arguments is None else arguments)
    if key is not None:
        check_key(key)
    elif unique is not None or on_conflict is not None or defaults.unique is not None:
        rule = unique_of(unique, on_conflict, False, defaults.unique)
        key = None if rule is None else defaults.unique_key(task, rule, payload)
    due_at = fire_time if spread is None else fire_time + jitter.delay(job_id, jitter.normalized(spread))
    if expires is not None and expiry.expires_at(expiry.show(expires), due_at) < due_at:
        raise InvalidInput("expires", f"{expires} is before the job is due: it would never start")
    return JobDraft(
        job_id,
        tenant,
        None,
        None,
        fire_time,
        due_at,
        defaults.queue if queue is None else check_name(queue, "queue"),
        defaults.priority if priority is None else check_priority(priority),
        None,
        task,
        None,
        payload,
        policies(
            timeout, retry, defaults.delivery if delivery is None else delivery, defaults.version, expires
        ),
        owner if owner is None else check_name(owner, "owner"),
        labels if labels is None else encode_labels(labels),
        key,
        None,
        None if defaults.limit is None else defaults.limit_key(task, payload, owner, tenant),
    )


def retry_draft(job_id: UUID, job: Job, payload: Any, defaults: Defaults, now: Micros) -> JobDraft:
    """A new job, due now, that repeats a dead letter or a skipped job; with its payload unless another one is
    given."""
    data = job.payload if payload is None else defaults.encode(payload)
    own = without_expiry(job.policies)
    return JobDraft(
        job_id, job.tenant, job.schedule_id, job.schedule, job.fire_time, now, job.queue, job.priority,
        overlap_if_asked_for(job.overlap), job.target, job.target_spec, data,
        own if payload is None else at_version(own, defaults.version), job.owner,
        job.labels, _retry_key(job, data, defaults), job.id,
        defaults.limit_key(job.target, data, job.owner, job.tenant) or job.limit_key,
    )  # fmt: skip


def _retry_key(job: Job, payload: bytes, defaults: Defaults) -> str | None:
    """A key derived from the arguments is derived again; any other key stays."""
    unique = defaults.unique
    if (
        unique is None
        or job.unique_key is None
        or job.unique_key != defaults.unique_key(job.target, unique, job.payload)
    ):
        return job.unique_key
    return defaults.unique_key(job.target, unique, payload)


def rule_of(new: NewJob, defaults: Defaults) -> Rule | None:
    """The rule by which the store admits this job; None if its key alone decides."""
    if new.unique is None and new.on_conflict is None and defaults.unique is None:
        return None
    unique = unique_of(new.unique, new.on_conflict, new.unique_key is not None, defaults.unique)
    return None if unique is None or unique.rule == PLAIN_RULE else unique.rule


def refuse_rule(rule: Rule | None) -> None:
    """In bulk, or within the caller's transaction, only the key decides."""
    if rule is not None:
        raise InvalidInput(
            "unique",
            "in bulk and within your own transaction, jobs can only be skipped while a job with the same key "
            "is live: leave out states, within and on_conflict, or submit the job by itself",
        )


def fire_time_of(at: datetime | None, delay: Duration | None, now: Micros) -> Micros:
    if at is not None and delay is not None:
        raise InvalidInput("delay", "give either `at` or `delay`, not both")
    if at is not None:
        return instant.read(at, "at")
    return now if delay is None else now + duration.parse(delay, "delay")


def policies(
    timeout: Duration | None,
    retry: Retry | None,
    delivery: str | None,
    version: int = 1,
    expires: Duration | datetime | None = None,
) -> bytes | None:
    """JSON of what differs from the target's defaults; None if nothing does."""
    if timeout is None and retry is None and delivery is None and version == 1 and expires is None:
        return None
    own: dict[str, Any] = {}
    if timeout is not None:
        own["timeout"] = duration.show(duration.positive(timeout, "timeout"))
    if retry is not None:
        own["retry"] = check_retry(retry).to_json()
    if delivery is not None:
        own["delivery"] = check_delivery(delivery).value
    if expires is not None:
        own["expires"] = expiry.show(expires)
    return _encoded(own, version)


def without_expiry(stored: bytes | None) -> bytes | None:
    """The policies of a job that an operator runs again, however late."""
    own = {} if stored is None else decode(stored)
    for name in ("expires", CHILD, LINKED):  # it is not part of the trace of the first submission
        own.pop(name, None)
    return encode(own) if own else None


def at_version(stored: bytes | None, version: int) -> bytes | None:
    """The policies of a job whose payload is now of this version."""
    own = {} if stored is None else decode(stored)
    own.pop("version", None)
    return _encoded(own, version)


def _encoded(own: dict[str, Any], version: int) -> bytes | None:
    if version != 1:
        own["version"] = version
    return encode(own) if own else None
