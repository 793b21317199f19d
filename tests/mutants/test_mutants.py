"""A mutant fits the statement that it breaks. Whether the suite finds it: `find_mutants.py`."""

from __future__ import annotations

import pytest

from duetime.stores.mysql import session as mysql_session
from duetime.stores.postgres.connections import SQL
from duetime.stores.postgres.schema import MIGRATIONS
from duetime.stores.sqlite import session as sqlite_session
from tests.mutants.mutants import MUTANTS, Mutant
from tests.mutants.stores import FUNCTION, redis_library

STATEMENTS = {"sqlite": sqlite_session.STATEMENTS, "postgres": SQL, "mariadb": mysql_session.STATEMENTS}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_mutant_fits_its_statements(mutant: Mutant) -> None:
    functions = "\n".join(str(migration) for migration in MIGRATIONS)
    for store, statements in STATEMENTS.items():
        edits = getattr(mutant, store)
        for edit in () if isinstance(edits, str) else edits:
            assert edit.old in (functions if edit.where.startswith(FUNCTION) else statements[edit.where])
    if not isinstance(mutant.redis, str):
        redis_library(mutant.redis, "mutant")
