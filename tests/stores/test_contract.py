"""Every store speaks the same contract: the same verbs with the same parameters, and not too many of them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from duetime.store import Store
from duetime.stores.memory import MemoryStore
from duetime.stores.mysql import MySqlStore
from duetime.stores.postgres import PostgresStore
from duetime.stores.redis import RedisStore
from duetime.stores.sqlite import SqliteStore
from duetime.testing.conformance import StoreConformance, drafts

MAX_VERBS = 45
STORES: list[Store] = [
    MemoryStore(),
    SqliteStore(Path("duetime.db")),
    PostgresStore.from_url("postgresql://server/database"),
    MySqlStore.from_url("mysql://server/database"),
    RedisStore.from_url("redis://server"),
]


def verbs(owner: object) -> dict[str, Callable[..., object]]:
    """What can be called: functions of the contract, methods of a store and of its components."""
    return {
        name: value
        for name in dir(owner)
        if not name.startswith("_") and inspect.isroutine(value := getattr(owner, name))
    }


VERBS = verbs(Store)


def parameters(verb: Callable[..., object]) -> list[tuple[str, object]]:
    return [
        (name, each.default) for name, each in inspect.signature(verb).parameters.items() if name != "self"
    ]


def kind(store: Store) -> str:
    return type(store).__name__


def test_the_contract_stays_small() -> None:
    assert 30 <= len(VERBS) <= MAX_VERBS


@pytest.mark.parametrize("store", STORES, ids=kind)
@pytest.mark.parametrize("name", VERBS)
def test_every_store_has_every_verb(store: Store, name: str) -> None:
    verb = getattr(store, name)
    assert parameters(verb) == parameters(VERBS[name])
    assert inspect.iscoroutinefunction(verb) == inspect.iscoroutinefunction(VERBS[name])


@pytest.mark.parametrize("store", STORES, ids=kind)
def test_a_store_has_no_verbs_of_its_own(store: Store) -> None:
    """What only one store can do is not part of the contract, and no caller may rely on it."""
    makers = {"from_url"}
    assert set(verbs(store)) - set(VERBS) - makers == set()


def test_each_test_of_the_suite_has_a_name_of_its_own() -> None:
    """The parts are mixed into one class: a second test of the same name would silently replace the first."""
    parts = [part for part in StoreConformance.__mro__[1:] if part is not object]
    names = Counter(name for part in parts for name in vars(part) if name.startswith("test_"))
    assert [name for name, number in names.items() if number > 1] == []
    assert len(names) >= 100


def test_the_suite_covers_every_verb() -> None:
    """Each verb is awaited by name somewhere in the suite."""
    parts = {
        drafts,
        *(inspect.getmodule(part) for part in StoreConformance.__mro__[1:] if part is not object),
    }
    text = "\n".join(inspect.getsource(part) for part in parts if part is not None)
    assert [name for name in VERBS if f".{name}(" not in text] == []


def test_testing_itself_needs_no_test_tools() -> None:
    """Users may import `duetime.testing` where neither is installed."""
    check = "import sys, duetime.testing; print(sorted({'pytest', 'hypothesis'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
