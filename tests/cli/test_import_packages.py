"""`duetime import` of real applications of Celery, django-celery-beat and APScheduler: everything is imported or
named, and a second import changes nothing."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duetime.cli.documents.source import documents_in
from tests.servers.tools import importable

pytestmark = pytest.mark.slow

CELERY_APP = """
import re
from celery import Celery
from celery.schedules import crontab, schedule

print("the shop starts")
app = Celery("shop")
app.conf.update(
    timezone="Europe/Berlin", task_default_queue="main", task_time_limit=1800, beat_scheduler="redbeat.RedBeatScheduler",
    task_routes=({"mail.send": {"queue": "mail"}, "report.*": {"queue": "reports"}, re.compile("x"): "xs"}, lambda *a, **k: None),
    beat_schedule={
        "nightly": {"task": "report.build", "schedule": crontab(hour=2, minute=30)},
        "off": {"task": "mail.send", "schedule": 2.0, "enabled": False, "options": {"time_limit": 60}},
        "slow": {"task": "shop.slow", "schedule": schedule(90, relative=True)},
        "plain": {"task": "y", "schedule": 5.0, "options": {"queue": "own", "exchange": "e"}},
    },
)


@app.task(name="shop.slow", queue="slow", rate_limit="10/m", time_limit=50, soft_time_limit=40, expires=7, priority=3)
def slow(): ...


@app.task(name="mail.send")
def send(to="x"): ...
"""

DJANGO_APP = """
import os
import django
from celery import Celery
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django_celery_beat"], USE_TZ=True, CELERY_BEAT_SCHEDULE={},
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite"}},
)
django.setup()
app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
"""

DJANGO_ROWS = """
import shop, datetime, json
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django_celery_beat.models import *
utc = datetime.timezone.utc
cron = CrontabSchedule.objects.create(minute="0", hour="9", timezone="Asia/Tokyo")
every = IntervalSchedule.objects.create(every=10, period="minutes")
new = PeriodicTask.objects.create
new(name="daily", task="report", crontab=cron, kwargs=json.dumps({"n": 1}), queue="reports", expire_seconds=60)
new(name="paused", task="ping", interval=every, enabled=False, headers=json.dumps({"a": 1}))
new(name="once", task="record", one_off=True, clocked=ClockedSchedule.objects.create(clocked_time=datetime.datetime(2040, 1, 1, tzinfo=utc)))
new(name="gone", task="record", one_off=True, clocked=ClockedSchedule.objects.create(clocked_time=datetime.datetime(2020, 1, 1, tzinfo=utc)))
new(name="first", task="ping", interval=every, one_off=True, start_time=datetime.datetime(2040, 1, 1, tzinfo=utc))
new(name="ended", task="ping", interval=every, expires=datetime.datetime(2020, 1, 1, tzinfo=utc))
new(name="broken", task="ping", interval=every, kwargs="{")
"""

APSCHEDULER_APP = """
from datetime import datetime, timezone
from apscheduler.executors.pool import ProcessPoolExecutor, ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

print("the shop starts")
def clean(days=1): ...
def other(): ...

scheduler = BackgroundScheduler(
    timezone="Europe/Berlin", job_defaults={"misfire_grace_time": 30, "max_instances": 3, "coalesce": False},
    executors={"default": ThreadPoolExecutor(7), "processpool": ProcessPoolExecutor(1)},
)
scheduler.add_job(clean, "interval", minutes=10, id="often", args=[7])
scheduler.add_job(clean, "interval", minutes=10, id="anchored", start_date="2030-01-01 00:00:00")
scheduler.add_job(clean, "cron", hour=3, id="own", misfire_grace_time=None, max_instances=1, coalesce=True)
scheduler.add_job(other, "cron", hour=4)
scheduler.add_job(other, "cron", hour=5)
scheduler.add_job(clean, "cron", hour=3, id="heavy", executor="processpool")
scheduler.add_job(clean, "interval", hours=6, id="soon", next_run_time=datetime.now(timezone.utc))
scheduler.add_job(lambda: None, "interval", hours=1, id="nameless")
scheduler.add_job(clean, id="at-start")
"""


class Imported(NamedTuple):
    out: str
    err: str

    @property
    def entries(self) -> dict[str, dict[str, Any]]:
        [found] = documents_in(self.out, "f")
        return {one["name"]: one for one in found.value["schedules"]}


Run = Callable[..., Imported]


@pytest.fixture(scope="session")
def packages() -> Path:
    return importable("moved.txt")


@pytest.fixture
def run(packages: Path, tmp_path: Path) -> Run:
    """Python with the packages of the old system, in the folder of the application."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}

    def run(*words: str) -> Imported:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return Imported(done.stdout, done.stderr)

    return run


def test_celery_application(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CELERY_APP)
    made = run("-m", "duetime", "import", "celery-beat", "shop:app")
    found = made.entries
    assert found["nightly"] == {
        "name": "nightly", "when": {"cron": "30 2 * * *", "tz": "Europe/Berlin"}, "target": "report.build",
        "queue": "reports", "timeout": "30m",
    }  # fmt: skip
    assert (found["off"]["paused"], found["off"]["queue"], found["off"]["timeout"]) == (True, "mail", "1m")
    assert (found["slow"]["queue"], found["slow"]["timeout"], found["slow"]["expires"], found["slow"]["priority"]) == (
        "slow", "50s", "7s", 3,
    )  # fmt: skip
    assert (found["plain"]["queue"], found["plain"]["timeout"]) == ("own", "30m")
    for words in (
        "the shop starts",
        "off: differs: it is disabled in Celery, so it is paused here",
        "slow: differs: rate_limit '10/m': set limit",
        "slow: differs: soft_time_limit 40",
        "slow: differs: relative",
        "slow: differs: task_routes has a function",
        "plain: differs: the option exchange='e' has no counterpart",
        "not imported: the schedules of redbeat.RedBeatScheduler",
    ):
        assert words in made.err
    assert run("-m", "duetime", "import", "celery-beat", "shop:app").out == made.out


def test_celery_application_without_schedules(run: Run, tmp_path: Path) -> None:
    lines = ["from celery import Celery", "app = Celery('shop')", "@app.task(name='a')", "def a(): ..."]
    (tmp_path / "shop.py").write_text("\n".join(lines))
    made = run("-m", "duetime", "import", "celery-beat", "shop:app")
    assert "The application has 1 tasks and no beat schedule" in made.err
    assert made.err.endswith("0 schedules imported: there is nothing to apply\n")


def test_schedules_in_the_database_of_django(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(DJANGO_APP)
    run("-c", DJANGO_ROWS)
    made = run("-m", "duetime", "import", "celery-beat", "shop:app")
    found = made.entries
    assert list(found) == ["daily", "first", "once", "paused"]
    assert found["daily"] == {
        "name": "daily", "when": {"cron": "0 9 * * *", "tz": "Asia/Tokyo"}, "target": "report", "payload": {"n": 1},
        "queue": "reports", "expires": "1m",
    }  # fmt: skip
    assert found["once"]["when"] == {"at": "2040-01-01T00:00:00+00:00"}
    assert (found["paused"]["paused"], found["paused"]["when"]) == (True, {"every": "10m"})
    assert (found["first"]["max_runs"], found["first"]["start_at"]) == (1, "2040-01-01T00:00:00+00:00")
    for words in (
        "paused: differs: the option headers={'a': 1} has no counterpart",
        "not imported: beat_schedule['ended']: it fires no more",
        "not imported: beat_schedule['gone']: it fires no more",
        "not imported: PeriodicTask 'broken': JSONDecodeError",
    ):
        assert words in made.err
    assert run("-m", "duetime", "import", "celery-beat", "shop:app").out == made.out


@pytest.mark.parametrize("started", [False, True])
def test_scheduler_of_apscheduler(run: Run, tmp_path: Path, started: bool) -> None:
    """One that has not started has no defaults in its jobs yet."""
    (tmp_path / "shop.py").write_text(APSCHEDULER_APP + ("scheduler.start(paused=True)\n" if started else ""))
    made = run("-m", "duetime", "import", "apscheduler", "shop:scheduler")
    found = made.entries
    assert list(found) == ["anchored", "heavy", "often", "other", "other-2", "own", "soon"]
    assert found["often"] == {
        "name": "often", "when": {"every": "10m"}, "target": "shop.clean", "payload": {"days": 7},
        "missed": {"policy": "all", "within": "30s"},
    }  # fmt: skip
    assert (found["other"]["when"]["cron"], found["other-2"]["when"]["cron"]) == ("0 4 * * *", "0 5 * * *")
    assert found["anchored"]["when"] == {"every": "10m", "anchor": "2030-01-01T00:00:00+01:00"}
    assert (found["own"]["missed"], found["own"]["overlap"]) == ("latest", "skip")
    for words in (
        "the shop starts",
        "often: differs: max_instances=3",
        "heavy: differs: executor 'processpool': it ran in processes",
        "soon: differs: next_run_time: the first run",
        "The executor 'default' has 7 workers",
        "job 'nameless': interval[1:00:00]: a lambda has no name",
        "it runs once whenever the program starts",
    ):
        assert words in made.err
    again = run("-m", "duetime", "import", "apscheduler", "shop:scheduler")
    assert again.out == made.out


def test_job_store_is_only_read(run: Run, tmp_path: Path) -> None:
    """APScheduler deletes jobs whose functions it does not find."""
    (tmp_path / "shop.py").write_text("def clean(days): ...\n")
    run(
        "-c",
        "from apscheduler.schedulers.background import BackgroundScheduler as S\n"
        "s = S(jobstores={'default': {'type': 'sqlalchemy', 'url': 'sqlite:///jobs.sqlite'}}, timezone='UTC')\n"
        "s.start(paused=True)\n"
        "s.add_job('shop:clean', 'interval', hours=1, id='known', args=[7], start_date='2026-01-01 00:07:00')\n"
        "s.add_job('shop:clean', 'cron', hour=1, id='lost', kwargs={'days': 1})\n"
        "s.shutdown()\n",
    )
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as connection:
        [state] = connection.execute("SELECT job_state FROM apscheduler_jobs WHERE id = 'lost'").fetchone()
        gone = state.replace(b"shop:clean", b"gone:clean")
        connection.execute("UPDATE apscheduler_jobs SET job_state = ? WHERE id = 'lost'", [gone])
        connection.execute("INSERT INTO apscheduler_jobs VALUES ('odd', 1, ?)", [pickle.dumps(Path)[:-3]])
        connection.commit()
    made = run("-m", "duetime", "import", "apscheduler", "sqlite:///jobs.sqlite")
    assert made.entries["known"]["payload"] == {"days": 7}
    assert made.entries["known"]["when"] == {"every": "1h", "anchor": "2026-01-01T00:07:00+00:00"}
    assert list(made.entries) == ["known"]
    assert "not imported: job 'lost': it cannot be read here (LookupError" in made.err
    assert "not imported: job 'odd': it cannot be read here" in made.err
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM apscheduler_jobs").fetchone() == (3,)
