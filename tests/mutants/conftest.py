"""Runs each mutant on each store that has it; `--store` chooses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.mutants.mutants import MUTANTS, STORES
from tests.mutants.stores import MutableMariaDb, MutablePostgres, MutableRedis, MutableSqlite, MutableStore


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", action="append", choices=STORES, help="may be repeated (all)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mutable" not in metafunc.fixturenames:
        return
    cases = [
        pytest.param(store, mutant.tests, edits, id=f"{store}-{name}", marks=pytest.mark.xdist_group(store))
        for store in metafunc.config.getoption("store") or STORES
        for name, mutant in MUTANTS.items()
        if not isinstance(edits := getattr(mutant, store), str)
    ]
    metafunc.parametrize(("mutable", "tests", "edits"), cases, indirect=["mutable"], scope="session")


@pytest.fixture(scope="session")
def mutable(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MutableStore]:
    made: MutableStore
    match request.param:
        case "sqlite":
            template = request.getfixturevalue("sqlite_template")
            made = MutableSqlite(tmp_path_factory.mktemp("mutants"), template)
        case "postgres":
            made = MutablePostgres(request.getfixturevalue("postgres_server"))
        case "mariadb":
            made = MutableMariaDb(request.getfixturevalue("mariadb_server"))
        case _:
            made = MutableRedis(request.getfixturevalue("redis_server"))
    with closing(made):
        yield made
