"""`manage.py duetime_worker`: run jobs; with the options of `duetime worker`."""

from __future__ import annotations

from duetime.frameworks.django.cli_app import PassThrough


class Command(PassThrough):
    help = "Run the project's jobs until SIGTERM or Ctrl-C."
    words = ("worker",)
