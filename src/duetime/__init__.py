"""Duetime: every task, in due time."""

from duetime.app import App
from duetime.engine.drafts import NewJob
from duetime.errors import (
    ConfigError,
    Conflict,
    DuetimeError,
    DuplicateTask,
    InvalidInput,
    InvalidPayload,
    InvalidWhen,
    JobFailed,
    JobFinished,
    JobNotFound,
    NeverFires,
    NotFound,
    NotOpen,
    PayloadTooLarge,
    ScheduleExists,
    ScheduleNotFound,
    SchemaMissing,
    SchemaTooNew,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TaskNotFound,
    UnknownOption,
    UnknownStore,
    UnknownZone,
    VersionConflict,
    WaitTimeout,
)
from duetime.handle import JobHandle, ScheduleView
from duetime.invoker import Context
from duetime.model.job import Delivery, Overlap, State
from duetime.model.retry import Retry
from duetime.model.schedule import Missed
from duetime.model.when import At, Cron, Every, RRule
from duetime.task import Task
from duetime.version import VERSION

__version__ = VERSION

__all__ = [
    "App",
    "At",
    "ConfigError",
    "Conflict",
    "Context",
    "Cron",
    "Delivery",
    "DuetimeError",
    "DuplicateTask",
    "Every",
    "InvalidInput",
    "InvalidPayload",
    "InvalidWhen",
    "JobFailed",
    "JobFinished",
    "JobHandle",
    "JobNotFound",
    "Missed",
    "NeverFires",
    "NewJob",
    "NotFound",
    "NotOpen",
    "Overlap",
    "PayloadTooLarge",
    "RRule",
    "Retry",
    "ScheduleExists",
    "ScheduleNotFound",
    "ScheduleView",
    "SchemaMissing",
    "SchemaTooNew",
    "State",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "Task",
    "TaskNotFound",
    "UnknownOption",
    "UnknownStore",
    "UnknownZone",
    "VersionConflict",
    "WaitTimeout",
    "__version__",
]
