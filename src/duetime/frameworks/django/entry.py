"""What the command line works on: `duetime worker duetime.frameworks.django.entry:app`, with DJANGO_SETTINGS_MODULE set. Django is loaded
here if it is not, and its connections are looked after around every attempt as Django does around every request."""

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
from duetime.frameworks.django.project import get_app


def _load() -> App:
    if not apps.ready:
        django.setup()
    found = get_app()
    for task in found.tasks.values():
        task.function = _tended(task.function)
    return found


def _tended(function: Callable[..., Any]) -> Callable[..., Any]:
    """Connections belong to threads: they are looked after on the thread that runs the function."""

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
