"""Every exception Duetime raises. Each has a stable `code`. Messages say what is wrong and what to do.

DuetimeError
├── ConfigError
│   └── UnknownStore
├── InvalidInput (ValueError)
│   ├── InvalidWhen
│   │   ├── NeverFires
│   │   └── UnknownZone
│   ├── InvalidPayload
│   ├── PayloadTooLarge
│   ├── TargetNotAllowed
│   ├── UnknownOption
│   └── UnknownTask
├── NotFound (LookupError)
│   ├── AlertNotFound
│   ├── ChannelNotFound
│   ├── JobNotFound
│   ├── KeyNotFound
│   ├── MuteNotFound
│   ├── RuleNotFound
│   ├── ScheduleNotFound
│   ├── TaskNotFound
│   ├── VersionNotFound
│   └── WorkerNotFound
├── Conflict
│   ├── CopyDiffers
│   ├── CopyRefused
│   ├── DuplicateTask
│   ├── Fenced
│   ├── JobFinished
│   ├── MigrationRefused
│   ├── ScheduleExists
│   ├── TransactionOpen
│   └── VersionConflict
├── StoreError
│   ├── CopyUnfinished
│   ├── StoreUnavailable
│   ├── StoreFull
│   ├── StoreNotAdopted
│   ├── SchemaMissing
│   └── SchemaTooNew
├── ArchiveUnavailable
├── QueueUnavailable
├── LeasesUnavailable
├── QuotaExceeded
├── NotOpen
├── WaitTimeout (TimeoutError)
├── JobFailed
├── InvalidDocument
├── ServiceError
│   ├── AccessDenied
│   ├── RateLimited
│   └── ServiceUnreachable
├── SecretUnreadable
├── ProcessDied
└── TaskError
"""

from __future__ import annotations

from typing import Any
from uuid import UUID


class DuetimeError(Exception):
    """The root: catch it to catch everything Duetime raises on purpose."""

    code = "error"

    def __init_subclass__(cls, code: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.code = code or cls.code

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigError(DuetimeError, code="config_invalid"):
    """A setting, option or URL is wrong."""


class UnknownStore(ConfigError, code="store_unknown"):
    """The URL scheme is unknown."""


class InvalidInput(DuetimeError, ValueError, code="input_invalid"):
    """A value of the caller is wrong. `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.reason = message


class InvalidWhen(InvalidInput, code="when_invalid"):
    """A cron expression, interval, rule or instant is invalid."""


class NeverFires(InvalidWhen, code="when_never_fires"):
    """A valid expression or rule that has no fire at all."""


class UnknownZone(InvalidWhen, code="zone_unknown"):
    """There is no such IANA time zone."""


class InvalidPayload(InvalidInput, code="payload_invalid"):
    """The payload is not JSON, or not what the task takes."""


class PayloadTooLarge(InvalidInput, code="payload_too_large"):
    """The payload has more bytes than a store accepts."""


class TargetNotAllowed(InvalidInput, code="target_not_allowed"):
    """The operator does not allow calls to this HTTP target."""


class UnknownOption(InvalidInput, code="option_unknown"):
    """The option is unknown."""


class UnknownTask(InvalidInput, code="task_unknown"):
    """No node has had the task so far, and only known tasks are accepted here."""


class NotFound(DuetimeError, LookupError, code="not_found"):
    """There is no such object."""


class JobNotFound(NotFound, code="job_not_found"):
    """The job never existed or has been pruned."""


class AlertNotFound(NotFound, code="alert_not_found"):
    """No alert with this id is open."""


class ChannelNotFound(NotFound, code="channel_not_found"):
    """There is no alert channel of that name."""


class MuteNotFound(NotFound, code="mute_not_found"):
    """There is no snooze or maintenance window with this id, or it is over."""


class RuleNotFound(NotFound, code="rule_not_found"):
    """There is no alert rule of that name."""


class KeyNotFound(NotFound, code="key_not_found"):
    """No API key of this tenant has that prefix."""


class ScheduleNotFound(NotFound, code="schedule_not_found"):
    """There is no schedule of that name."""


class TaskNotFound(NotFound, code="task_not_found"):
    """No task of that name is registered here."""


class VersionNotFound(NotFound, code="version_not_found"):
    """The schedule never had that version, or the version has been deleted."""


class WorkerNotFound(NotFound, code="worker_not_found"):
    """No remote worker of this tenant has this id, or its lease has ended: it joins again."""


class Conflict(DuetimeError, code="conflict"):
    """The current state does not allow it. `field` names the value that it needs, if there is one."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class CopyDiffers(Conflict, code="copy_differs"):
    """Two stores do not hold the same rows."""


class CopyRefused(Conflict, code="copy_refused"):
    """A store has nodes that are alive, or holds something else than a part of this copy."""


class DuplicateTask(Conflict, code="task_duplicate"):
    """Two functions have the same task name."""


class Fenced(Conflict, code="fenced"):
    """The job does not belong to this attempt any more."""


class JobFinished(Conflict, code="job_finished"):
    """The job has reached its final state."""


class MigrationRefused(Conflict, code="migration_refused"):
    """Nodes that are alive still use what a migration removes."""


class ScheduleExists(Conflict, code="schedule_exists"):
    """The name is taken, and the caller did not ask to replace the schedule. `remedy` is what this caller can
    do; another interface gives its own."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.fact = message


class TransactionOpen(Conflict, code="transaction_open"):
    """The call would not belong to the transaction that is open on the store's database."""


class VersionConflict(Conflict, code="version_conflict"):
    """The schedule has changed since the caller read it."""


class StoreError(DuetimeError, code="store_error"):
    """The store failed."""


class CopyUnfinished(StoreError, code="copy_unfinished"):
    """The store is the target of a copy that is not finished."""


class StoreUnavailable(StoreError, code="store_unavailable"):
    """The store cannot be reached now. The call is safe to repeat."""


class StoreFull(StoreError, code="store_full"):
    """The disk is full or read-only."""


class StoreNotAdopted(StoreError, code="store_not_adopted"):
    """The store is a restored backup or a copy. Nothing runs on it until `duetime adopt`."""


class SchemaMissing(StoreError, code="schema_missing"):
    """The store has no schema yet: run `duetime migrate`."""


class SchemaTooNew(StoreError, code="schema_too_new"):
    """A newer Duetime changed the schema, and this one cannot work on it any more."""


class ArchiveUnavailable(DuetimeError, code="archive_unavailable"):
    """The place of the archive cannot be used, or a file there is not what was written. No job was deleted
    that has no copy."""


class QueueUnavailable(DuetimeError, code="queue_unavailable"):
    """The broker cannot be reached now. Workers claim from the store meanwhile."""


class LeasesUnavailable(DuetimeError, code="leases_unavailable"):
    """The service that holds the leases cannot be reached now. Schedules are planned without leases."""


class QuotaExceeded(DuetimeError, code="quota_exceeded"):
    """The tenant has as many pending jobs as it may have. Submit again later."""


class NotOpen(DuetimeError, code="not_open"):
    """The app was used before open() or after close()."""


class WaitTimeout(DuetimeError, TimeoutError, code="wait_timeout"):
    """The job did not finish in the given time."""


class JobFailed(DuetimeError, code="job_failed"):
    """The awaited job did not succeed. `state` is how it ended, `error` is the error of its last attempt."""

    def __init__(
        self, message: str, job_id: UUID | None = None, state: str | None = None, error: str | None = None
    ) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.state = state
        self.error = error


class InvalidDocument(DuetimeError, code="document_invalid"):
    """A file of schedules, or what it asks for, is wrong. Each of `problems` names file, line and fix."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class ServiceError(DuetimeError, code="service_error"):
    """A service refused the request. `code` and `status` are those of the response."""

    def __init__(
        self, message: str, status: int | None = None, code: str | None = None, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        if code is not None:
            self.code = code


class AccessDenied(ServiceError, code="access_denied"):
    """The API key is missing, wrong, or does not allow this."""


class RateLimited(ServiceError, code="rate_limited"):
    """Too many requests, even after waiting as the service asked."""


class ServiceUnreachable(ServiceError, code="service_unreachable"):
    """The service did not respond. `sent` tells whether the request may have arrived. The call is safe to
    repeat."""

    def __init__(self, message: str, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class SecretUnreadable(DuetimeError, code="secret_unreadable"):
    """A stored secret cannot be decrypted on this node. `missing_key`: the id of the secret key that this
    node would need; None: it is not for want of a key."""

    def __init__(self, message: str, missing_key: str | None = None) -> None:
        super().__init__(message)
        self.missing_key = missing_key


class ProcessDied(DuetimeError, code="process_died"):
    """The process of an isolated task ended before the task did."""


class TaskError(DuetimeError, code="task_error"):
    """An isolated task raised an error whose class this process does not have. The message is the
    traceback."""
