"""`manage.py duetime job list`: every command of Duetime, on the project's App."""

from __future__ import annotations

from duetime.frameworks.django.cli_app import PassThrough


class Command(PassThrough):
    help = "Duetime's commands on the project's App: serve, job, schedule, queue ..."
