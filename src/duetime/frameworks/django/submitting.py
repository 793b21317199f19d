"""Submitting from views: the job exists if and when the view's transaction commits."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from duetime.app.sync import SyncJob
from duetime.frameworks.django.app_factory import Project, get_project
from duetime.task import Task


def submit(task: Task[..., Any] | str, /, **arguments: Any) -> SyncJob:
    """As `app.sync.submit`, in the open transaction of the project's database. Outside one, the job is
    durable when this returns."""
    project = get_project()
    try:
        return _submit(project, task, arguments)
    finally:
        if project.in_test:
            project.app.sync.close()  # Django cannot drop a test database that has connections


async def asubmit(task: Task[..., Any] | str, /, **arguments: Any) -> SyncJob:
    """The same for async views, on the thread of Django's connections."""
    return await sync_to_async(submit)(task, **arguments)


def _submit(project: Project, task: Task[..., Any] | str, arguments: dict[str, Any]) -> SyncJob:
    if not project.transactional:
        return project.app.sync.submit(task, **arguments)
    database = project.options.database
    assert database is not None
    connection = connections[database]
    if connection.in_atomic_block:
        return project.app.sync.submit(task, connection=connection.connection, **arguments)
    with transaction.atomic(using=database):
        return project.app.sync.submit(task, connection=connection.connection, **arguments)
