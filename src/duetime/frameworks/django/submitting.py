"""Calls from views that belong to the transaction of the view: they happen if and when it commits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from duetime.app.sync import SyncApp, SyncJob
from duetime.frameworks.django.app_factory import get_project
from duetime.task import Task

P = ParamSpec("P")
Answer = TypeVar("Answer")


def submit(task: Task[..., Any] | str, /, **arguments: Any) -> SyncJob:
    """As `app.sync.submit`, in the open transaction of the project's database. Outside one, the job is
    durable when this returns."""
    job: SyncJob = _call("submit", task, **arguments)
    return job


async def asubmit(task: Task[..., Any] | str, /, **arguments: Any) -> SyncJob:
    """The same for async views, on the thread of Django's connections."""
    return await sync_to_async(submit)(task, **arguments)


def _call(name: str, *arguments: Any, **named: Any) -> Any:
    project = get_project()
    call, database = getattr(project.app.sync, name), project.options.database
    if database is None or not project.joins_transactions:
        return call(*arguments, **named)
    connection = connections[database]
    with nullcontext() if connection.in_atomic_block else transaction.atomic(using=database):
        return call(*arguments, connection=connection, **named)


def _joining(name: str, call: Callable[P, Answer]) -> Callable[P, Answer]:
    """The call of `app.sync`, in the open transaction of the project's database."""

    @wraps(call)
    def within(*arguments: P.args, **named: P.kwargs) -> Answer:
        answer: Answer = _call(name, *arguments, **named)
        return answer

    return within


schedule = _joining("schedule", SyncApp.schedule)
declare_schedules = _joining("declare_schedules", SyncApp.declare_schedules)
pause = _joining("pause", SyncApp.pause)
resume = _joining("resume", SyncApp.resume)
remove = _joining("remove", SyncApp.remove)
cancel_job = _joining("cancel_job", SyncApp.cancel_job)
reschedule_job = _joining("reschedule_job", SyncApp.reschedule_job)
