"""`duetime import`: crontab, Celery beat and APScheduler as files of schedules."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.cli.documents.reading import read_files
from duetime.cli.documents.source import documents_in
from duetime.cli.importing.apscheduler import jobs_of, read_apscheduler
from duetime.cli.importing.celery_beat import read_celery_beat
from duetime.cli.importing.crontab import name_of, read_crontab, shell_line
from duetime.cli.importing.result import Import
from duetime.errors import ConfigError
from duetime.model.when import from_json
from tests.cli.conftest import Duetime

CRONTAB = """\
# backups
SHELL=/bin/bash
MAILTO=ops@example.org
PATH=/usr/local/bin:/usr/bin
30 2 * * * cd /srv/shop && ./backup --all
*/10 * * * 1-5 /usr/bin/python3 /srv/cleanup.py --days 7
CRON_TZ=America/New_York
0 9 13 * 5 echo "a # b"
@reboot /usr/local/bin/start
@daily cat%Hello%World
0~59 3 * * * random
61 * * * * wrong
just words
"""


def entries(made: Import) -> dict[str, dict[str, Any]]:
    """As `duetime apply` would read them."""
    [found] = documents_in(made.text(None), "f")
    return {one["name"]: one for one in found.value["schedules"]}


def crontab(text: str, **options: Any) -> Import:
    made = Import()
    read_crontab(text, made, **{"tz": "Europe/Berlin", **options})
    return made


class TestCrontab:
    def test_lines_become_commands_in_their_zone(self) -> None:
        found = entries(crontab(CRONTAB))
        assert list(found) == ["backup", "cleanup.py", "echo", "cat"]
        backup = found["backup"]
        assert backup["when"] == {"cron": "30 2 * * *", "tz": "Europe/Berlin"}
        assert backup["target"]["argv"] == [
            "/usr/bin/env", "PATH=/usr/local/bin:/usr/bin", "/bin/bash", "-c", "cd /srv/shop && ./backup --all",
        ]  # fmt: skip
        assert backup["missed"] == "skip"
        assert found["echo"]["when"] == {"cron": "0 9 13 * 5", "tz": "America/New_York"}

    def test_everything_that_is_not_moved_is_named(self) -> None:
        told = crontab(CRONTAB).differences()
        for number, reason in (
            (3, "not sent"),
            (9, "start of a machine"),
            (11, "write H"),
            (12, "'61'"),
            (13, "five fields"),
        ):
            [line] = [one for one in told if f"line {number}:" in one]
            assert line.startswith("not imported: "), line
            assert reason in line
        assert any("cat: differs: the text after %" in one for one in told)
        text = crontab(CRONTAB).text(None)
        assert all(f"# not imported: line {number}: " in text for number in (3, 9, 11, 12, 13))

    @pytest.mark.parametrize("line", ["cat%Hello%World", "cat # x%Hello%it's", "echo 100\\%", "cat%%a b"])
    def test_input_after_percent_reaches_the_program(self, line: str) -> None:
        """As cron does it: the first % ends the command, the others are line ends."""
        command, _, rest = line.replace("\\%", "\0").partition("%")
        expected = subprocess.run(
            ["/bin/sh", "-c", command.replace("\0", "%")],
            input=f"{rest}\n".replace("%", "\n"),
            capture_output=True,
            text=True,
            check=True,
        )
        done = subprocess.run(["/bin/sh", "-c", shell_line(line)], capture_output=True, text=True, check=True)
        assert done.stdout == expected.stdout != ""

    def test_system_table_names_users(self) -> None:
        made = crontab("17 * * * * root cd / && run-parts /etc/cron.hourly\n", system=True)
        [one] = entries(made).values()
        assert (one["name"], one["owner"]) == ("run-parts", "root")
        assert any("it ran as root" in line for line in made.differences())

    def test_home_is_the_folder(self) -> None:
        [one] = entries(crontab("HOME=/srv\n@hourly x\n")).values()
        assert one["target"]["cwd"] == "/srv"

    @pytest.mark.parametrize(
        ("line", "name"),
        [
            ("/usr/local/bin/backup --all", "backup"),
            ("cd /srv && python3 -u /srv/a.py x", "a.py"),
            ("A=1 flock -n /run/lock nice -n 5 /bin/job", "job"),
            ("test -x /usr/sbin/anacron || run-parts /etc", "run-parts"),
            ("sleep 5; (curl -s https://x.example)", "curl"),
            ("", "job"),
        ],
    )
    def test_names_say_what_runs(self, line: str, name: str) -> None:
        assert name_of(line) == name

    def test_two_lines_of_one_program_have_two_names(self) -> None:
        assert list(entries(crontab("@daily x a\n@hourly x b\n"))) == ["x", "x-2"]

    @settings(max_examples=150, deadline=None)
    @given(
        st.tuples(
            st.sampled_from(["0", "30", "*/15", "5,35", "10-20/5"]),
            st.sampled_from(["*", "2", "*/2", "1-3", "0,2,3"]),
            st.sampled_from(["*", "1", "13", "*/2", "25-31"]),
            st.sampled_from(["*", "3,10,11", "MAR"]),
            st.sampled_from(["*", "0", "5", "MON-FRI", "*/2", "7"]),
        ),
        st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Tokyo"]),
        st.datetimes(datetime(2026, 3, 1), datetime(2026, 12, 1), timezones=st.just(UTC)),
    )
    def test_fires_are_those_of_cron_around_clock_changes(
        self, fields: tuple[str, ...], zone: str, start: datetime
    ) -> None:
        """Debian's cron, by cronsim, also for both days given (either one matches)."""
        [one] = entries(crontab(f"CRON_TZ={zone}\n{' '.join(fields)} x\n", tz="UTC")).values()
        clock = CronSim(" ".join(fields), start.replace(microsecond=0).astimezone(ZoneInfo(zone)))
        expected = [next(clock).astimezone(UTC) for _ in range(8)]
        assert from_json(one["when"]).preview(8, start.replace(microsecond=0)) == expected

    def test_command_line_writes_files_that_apply(self, duetime: Duetime, folder: Path) -> None:
        duetime("migrate")
        (folder / "tab").write_text(CRONTAB)
        done = duetime(
            "import",
            "crontab",
            "tab",
            "--tz",
            "Europe/Berlin",
            "--output",
            "s.yaml",
            "--plan",
            "--managed-by",
            "cron",
        )
        assert (done.status, done.out) == (0, "")
        assert "+ backup: at 02:30, every day, Europe/Berlin time\n    fire: " in done.err
        assert done.err.endswith("4 schedules imported: check the file, then `duetime apply`\n")
        assert duetime("apply", "s.yaml").out.endswith("4 added, 0 changed, 0 removed, 0 unchanged\n")
        assert read_files(["s.yaml"]).names == {"cron"}
        piped = duetime("import", "crontab", "-", "--shadow", stdin="@daily x\n").out
        assert "    shadow: true\n" in piped
        assert duetime("import", "crontab").status == 2
        assert duetime("import", "crontab", "tab", "--tz", "Nowhere/Land").status == 2
        wrong = duetime("import", "crontab", "tab", "--output", "missing/s.yaml")
        assert (wrong.status, "--output: missing/s.yaml cannot be written (No such" in wrong.err) == (2, True)


class Crontab:
    """As `celery.schedules.crontab` has it, for the fields given."""

    def __init__(self, **fields: Any) -> None:
        values = {
            "minute": range(60), "hour": range(24), "day_of_week": range(7), "day_of_month": range(1, 32),
            "month_of_year": range(1, 13),
        }  # fmt: skip
        for name, everything in values.items():
            text, numbers = fields.get(name, ("*", set(everything)))
            setattr(self, f"_orig_{name}", text)
            setattr(self, name, numbers)


def celery_app(**schedule: Any) -> Any:
    def send(to: str, copy: bool = False) -> None: ...

    conf = SimpleNamespace(beat_schedule=schedule, timezone="Europe/Berlin")
    return SimpleNamespace(conf=conf, tasks={"mail.send": SimpleNamespace(run=send)})


class TestCeleryBeat:
    def test_crontabs_and_intervals(self) -> None:
        made = Import()
        app = celery_app(
            nightly={
                "task": "report",
                "schedule": Crontab(
                    minute=("30", {30}), hour=(2, {2}), day_of_week=("mon-friday", {1, 2, 3, 4, 5})
                ),
            },
            often={"task": "ping", "schedule": 30.0, "kwargs": {"a": 1}},
            rare={"task": "ping", "schedule": timedelta(days=2), "options": {"queue": "slow", "expires": 60}},
            wrapped={"task": "ping", "schedule": SimpleNamespace(run_every=timedelta(minutes=5))},
        )
        read_celery_beat(app, made)
        found = entries(made)
        assert found["nightly"]["when"] == {"cron": "30 2 * * MON-FRI", "tz": "Europe/Berlin"}
        assert (found["often"]["when"], found["often"]["payload"]) == ({"every": "30s"}, {"a": 1})
        assert (found["rare"]["queue"], found["rare"]["expires"]) == ("slow", "1m")
        assert found["wrapped"]["when"] == {"every": "5m"}

    def test_both_days_must_match(self) -> None:
        """Celery wants Friday the 13th, cron the 13th and every Friday."""
        made = Import()
        schedule = Crontab(
            minute=("0", {0}), hour=("9", {9}), day_of_month=("13", {13}), day_of_week=("5", {5})
        )
        read_celery_beat(celery_app(friday={"task": "t", "schedule": schedule}), made)
        when = from_json(entries(made)["friday"]["when"])
        fires = when.preview(3, datetime(2026, 1, 1, tzinfo=UTC))
        assert [one.astimezone(ZoneInfo("Europe/Berlin")).strftime("%a %d %b %H:%M") for one in fires] == [
            "Fri 13 Feb 09:00", "Fri 13 Mar 09:00", "Fri 13 Nov 09:00",
        ]  # fmt: skip

    def test_positional_arguments_get_names_or_pause_the_schedule(self) -> None:
        made = Import()
        read_celery_beat(
            celery_app(
                known={"task": "mail.send", "schedule": 60, "args": ("ann",), "kwargs": {"copy": True}},
                unknown={"task": "other", "schedule": 60, "args": ("ann",)},
                odd={"task": "other", "schedule": 60, "kwargs": {"x": object()}},
            ),
            made,
        )
        found = entries(made)
        assert found["known"]["payload"] == {"to": "ann", "copy": True}
        assert "paused" not in found["known"]
        assert (found["unknown"]["paused"], found["odd"]["paused"]) == (True, True)
        assert any(
            "unknown: differs: the arguments ['ann'] have no names" in one for one in made.differences()
        )

    def test_what_has_no_counterpart_is_named(self) -> None:
        made = Import()
        sun = SimpleNamespace(event="sunset", lat=1.0, lon=2.0)
        read_celery_beat(
            celery_app(
                sun={"task": "t", "schedule": sun},
                odd={"task": "t", "schedule": object()},
                option={"task": "t", "schedule": 5, "options": {"exchange": "x"}, "relative": True},
                taskless={"schedule": 5},
            ),
            made,
        )
        told = "\n".join(made.differences())
        for words in (
            "solar event sunset",
            "neither an interval nor a crontab",
            "exchange='x' has no",
            "relative:",
            "names no task",
        ):
            assert words in told
        with pytest.raises(ConfigError, match="no beat_schedule"):
            read_celery_beat(SimpleNamespace(), made)

    def test_file_of_settings(self, duetime: Duetime, folder: Path) -> None:
        (folder / "celeryconfig.py").write_text(
            'timezone = "Asia/Tokyo"\nbeat_schedule = {"x": {"task": "t", "schedule": 90}}\n'
        )
        done = duetime("import", "celery-beat", "celeryconfig.py")
        assert (done.status, "when: {every: 1m30s}" in done.out) == (0, True), done.err
        assert duetime("import", "celery-beat", "celeryconfig:beat_schedule").out == done.out
        missing = duetime("import", "celery-beat", "celeryconfig:other")
        assert (missing.status, "has no 'other'" in missing.err) == (2, True)


class Field:
    def __init__(self, name: str, text: str) -> None:
        self.name, self._text = name, text

    def __str__(self) -> str:
        return self._text


def cron_trigger(**fields: str) -> Any:
    names = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
    defaults = dict.fromkeys(names, "*") | {"second": "0"}
    made = [Field(name, fields.get(name, defaults[name])) for name in names]
    return SimpleNamespace(
        fields=made, timezone=ZoneInfo("Europe/Berlin"), jitter=None, start_date=None, end_date=None
    )


def ap_job(name: str, trigger: Any, **more: Any) -> Any:
    plain: dict[str, Any] = {
        "func_ref": "shop.jobs:clean", "func": None, "args": (), "kwargs": {}, "coalesce": True,
        "misfire_grace_time": 1, "max_instances": 1, "next_run_time": datetime(2030, 1, 1, tzinfo=UTC),
    }  # fmt: skip
    return SimpleNamespace(id=name, trigger=trigger, **{**plain, **more})


def imported(*jobs: Any) -> Import:
    made = Import()
    read_apscheduler(jobs_of(list(jobs)), made)
    return made


class TestApscheduler:
    def test_policies_become_ours(self) -> None:
        start = datetime(2026, 1, 1, 0, 7, tzinfo=UTC)
        interval = SimpleNamespace(
            interval=timedelta(minutes=10), start_date=start, end_date=None, jitter=30, timezone=UTC
        )
        made = imported(
            ap_job("a", interval, coalesce=False, misfire_grace_time=3600, max_instances=3, kwargs={"n": 1}),
            ap_job("b", SimpleNamespace(run_date=datetime(2030, 1, 1, tzinfo=UTC)), misfire_grace_time=None),
            ap_job("c", cron_trigger(minute="0"), next_run_time=None),
        )
        found = entries(made)
        assert found["a"] == {
            "name": "a", "when": {"every": "10m", "anchor": "2026-01-01T00:07:00+00:00"},
            "target": "shop.jobs.clean", "payload": {"n": 1}, "missed": {"policy": "all", "within": "1h"},
            "start_at": "2026-01-01T00:07:00+00:00", "jitter": "30s",
        }  # fmt: skip
        assert (found["b"]["when"], found["b"]["missed"]) == ({"at": "2030-01-01T00:00:00+00:00"}, "latest")
        assert (found["c"]["overlap"], found["c"]["paused"]) == ("skip", True)
        told = "\n".join(made.differences())
        assert "a: differs: max_instances=3" in told
        assert "a: differs: jitter 30" in told

    @pytest.mark.parametrize(
        ("fields", "cron"),
        [
            ({"hour": "2", "minute": "30"}, "30 2 * * *"),
            ({"day_of_week": "mon-fri", "hour": "9", "minute": "0"}, "0 9 * * MON,TUE,WED,THU,FRI"),
            ({"day_of_week": "0,6", "hour": "9", "minute": "0"}, "0 9 * * MON,SUN"),
            ({"day_of_week": "*/3", "hour": "9", "minute": "0"}, "0 9 * * MON,THU,SUN"),
            ({"day": "last", "hour": "9", "minute": "0"}, "0 9 L * *"),
            ({"day": "2nd fri", "hour": "9", "minute": "0"}, "0 9 * * 5#2"),
            ({"day": "last sun", "hour": "9", "minute": "0"}, "0 9 * * 0L"),
            ({"month": "jan-mar", "day": "1", "hour": "0", "minute": "0"}, "0 0 1 JAN-MAR *"),
            ({"hour": "*", "minute": "*/5", "second": "15"}, "15 */5 * * * *"),
        ],
    )
    def test_cron_fields(self, fields: dict[str, str], cron: str) -> None:
        [one] = entries(imported(ap_job("x", cron_trigger(**fields)))).values()
        assert one["when"] == {"cron": cron, "tz": "Europe/Berlin"}

    def test_both_days_must_match(self) -> None:
        trigger = cron_trigger(day="13", day_of_week="fri", hour="9", minute="0")
        [one] = entries(imported(ap_job("x", trigger))).values()
        fires = from_json(one["when"]).preview(2, datetime(2026, 1, 1, tzinfo=UTC))
        assert [fire.date().isoformat() for fire in fires] == ["2026-02-13", "2026-03-13"]

    def test_what_has_no_counterpart_is_named(self) -> None:
        made = imported(
            ap_job("year", cron_trigger(year="2030")),
            ap_job("and", SimpleNamespace(triggers=[])),
            ap_job("odd", cron_trigger(day="1st mon", day_of_week="fri")),
        )
        assert made.entries == []
        assert [line.partition(":")[0] for line in made.differences()[2:]] == ["not imported"] * 3

    def test_scheduler_and_job_store(self, duetime: Duetime, folder: Path) -> None:
        (folder / "jobs.py").write_text(
            "from types import SimpleNamespace as N\nfrom datetime import timedelta\n"
            "trigger = N(interval=timedelta(hours=2), start_date=None, end_date=None, jitter=None)\n"
            "job = N(id='x', trigger=trigger, func_ref='m:f', func=None, args=(), kwargs={}, coalesce=True,\n"
            "        misfire_grace_time=None, max_instances=1)\n"
            "scheduler = N(get_jobs=lambda: [job])\n"
        )
        done = duetime("import", "apscheduler", "jobs:scheduler")
        assert (done.status, "target: m.f" in done.out) == (0, True), done.err
        wrong = duetime("import", "apscheduler", "jobs:job")
        assert (wrong.status, "has get_jobs()" in wrong.err) == (2, True)
