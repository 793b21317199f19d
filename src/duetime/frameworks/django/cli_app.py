"""The App for the command line: `duetime worker duetime.frameworks.django.cli_app:app`, with
DJANGO_SETTINGS_MODULE set. It loads Django if necessary, and closes old database connections around every
attempt, as Django does around every request."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import close_old_connections

from duetime.app import App
from duetime.frameworks.django.app_factory import get_app


def _load() -> App:
    if not apps.ready:
        django.setup()
    found = get_app()
    for task in found.tasks.values():
        task.function = _closing_old_connections(task.function)
    return found


def _closing_old_connections(function: Callable[..., Any]) -> Callable[..., Any]:
    """Connections belong to threads, so old ones are closed on the thread that runs the function."""

    @wraps(function)
    def plain(*arguments: Any, **named: Any) -> Any:
        close_old_connections()
        try:
            return function(*arguments, **named)
        finally:
            close_old_connections()

    @wraps(function)
    async def asynchronous(*arguments: Any, **named: Any) -> Any:
        await sync_to_async(close_old_connections)()
        try:
            return await function(*arguments, **named)
        finally:
            await sync_to_async(close_old_connections)()

    return asynchronous if inspect.iscoroutinefunction(function) else plain


app = _load()
