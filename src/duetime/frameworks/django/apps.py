"""The Django application: finds the tasks of all installed apps, and migrates together with `manage.py
migrate`."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.db.models.signals import pre_migrate
from django.utils.module_loading import autodiscover_modules

from duetime.frameworks.django.app_factory import get_project
from duetime.frameworks.django.options import read_options, same_place
from duetime.invokers.isolation import prepare_children


class DuetimeConfig(AppConfig):
    name = "duetime.frameworks.django"
    label = "duetime"
    verbose_name = "Duetime"

    def ready(self) -> None:
        prepare_children("django:setup")
        project = get_project()
        if project.options.tasks is not None:
            autodiscover_modules(project.options.tasks)
        # Before Django's own tables: a new SQLite file must contain ours first.
        pre_migrate.connect(_migrate, sender=self)
        checks.register(_one_place, checks.Tags.database)


def _migrate(using: str, verbosity: int = 1, stdout: Any = None, **_: Any) -> None:
    done = get_project().migrate(using)
    if done is not None and done.before != done.after and verbosity and stdout is not None:
        stdout.write(f"Duetime: schema {done.before} -> {done.after}")


def _one_place(**_: Any) -> list[checks.CheckMessage]:
    """`submit` joins transactions of this database, so the store must be the same database."""
    options = read_options()
    if (
        options.store is None
        or options.database is None
        or same_place(options.store, settings.DATABASES[options.database])
    ):
        return []
    hint = 'Remove STORE to keep jobs in that database, or set "DATABASE": None to keep them elsewhere.'
    return [
        checks.Error(
            f"DUETIME['STORE'] is not the database {options.database!r}.", hint=hint, id="duetime.E001"
        )
    ]
