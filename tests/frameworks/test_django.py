"""Django as its users meet it: a project with manage.py, its own tests on Django's test databases, views, and
a worker beside them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parent / "project"
ORDERS = """
import django, json
django.setup()
from django.test import Client
from duetime.frameworks.django import app
assert Client(raise_request_exception=False).post("/orders?fail").status_code == 500
client = Client()
jobs = [client.post(path).json()["job"] for path in ("/orders", "/orders-later")]
results = [app.sync.get_job(job).wait("60s").result for job in jobs]
print(json.dumps([*results, app.sync.submit("shop.count").wait("60s", raise_on_failure=True).result]))
app.sync.close()
"""
SUBMIT = """
import django
django.setup()
from duetime.frameworks.django import app, submit
print(submit("shop.bill", order=1).id, app.tenant)
"""


CONNECTIONS = """
import django, json
django.setup()
import duetime as dt
from duetime.frameworks.django import app
jobs = app.sync.submit_many([dt.NewJob("shop.connections") for _ in range(60)])
print(json.dumps([job.wait("60s", raise_on_failure=True).result for job in jobs]))
app.sync.close()
"""


@dataclass(frozen=True, slots=True)
class Project:
    folder: Path
    environment: dict[str, str]

    def python(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", *words]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    def manage(self, *words: str, **more: str) -> str:
        done = self.python("manage.py", *words, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "manage.py", *words]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        )


def sqlite_database(folder: Path) -> dict[str, Any]:
    file = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "shop.sqlite3")}
    return {**file, "TEST": {"NAME": str(folder / "test.sqlite3")}}


def postgres_database(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    login = {"USER": parts.username, "PASSWORD": parts.password, "HOST": parts.hostname, "PORT": parts.port}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        **login,
        "TEST": {"NAME": f"of_{parts.path[1:]}"},
    }


def make_project(folder: Path, database: dict[str, Any]) -> Project:
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DUETIME_", "DJANGO_"))}
    return Project(folder, {**kept, "SHOP_DATABASE": json.dumps(database)})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    if request.param == "sqlite":
        return make_project(tmp_path, sqlite_database(tmp_path))
    return make_project(tmp_path, postgres_database(request.getfixturevalue("postgres_url")))


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Project:
    return make_project(tmp_path, sqlite_database(tmp_path))


@pytest.mark.slow
def test_the_projects_own_tests_pass(project: Project) -> None:
    """Rollback of a transaction or a savepoint leaves no job; a job that was refused leaves the transaction
    usable."""
    done = project.python("manage.py", "test", "--noinput")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 13 tests" in done.stderr


@pytest.fixture
def worker(project: Project) -> Iterator[subprocess.Popen[str]]:
    assert "Duetime: schema 0 -> " in project.manage("migrate")
    process = project.start("duetime_worker", "--settings", "website.settings", "--concurrency", "4")
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.mark.slow
def test_views_submit_and_the_worker_runs_tasks_that_use_models(
    project: Project, worker: subprocess.Popen[str]
) -> None:
    assert worker.stdout is not None
    assert any(
        "tasks   shop.abill, shop.bill, shop.connections, shop.count" in line for line in worker.stdout
    )
    answered = project.python("-c", ORDERS, DJANGO_SETTINGS_MODULE="website.settings")
    assert answered.returncode == 0, answered.stderr
    assert json.loads(answered.stdout) == ["plain", "async", 2], (
        "the worker finds the order: both were committed together"
    )
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=60) == 0
    assert len(json.loads(project.manage("duetime", "job", "list", "--json"))) == 3, (
        "none of the view that failed"
    )


@pytest.mark.slow
def test_a_worker_takes_a_connection_for_each_of_its_ten_threads(project: Project) -> None:
    database = {**json.loads(project.environment["SHOP_DATABASE"]), "CONN_MAX_AGE": 60}
    project = replace(project, environment={**project.environment, "SHOP_DATABASE": json.dumps(database)})
    project.manage("migrate")
    worker = project.start("duetime_worker")
    try:
        answered = project.python("-c", CONNECTIONS, DJANGO_SETTINGS_MODULE="website.settings")
        assert answered.returncode == 0, answered.stderr
    finally:
        worker.terminate()
        told, _ = worker.communicate(timeout=60)
    connections, threads = (max(column) for column in zip(*json.loads(answered.stdout), strict=True))
    assert 1 < threads <= 10
    assert connections <= 10
    assert bool(connections) == ("postgresql" in database["ENGINE"])
    assert "10 of them plain tasks" in told
    assert "up to 10 for plain" in project.manage("duetime", "doctor")


@pytest.mark.slow
def test_a_project_that_has_been_there_before_is_joined(on_sqlite: Project) -> None:
    """Its SQLite file has Django's tables already."""
    on_sqlite.manage("migrate", SHOP_APPS="shop")
    assert "Duetime: schema 0 -> " in on_sqlite.manage("migrate")


@pytest.mark.slow
def test_a_test_database_in_memory_does_not_stand_in_the_way(tmp_path: Path) -> None:
    """Then a rollback keeps the jobs, and a warning says so."""
    project = make_project(tmp_path, {**sqlite_database(tmp_path), "TEST": {}})
    done = project.python("manage.py", "test", "--noinput", "shop.tests.EachInATransactionOfItsOwn")
    assert done.returncode == 0, done.stderr
    assert "so a rollback keeps them" in done.stderr


@pytest.mark.slow
def test_an_app_and_a_store_of_its_own(on_sqlite: Project) -> None:
    elsewhere = {"APP": "website.own:app", "STORE": "sqlite:///jobs.db", "DATABASE": None}
    project = Project(on_sqlite.folder, {**on_sqlite.environment, "SHOP_DUETIME": json.dumps(elsewhere)})
    assert project.manage("duetime_migrate").startswith("schema ")
    done = project.python("-c", SUBMIT, DJANGO_SETTINGS_MODULE="website.settings")
    assert done.returncode == 0, done.stderr
    job_id, tenant = done.stdout.split()
    assert tenant == "shop"
    assert (
        json.loads(project.manage("duetime", "job", "show", job_id, "--json"))["target"]["name"]
        == "shop.bill"
    )
    assert (project.folder / "jobs.db").exists()
    assert not (project.folder / "own.db").exists()


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ({"STORE": "sqlite:///other.db"}, "DUETIME['STORE'] is not the database 'default'."),
        ({"STROE": "x"}, "'STROE' is not an option: use one of STORE, APP, DATABASE, TASKS"),
        ({"DATABASE": None}, "there is no place to keep jobs"),
        ({"APP": "website.own:dt"}, "is a module: name the variable of your App"),
    ],
)
def test_wrong_settings_are_reported(on_sqlite: Project, told: dict[str, Any], answer: str) -> None:
    done = on_sqlite.python("manage.py", "check", "--database", "default", SHOP_DUETIME=json.dumps(told))
    assert done.returncode != 0
    assert answer in done.stderr
