"""Empty stores whose statements are edited in memory as long as a mutant lives."""

from __future__ import annotations

import itertools
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg

from duetime.store import Store
from duetime.stores.mysql import MySqlStore
from duetime.stores.mysql import session as mysql_session
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.connections import SQL
from duetime.stores.redis import RedisStore
from duetime.stores.redis import connection as redis_connection
from duetime.stores.redis.scripts import LIBRARY, TEXT
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite import session as sqlite_session
from tests.mutants.mutants import Edit, Edits
from tests.servers.brokers import RedisServer
from tests.servers.emptying import Emptying
from tests.servers.mariadb import MariaDbEmptying, MariaDbServer
from tests.servers.postgres import PostgresServer

_numbers = itertools.count()  # pytest may make a store again
FUNCTION = "duetime."  # the beginning of the name of a function in PostgreSQL


class MutableStore(ABC):
    @abstractmethod
    async def empty(self) -> Store:
        """A store with the schema and without data, open."""

    @abstractmethod
    def edited(self, edits: Edits) -> AbstractContextManager[object]:
        """A store that is opened inside has these edits."""

    def close(self) -> None:  # noqa: B027  # not all have something to close
        """Ends its own connections."""


class MutableSqlite(MutableStore):
    def __init__(self, folder: Path, template: Path) -> None:
        self._folder, self._template = folder, template

    async def empty(self) -> Store:
        path = self._folder / f"{next(_numbers)}.db"
        shutil.copyfile(self._template, path)
        return await _opened(SqliteStore(path))

    def edited(self, edits: Edits) -> AbstractContextManager[object]:
        return _statements(sqlite_session.STATEMENTS, edits)


class MutablePostgres(MutableStore):
    def __init__(self, server: PostgresServer) -> None:
        self._url = server.create_database(f"mutants_{next(_numbers)}")
        self._emptying: Emptying | None = None

    async def empty(self) -> Store:
        if self._emptying is None:
            await _migrate(PostgresStore.from_url(self._url))
            self._emptying = Emptying(self._url)
        self._emptying.empty(end_others=True)
        return await _opened(PostgresStore.from_url(self._url))

    @contextmanager
    def edited(self, edits: Edits) -> Iterator[None]:
        functions = [edit for edit in edits if edit.where.startswith(FUNCTION)]
        statements = tuple(edit for edit in edits if edit not in functions)
        with ExitStack() as stack:
            stack.enter_context(_statements(SQL, statements))
            for edit in functions:
                [definition] = self._execute("SELECT pg_get_functiondef(%s::regproc)", [edit.where])
                stack.callback(self._execute, definition)
                self._execute(_edited(definition, edit))
            yield

    def close(self) -> None:
        if self._emptying is not None:
            self._emptying.close()

    def _execute(self, text: Any, values: list[str] | None = None) -> tuple[str, ...]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            found = connection.execute(text, values)
            return (found.fetchone() or ()) if found.description else ()


class MutableMariaDb(MutableStore):
    def __init__(self, server: MariaDbServer) -> None:
        self._server, self._name = server, f"mutants_{next(_numbers)}"
        self._url = server.create_database(self._name)
        self._emptying: MariaDbEmptying | None = None

    async def empty(self) -> Store:
        if self._emptying is None:
            await _migrate(MySqlStore.from_url(self._url))
            self._emptying = MariaDbEmptying(self._server, self._name)
        self._emptying.empty()
        return await _opened(MySqlStore.from_url(self._url))

    @contextmanager
    def edited(self, edits: Edits) -> Iterator[None]:
        with _statements(mysql_session.STATEMENTS, edits):
            mysql_session._settle_plain.cache_clear()
            yield
        mysql_session._settle_plain.cache_clear()

    def close(self) -> None:
        if self._emptying is not None:
            self._emptying.close()


class MutableRedis(MutableStore):
    def __init__(self, server: RedisServer) -> None:
        self._url = server.url

    async def empty(self) -> Store:
        url = f"{self._url}?prefix=mutant-{next(_numbers)}"
        await _migrate(RedisStore.from_url(url))
        return await _opened(RedisStore.from_url(url))

    def edited(self, edits: Edits) -> AbstractContextManager[object]:
        """A library of its own, because the server keeps libraries by name."""
        name = f"duetime_mutant_{next(_numbers)}"
        return patch.multiple(redis_connection, LIBRARY=name, TEXT=redis_library(edits, name))


def redis_library(edits: Edits, name: str) -> bytes:
    text = TEXT.decode()
    for edit in edits:
        source = files("duetime.stores.redis").joinpath("lua", f"{edit.where}.lua").read_text("utf-8")
        body = source.partition("\n")[2]
        assert body in text, f"{edit.where}.lua is not in the library as it is"
        text = text.replace(body, _edited(body, edit))
    return text.replace(LIBRARY, name).encode()


async def _migrate(store: Store) -> None:
    await store.migrate()
    await store.close()


async def _opened(store: Store) -> Store:
    await store.open()
    return store


def _statements(statements: dict[str, str], edits: Edits) -> AbstractContextManager[object]:
    return patch.dict(statements, {edit.where: _edited(statements[edit.where], edit) for edit in edits})


def _edited(text: str, edit: Edit) -> str:
    assert edit.old in text, f"{edit.where} has no {edit.old!r}: change the mutant with the statement"
    return text.replace(edit.old, edit.new)
