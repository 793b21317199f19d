"""From what a caller wrote to rows the store takes: every option checked, every error naming its field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, NamedTuple
from uuid import UUID

from duetime.errors import InvalidInput, UnknownOption
from duetime.model import duration, instant
from duetime.model.codec import encode, encode_payload
from duetime.model.duration import Duration
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, HIGHEST_PRIORITY, LOWEST_PRIORITY, Delivery, JobDraft, Overlap
from duetime.model.retry import Retry
from duetime.model.schedule import Missed, ScheduleDraft
from duetime.model.when import At, Cron, Every, RRule, When, seeded

LONGEST_NAME = 128
LONGEST_KEY = 512
NO_ARGUMENTS = b"{}"


class NewJob(NamedTuple):
    """A job to submit with `submit_many`. A tuple, because there may be millions."""

    task: str
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


JOB_OPTIONS = tuple(name for name in NewJob._fields if name not in ("task", "payload"))


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a task's registration says for jobs that do not say otherwise."""

    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    delivery: str | None = None  # carried by every job, so that whoever finds it orphaned knows


NO_DEFAULTS = Defaults()


def job_draft(ids: Ids, tenant: str, new: NewJob, defaults: Defaults, now: Micros) -> JobDraft:
    fire_time = fire_time_of(new.at, new.delay, now)
    return _draft(ids.new(fire_time), tenant, new, defaults, fire_time)


def job_drafts(ids: Ids, tenant: str, wanted: Iterable[tuple[NewJob, Defaults]], now: Micros) -> list[JobDraft]:
    pairs = list(wanted)
    times = [now if new.at is None and new.delay is None else fire_time_of(new.at, new.delay, now) for new, _ in pairs]
    made = ids.new_many(times)
    return [_draft(job_id, tenant, new, defaults, time) for job_id, (new, defaults), time in zip(made, pairs, times, strict=True)]


def _draft(job_id: UUID, tenant: str, new: NewJob, defaults: Defaults, fire_time: Micros) -> JobDraft:
    task, payload, _, _, priority, queue, unique_key, timeout, retry, delivery, owner, labels = new
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
        NO_ARGUMENTS if payload is None else encode_payload(payload),
        policies(timeout, retry, delivery or defaults.delivery),
        owner if owner is None else check_name(owner, "owner"),
        labels if labels is None else encode_labels(labels),
        unique_key if unique_key is None else check_key(unique_key),
        None,
    )


def schedule_draft(
    ids: Ids, tenant: str, name: str, task: str, when: When, defaults: Defaults, now: Micros, options: Mapping[str, Any]
) -> ScheduleDraft:
    refuse_unknown(options, SCHEDULE_OPTIONS)
    if not isinstance(when, Cron | Every | At | RRule):
        raise InvalidInput("when", f"{when!r} is not a Cron, Every, At or RRule")
    return ScheduleDraft(
        id=ids.new(now),
        tenant=tenant,
        name=check_name(name, "name"),
        when=seeded(when, name),
        target=task,
        target_spec=None,
        payload=encode_payload(options.get("payload", {})),
        policies=policies(options.get("timeout"), options.get("retry"), options.get("delivery") or defaults.delivery),
        queue=check_name(options.get("queue", defaults.queue), "queue"),
        priority=check_priority(options.get("priority", defaults.priority)),
        overlap=check_overlap(options.get("overlap", Overlap.ALLOW)),
        missed=check_missed(options.get("missed", Missed())),
        jitter=duration.parse(options.get("jitter", "0s"), "jitter"),
        start_at=_instant(options, "start_at"),
        end_at=_instant(options, "end_at"),
        max_runs=check_max_runs(options.get("max_runs")),
        owner=None if options.get("owner") is None else check_name(options["owner"], "owner"),
        labels=None if options.get("labels") is None else encode_labels(options["labels"]),
    )


SCHEDULE_OPTIONS = (
    "payload", "missed", "overlap", "jitter", "start_at", "end_at", "max_runs", "queue", "priority", "timeout", "retry",
    "delivery", "owner", "labels",
)  # fmt: skip


def refuse_unknown(options: Mapping[str, Any], known: Iterable[str]) -> None:
    for name in options:
        if name not in known:
            close = get_close_matches(name, known := list(known), 1)
            raise UnknownOption(name, f"no such option: {f'did you mean {close[0]!r}?' if close else 'known are ' + ', '.join(known)}")


def fire_time_of(at: datetime | None, delay: Duration | None, now: Micros) -> Micros:
    if at is not None and delay is not None:
        raise InvalidInput("delay", "give either `at` or `delay`, not both")
    if at is not None:
        return instant.read(at, "at")
    return now if delay is None else now + duration.parse(delay, "delay")


def policies(timeout: Duration | None, retry: Retry | None, delivery: str | None) -> bytes | None:
    """JSON of what differs from the target's defaults; None when nothing does."""
    if timeout is None and retry is None and delivery is None:
        return None
    own: dict[str, Any] = {}
    if timeout is not None:
        own["timeout"] = duration.show(duration.positive(timeout, "timeout"))
    if retry is not None:
        own["retry"] = check_retry(retry).to_json()
    if delivery is not None:
        own["delivery"] = check_delivery(delivery).value
    return encode(own)


def check_name(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST_NAME or not value.isprintable() or value != value.strip():
        raise InvalidInput(field, f"{value!r} must be 1 to {LONGEST_NAME} printable characters without blanks at the ends")
    if value == "*" or value.startswith("@"):
        raise InvalidInput(field, f"{value!r} is reserved: choose a name that is not '*' and does not begin with '@'")
    return value


def check_key(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST_KEY or not value.isprintable():
        raise InvalidInput("unique_key", f"must be 1 to {LONGEST_KEY} printable characters")
    return value


def check_priority(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY:
        raise InvalidInput(
            "priority", f"{value!r} must be a whole number from {LOWEST_PRIORITY} (last) to {HIGHEST_PRIORITY} (most urgent)"
        )
    return value


def check_delivery(value: Any) -> Delivery:
    if value not in list(Delivery):
        raise InvalidInput("delivery", f"{value!r} is not one of {', '.join(Delivery)}")
    return Delivery(value)


def check_retry(value: Any) -> Retry:
    if not isinstance(value, Retry):
        raise InvalidInput("retry", f"{value!r} is not a Retry: write dt.Retry(max_attempts=5)")
    return value


def check_missed(value: Any) -> Missed:
    if isinstance(value, str):
        return Missed(value)  # type: ignore[arg-type]  # Missed itself refuses what is no policy
    if not isinstance(value, Missed):
        raise InvalidInput("missed", f'{value!r} is not a Missed: write dt.Missed("latest", within="6h")')
    return Missed.from_json(value.to_json())  # as a store gives it back: declared again it must compare equal


def check_overlap(value: Any) -> str | None:
    if value not in list(Overlap):
        raise InvalidInput("overlap", f"{value!r} is not one of {', '.join(Overlap)}")
    return None if value == Overlap.ALLOW else str(value)


def check_max_runs(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidInput("max_runs", f"{value!r} must be a whole number of at least 1")
    return value


def encode_labels(labels: Any) -> bytes:
    if not isinstance(labels, Mapping) or not all(isinstance(part, str) for pair in labels.items() for part in pair):
        raise InvalidInput("labels", "must be a mapping of text to text")
    return encode_payload(dict(labels), "labels")


def _instant(options: Mapping[str, Any], field: str) -> Micros | None:
    value = options.get(field)
    return None if value is None else instant.read(value, field)
