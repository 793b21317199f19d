"""Django: `INSTALLED_APPS += ["duetime.frameworks.django"]`. `app` is the project's App, made from
`settings.DUETIME`. `submit` stores a job in the transaction of the view that calls it, so that a rollback
removes the job and `transaction.on_commit` is not needed; so do the calls that change schedules and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.frameworks.django.submitting import (
        asubmit,
        cancel_job,
        declare_schedules,
        pause,
        remove,
        reschedule_job,
        resume,
        schedule,
        submit,
    )

    app: App

__all__ = [
    "app",
    "asubmit",
    "cancel_job",
    "declare_schedules",
    "pause",
    "remove",
    "reschedule_job",
    "resume",
    "schedule",
    "submit",
]


def __getattr__(name: str) -> Any:
    """Made on demand, because Django's settings cannot be read before Django loads."""
    if name == "app":
        from duetime.frameworks.django.app_factory import get_app

        return get_app()
    if name in __all__:
        from duetime.frameworks.django import submitting

        return getattr(submitting, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
