"""`manage.py duetime_migrate`: for a store of its own; the project's database is seen to by `manage.py migrate`."""

from __future__ import annotations

from duetime.frameworks.django.passing import Passing


class Command(Passing):
    help = "Create the store's schema, or bring it to this version."
    words = ("migrate",)
