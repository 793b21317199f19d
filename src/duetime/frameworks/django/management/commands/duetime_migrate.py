"""`manage.py duetime_migrate`: for a separate store. `manage.py migrate` migrates the project's database."""

from __future__ import annotations

from duetime.frameworks.django.cli_app import PassThrough


class Command(PassThrough):
    help = "Create the store's schema, or bring it to this version."
    words = ("migrate",)
