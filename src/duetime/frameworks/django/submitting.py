"""Submitting from views: the job exists if and when the view's transaction commits."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from duetime.app.sync import SyncJob
from duetime.frameworks.django.app_factory import get_project
from duetime.task import Task


def submit(task: Task[..., Any] | str, /, **arguments: Any) -> SyncJob:
    """As `app.sync.submit`, in the open transaction of the project's database. Outside one, the job is
    durable when this returns."""
    project = get_project()
    sync, database = project.app.sync, project.options.database
    if database is None or not project.joins_transactions:
        return sync.submit(task, **arguments)
    connection = connections[database]
    with nullcontext() if connection.in_atomic_block else transaction.atomic(using=database):
        return sync.submit(task, connection=connection, **arguments)


async def asubmit(task: Task[..., Any] | str, /, **arguments: Any) -> SyncJob:
    """The same for async views, on the thread of Django's connections."""
    return await sync_to_async(submit)(task, **arguments)
