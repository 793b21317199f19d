"""The project's App: made once from the settings. It follows the database that Django currently uses."""

from __future__ import annotations

from functools import cache
from logging import getLogger

from django.db import connections
from django.utils.module_loading import import_string

from duetime.app import App
from duetime.errors import ConfigError
from duetime.frameworks.django.options import Options, database_url, in_memory, read_options
from duetime.store import Migration

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
        self.in_test = False  # Django uses a test database instead of the project's

    @property
    def transactional(self) -> bool:
        return self.options.database is not None and self.url != IN_MEMORY

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
        self.in_test = True


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
