"""Every exception Duetime raises. Each carries a stable `code`; messages say what to do next.

DuetimeError
├── ConfigError                 config_invalid       a setting, option or URL is wrong
│   └── UnknownStore            store_unknown        no store speaks this URL
├── InvalidInput (ValueError)   input_invalid        the caller's value is wrong; `field` names it
│   ├── InvalidWhen             when_invalid         a cron, interval, rule or instant cannot be read
│   │   ├── NeverFires          when_never_fires     it can be read, but has no fire at all
│   │   └── UnknownZone         zone_unknown         no such IANA time zone
│   ├── InvalidPayload          payload_invalid      not JSON, or not what the task takes
│   ├── PayloadTooLarge         payload_too_large    more bytes than the store accepts
│   └── UnknownOption           option_unknown       a keyword nobody reads
├── NotFound (LookupError)      not_found
│   ├── JobNotFound             job_not_found
│   ├── KeyNotFound             key_not_found        no API key of this tenant has that prefix
│   ├── ScheduleNotFound        schedule_not_found
│   ├── TaskNotFound            task_not_found       no task of that name is registered here
│   └── VersionNotFound         version_not_found    the schedule was never at that version, or it has been forgotten
├── Conflict                    conflict             the store holds something that forbids it
│   ├── DuplicateTask           task_duplicate       two functions under one task name
│   ├── Fenced                  fenced               the job does not belong to this attempt any more
│   ├── JobFinished             job_finished         the job has reached its final state
│   ├── ScheduleExists          schedule_exists      the name is taken and replacing was not asked for
│   └── VersionConflict         version_conflict     somebody else edited the schedule first
├── StoreError                  store_error
│   ├── StoreUnavailable        store_unavailable    cannot be reached now; safe to repeat
│   ├── StoreFull               store_full           the disk is full or read-only
│   ├── SchemaMissing           schema_missing       run `duetime migrate`
│   └── SchemaTooNew            schema_too_new       the data was written by a newer Duetime
├── NotOpen                     not_open             the app was used before open() or after close()
├── WaitTimeout (TimeoutError)  wait_timeout         the job did not finish in the time given
├── JobFailed                   job_failed           the awaited job did not succeed
├── ServiceError                service_error        a service refused in its own words; `code` and `status` are its own
│   ├── AccessDenied            access_denied        no key, a wrong one, or one that may not do this
│   ├── RateLimited             rate_limited         too many requests, also after waiting as asked
│   └── ServiceUnreachable      service_unreachable  no answer from the service; safe to repeat
├── TargetNotAllowed            target_not_allowed   an HTTP target the operator does not want called
├── SecretUnreadable            secret_unreadable    a stored secret cannot be decrypted on this node
├── ProcessDied                 process_died         the process of an isolated task ended before the task did
└── TaskError                   task_error           an isolated task raised what this process has no class for
"""

from __future__ import annotations

from uuid import UUID


class DuetimeError(Exception):
    """Root of the tree: catch this to catch everything Duetime raises on purpose."""

    code = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigError(DuetimeError):
    code = "config_invalid"


class UnknownStore(ConfigError):
    code = "store_unknown"


class InvalidInput(DuetimeError, ValueError):
    """The caller's value cannot be used; `field` is the name under which they gave it."""

    code = "input_invalid"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.reason = message


class InvalidWhen(InvalidInput):
    code = "when_invalid"


class NeverFires(InvalidWhen):
    code = "when_never_fires"


class UnknownZone(InvalidWhen):
    code = "zone_unknown"


class InvalidPayload(InvalidInput):
    code = "payload_invalid"


class PayloadTooLarge(InvalidInput):
    code = "payload_too_large"


class UnknownOption(InvalidInput):
    code = "option_unknown"


class NotFound(DuetimeError, LookupError):
    code = "not_found"


class JobNotFound(NotFound):
    code = "job_not_found"


class KeyNotFound(NotFound):
    code = "key_not_found"


class ScheduleNotFound(NotFound):
    code = "schedule_not_found"


class TaskNotFound(NotFound):
    code = "task_not_found"


class VersionNotFound(NotFound):
    code = "version_not_found"


class Conflict(DuetimeError):
    code = "conflict"


class DuplicateTask(Conflict):
    code = "task_duplicate"


class Fenced(Conflict):
    code = "fenced"


class JobFinished(Conflict):
    code = "job_finished"


class ScheduleExists(Conflict):
    code = "schedule_exists"


class VersionConflict(Conflict):
    code = "version_conflict"


class StoreError(DuetimeError):
    code = "store_error"


class StoreUnavailable(StoreError):
    code = "store_unavailable"


class StoreFull(StoreError):
    code = "store_full"


class SchemaMissing(StoreError):
    code = "schema_missing"


class SchemaTooNew(StoreError):
    code = "schema_too_new"


class NotOpen(DuetimeError):
    code = "not_open"


class WaitTimeout(DuetimeError, TimeoutError):
    code = "wait_timeout"


class JobFailed(DuetimeError):
    """`state` is how the job ended, `error` how its last attempt did."""

    code = "job_failed"

    def __init__(self, message: str, job_id: UUID | None = None, state: str | None = None, error: str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.state = state
        self.error = error


class ServiceError(DuetimeError):
    """A refusal that has no class of its own here: `code` is the problem's code where the service gave one, `status` that of HTTP."""

    code = "service_error"

    def __init__(self, message: str, status: int | None = None, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        if code is not None:
            self.code = code


class AccessDenied(ServiceError):
    code = "access_denied"


class RateLimited(ServiceError):
    code = "rate_limited"


class ServiceUnreachable(ServiceError):
    """`sent` tells whether the request may have arrived."""

    code = "service_unreachable"

    def __init__(self, message: str, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class TargetNotAllowed(DuetimeError):
    """Says no more than that: whoever may not call an address may not learn what is there either."""

    code = "target_not_allowed"

    def __init__(self) -> None:
        super().__init__(f"target not allowed ({self.code})")


class SecretUnreadable(DuetimeError):
    code = "secret_unreadable"


class ProcessDied(DuetimeError):
    code = "process_died"


class TaskError(DuetimeError):
    """The message is the traceback."""

    code = "task_error"
