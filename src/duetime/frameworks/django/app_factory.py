"""The project's App: made once from the settings. It follows the database that Django currently uses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from logging import getLogger
from typing import Any

from django.db import connections
from django.utils.module_loading import import_string

from duetime.app import App
from duetime.errors import ConfigError, TransactionOpen
from duetime.frameworks.django.options import Options, database_url, in_memory, read_options
from duetime.store import Migration
from duetime.stores.memory import MemoryStore

IN_MEMORY = "memory://"
_logger = getLogger("duetime.django")


@cache
def get_project() -> Project:
    return Project(read_options())


def get_app() -> App:
    return get_project().app


class Project:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.url = _database_url(options) if options.follows_database else options.store
        self.app = _make_app(options, self.url)
        self.app.threads = options.threads
        self.app.sync.guard = self._refuse_beside_transaction

    @property
    def joins_transactions(self) -> bool:
        """Not with a plain memory store. The one of the test kit does."""
        return type(self.app.store) is not MemoryStore

    def _refuse_beside_transaction(self, call: str) -> None:
        """It would survive a rollback, and on SQLite wait for the end of the transaction, which waits for
        it. The transaction around a whole test of Django is none of the view's."""
        database = self.options.database
        if database is None or not self.joins_transactions:
            return
        blocks: list[Any] = connections[database].atomic_blocks
        if any(not block._from_testcase for block in blocks):
            raise TransactionOpen(
                f"{call} does not belong to the transaction that is open on {database!r}: use {call} of "
                "duetime.frameworks.django, give it connection=, or call it in transaction.on_commit"
            )

    def migrate(self, database: str) -> Migration | None:
        """Migrate our tables in this database; None if it does not hold them."""
        if database != self.options.database or not self.options.follows_database:
            return None
        self._follow()
        try:
            return self.app.sync.migrate()
        finally:
            self.app.sync.close()

    def _follow(self) -> None:
        url = _database_url(self.options)
        if url == self.url:
            return
        if url == IN_MEMORY:
            _logger.warning(
                "the test database is in memory: jobs are stored elsewhere, so a rollback keeps them"
            )
        self.app.sync.close()
        self.app.use_store(url)
        self.url = url
        assert self.options.database is not None
        _close_first(connections[self.options.database].creation, self.app)


def _close_first(creation: Any, app: App) -> None:
    """Django can neither copy nor drop a test database that has other connections."""
    for name in ("clone_test_db", "destroy_test_db"):
        setattr(creation, name, _closing(getattr(creation, name), app))


def _closing(call: Callable[..., Any], app: App) -> Callable[..., Any]:
    def close_and_call(*arguments: Any, **named: Any) -> Any:
        app.sync.close()
        return call(*arguments, **named)

    return close_and_call


def _database_url(options: Options) -> str:
    assert options.database is not None  # checked by follows_database
    database = connections[options.database].settings_dict
    return IN_MEMORY if in_memory(database) else database_url(database)


def _make_app(options: Options, url: str | None) -> App:
    if options.app is None:
        assert url is not None  # checked by read_options
        return App(url)
    app = _named(options.app)
    if url is not None:
        app.use_store(url)
    return app


def _named(reference: str) -> App:
    module, _, name = reference.partition(":")
    found = import_string(f"{module}.{name or 'app'}")
    if not isinstance(found, App):
        raise ConfigError(
            f"settings.DUETIME: APP {reference!r} is a {type(found).__name__}: name the variable of your App"
        )
    return found
