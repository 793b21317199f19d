"""The names of the library. `duetime` itself imports this file when the first of them is used."""

from typing import TYPE_CHECKING, Any

from duetime.app import App
from duetime.app.schedules import NewSchedule
from duetime.engine.submit.build import NewJob
from duetime.errors import (
    AccessDenied,
    AlertNotFound,
    ChannelNotFound,
    ConfigError,
    Conflict,
    DuetimeError,
    DuplicateTask,
    Fenced,
    InvalidInput,
    InvalidPayload,
    InvalidWhen,
    JobFailed,
    JobFinished,
    JobNotFound,
    MuteNotFound,
    NeverFires,
    NotFound,
    NotOpen,
    PayloadTooLarge,
    ProcessDied,
    QuotaExceeded,
    RateLimited,
    RuleNotFound,
    ScheduleExists,
    ScheduleNotFound,
    SchemaMissing,
    SchemaTooNew,
    ServiceError,
    ServiceUnreachable,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TaskError,
    TaskNotFound,
    TransactionOpen,
    UnknownOption,
    UnknownStore,
    UnknownTask,
    UnknownZone,
    VersionConflict,
    VersionNotFound,
    WaitTimeout,
    WorkerNotFound,
)
from duetime.handle import AttemptView, JobHandle, Progress, ScheduleView
from duetime.invoker import Context
from duetime.invokers.isolation import Isolation
from duetime.invokers.resources import INJECTED, Use
from duetime.invokers.threads import Interrupted
from duetime.model.job import Delivery, Overlap, State
from duetime.model.limit import Limit, Queue, Quotas
from duetime.model.retry import Retry
from duetime.model.schedule import Missed
from duetime.model.settle import Cancel, RetryAfter, Snooze
from duetime.model.unique import OnConflict, Unique
from duetime.model.when import At, Cron, Every, RRule
from duetime.task import Task, Tasks
from duetime.version import VERSION

if TYPE_CHECKING:
    from duetime.remote import AsyncClient, Client

__version__ = VERSION

__all__ = [
    "INJECTED",
    "AccessDenied",
    "AlertNotFound",
    "App",
    "AsyncClient",
    "At",
    "AttemptView",
    "Cancel",
    "ChannelNotFound",
    "Client",
    "ConfigError",
    "Conflict",
    "Context",
    "Cron",
    "Delivery",
    "DuetimeError",
    "DuplicateTask",
    "Every",
    "Fenced",
    "Interrupted",
    "InvalidInput",
    "InvalidPayload",
    "InvalidWhen",
    "Isolation",
    "JobFailed",
    "JobFinished",
    "JobHandle",
    "JobNotFound",
    "Limit",
    "Missed",
    "MuteNotFound",
    "NeverFires",
    "NewJob",
    "NewSchedule",
    "NotFound",
    "NotOpen",
    "OnConflict",
    "Overlap",
    "PayloadTooLarge",
    "ProcessDied",
    "Progress",
    "Queue",
    "QuotaExceeded",
    "Quotas",
    "RRule",
    "RateLimited",
    "Retry",
    "RetryAfter",
    "RuleNotFound",
    "ScheduleExists",
    "ScheduleNotFound",
    "ScheduleView",
    "SchemaMissing",
    "SchemaTooNew",
    "ServiceError",
    "ServiceUnreachable",
    "Snooze",
    "State",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "Task",
    "TaskError",
    "TaskNotFound",
    "Tasks",
    "TransactionOpen",
    "Unique",
    "UnknownOption",
    "UnknownStore",
    "UnknownTask",
    "UnknownZone",
    "Use",
    "VersionConflict",
    "VersionNotFound",
    "WaitTimeout",
    "WorkerNotFound",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import the HTTP client only if it is used: it is slow to load."""
    if name in ("AsyncClient", "Client"):
        from duetime import remote

        return getattr(remote, name)
    raise AttributeError(f"module 'duetime' has no attribute {name!r}")
