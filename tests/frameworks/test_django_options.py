"""DATABASES as the URL of a store."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from duetime.errors import ConfigError
from duetime.frameworks.django.options import CONNECTION_OPTIONS, database_url, same_place
from duetime.stores.postgres.address import DRIVER_OPTIONS

pytestmark = pytest.mark.slow

POSTGRES = "django.db.backends.postgresql"
SQLITE = "django.db.backends.sqlite3"


@pytest.mark.parametrize(
    ("database", "url"),
    [
        ({"ENGINE": POSTGRES, "NAME": "shop"}, "postgresql:///shop"),
        (
            {"ENGINE": POSTGRES, "NAME": "shop", "USER": "anna", "HOST": "db", "PORT": 5433},
            "postgresql://anna@db:5433/shop",
        ),
        (
            {"ENGINE": POSTGRES, "NAME": "shop", "USER": "anna", "HOST": "one,two", "PORT": "5433,5434"},
            "postgresql://anna@one:5433,two:5434/shop",
        ),
        (
            {"ENGINE": POSTGRES, "NAME": "s", "HOST": "one,two", "PORT": 5433},
            "postgresql://one:5433,two:5433/s",
        ),
        (
            {"ENGINE": POSTGRES, "NAME": "a/b", "USER": "a@b", "PASSWORD": "p:/?"},
            "postgresql://a%40b:p%3A%2F%3F@/a%2Fb",
        ),
        (
            {"ENGINE": POSTGRES, "NAME": "s", "HOST": "/run/pg", "PORT": ""},
            "postgresql:///s?host=%2Frun%2Fpg",
        ),
        (
            {
                "ENGINE": "django.contrib.gis.db.backends.postgis",
                "NAME": "s",
                "OPTIONS": {"sslmode": "require", "pool": True},
            },
            "postgresql:///s?sslmode=require",
        ),
        ({"ENGINE": SQLITE, "NAME": "/data/a b.db"}, "sqlite:////data/a%20b.db"),
    ],
)
def test_each_database_has_its_url(database: dict[str, Any], url: str) -> None:
    assert database_url(database) == url


@pytest.mark.parametrize(
    ("database", "told"),
    [
        ({"ENGINE": SQLITE, "NAME": ":memory:"}, "in memory"),
        ({"ENGINE": "django.db.backends.mysql", "NAME": "x"}, "cannot be kept in a mysql database"),
    ],
)
def test_database_that_cannot_keep_jobs_is_rejected(database: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        database_url(database)


@pytest.mark.parametrize(
    ("url", "database", "same"),
    [
        ("postgresql://one@host/shop", {"ENGINE": POSTGRES, "NAME": "shop", "HOST": "another.name"}, True),
        ("postgresql://one@host/jobs", {"ENGINE": POSTGRES, "NAME": "shop"}, False),
        ("sqlite:////data/a.db", {"ENGINE": SQLITE, "NAME": "/data/a.db"}, True),
        ("sqlite:////data/b.db", {"ENGINE": SQLITE, "NAME": "/data/a.db"}, False),
        ("sqlite:////shop", {"ENGINE": POSTGRES, "NAME": "shop"}, False),
        ("postgresql://h/x", {"ENGINE": "django.db.backends.mysql", "NAME": "x"}, False),
    ],
)
def test_whether_a_store_is_the_database(url: str, database: dict[str, Any], same: bool) -> None:
    assert same_place(url, database) is same


def test_the_store_knows_every_option_that_is_passed_on() -> None:
    assert set(CONNECTION_OPTIONS) <= DRIVER_OPTIONS


def test_a_project_on_sqlite_needs_no_driver() -> None:
    code = (
        "import sys; sys.modules['asyncpg'] = sys.modules['psycopg'] = None; "
        "import duetime.frameworks.django.apps"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
