"""`duetime import`: the schedules of other systems as a file for `duetime apply`."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stdout
from datetime import datetime
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from duetime.cli.command import FlagGroup, command, group
from duetime.cli.completion import complete_zone
from duetime.cli.files import read_text
from duetime.cli.format import hint, now_here, plural
from duetime.cli.importing.apscheduler import jobs_at, jobs_of, read_apscheduler
from duetime.cli.importing.celery_beat import read_celery_beat
from duetime.cli.importing.crontab import read_crontab
from duetime.cli.importing.result import Import
from duetime.cli.loading import load_object
from duetime.cli.program import value_option
from duetime.errors import ConfigError
from duetime.model import zone
from duetime.model.describe.when import describe
from duetime.model.instant import to_micros
from duetime.model.when import from_json

commands = group("Write the schedules of another system as a file for `apply`.")

SYSTEM_TABLES = ("/etc/crontab", "/etc/cron.d/")
LOCAL_TIME = Path("/etc/localtime")
PREVIEWED = 3


class ImportOutput:
    """Where an import goes: the file to stdout or --output, remarks and the plan to stderr."""

    def __init__(self, output: Path | None, managed_by: str | None, plan: bool, shadow: bool) -> None:
        self.made = Import(shadow)
        self._output = output
        self._managed_by = managed_by
        self._plan = plan

    def write(self) -> None:
        text = self.made.text(self._managed_by)
        if self._output is None:
            typer.echo(text, nl=False)
        else:
            _write(self._output, text)
        if self._plan:
            self._preview(now_here())
        for line in self.made.differences():
            hint(line)
        count = len(self.made.entries)
        then = "check the file, then `duetime apply`" if count else "there is nothing to apply"
        hint(f"{plural(count, 'schedule')} imported: {then}")

    def _preview(self, now: datetime) -> None:
        for one in self.made.entries:
            when = from_json(one.entry["when"])
            hint(f"+ {one.entry['name']}: {describe(when)}")
            place = zone.load(one.entry["when"].get("tz", "UTC"))
            for fire in when.preview(PREVIEWED, now):
                hint(f"    fire: {place.wall_time(to_micros(fire)).isoformat(sep=' ')}")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as problem:
        raise ConfigError(f"--output: {file} cannot be written ({problem.strerror})") from problem


def _output(
    output: Annotated[
        Path | None, value_option("--output", "FILE", "Write the file there, not to stdout.")
    ] = None,
    managed_by: Annotated[
        str | None, value_option("--managed-by", "NAME", "Write this `managed_by` into the file.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Also show the next fires, on stderr.")] = False,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Only record what would run: see `duetime shadow report`.")
    ] = False,
) -> ImportOutput:
    return ImportOutput(output, managed_by, plan, shadow)


OutputFlags = Annotated[ImportOutput, FlagGroup(_output)]
ImportZoneFlag = Annotated[
    str | None,
    value_option("--tz", "ZONE", "The time zone of the old system.", autocompletion=complete_zone),
]


@command(
    commands,
    "crontab",
    "duetime import crontab --user --output schedules.yaml",
    "duetime import crontab /etc/crontab --tz Europe/Berlin --plan",
    "crontab -l | duetime import crontab - --shadow | duetime apply -",
)
def crontab(
    context: typer.Context,
    output: OutputFlags,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A crontab; - for stdin.", show_default=False)
    ] = None,
    user: Annotated[bool, typer.Option("--user", help="Your own crontab, as `crontab -l` shows it.")] = False,
    system: Annotated[
        bool, typer.Option("--system", help="Lines name a user; known for /etc/crontab and /etc/cron.d.")
    ] = False,
    tz: ImportZoneFlag = None,
) -> None:
    """Each line becomes a schedule of a command with the same expression. Nothing is dropped without a word:
    what cannot be moved is listed in the file and on stderr."""
    if (file is None) != user:
        raise typer.BadParameter("give a crontab file, - for stdin, or --user")
    text = _own_crontab() if file is None else sys.stdin.read() if file == "-" else read_file(file)
    named = system or (file is not None and str(Path(file).absolute()).startswith(SYSTEM_TABLES))
    home = os.path.expanduser("~") if user else None
    read_crontab(text, output.made, tz=zone_of_machine(tz), system=named, home=home)
    output.write()


def _own_crontab() -> str:
    try:
        done = subprocess.run(["crontab", "-l"], capture_output=True, text=True, check=False)  # noqa: S607
    except FileNotFoundError:
        raise ConfigError("--user: this machine has no program `crontab`: give a file") from None
    if done.returncode != 0:
        raise ConfigError(f"--user: {done.stderr.strip() or 'crontab -l failed'}")
    return done.stdout


def read_file(file: str) -> str:
    try:
        return read_text(file)
    except ValueError as problem:
        raise ConfigError(f"{file} cannot be read: {problem}") from None


def zone_of_machine(given: str | None) -> str:
    """The zone that cron uses, by the means of this machine; a wrong name is an error."""
    if given is not None:
        return zone.load(given).name
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name and LOCAL_TIME.is_symlink():
        name = str(LOCAL_TIME.resolve()).partition("zoneinfo/")[2]
    try:
        return zone.load(name or "UTC").name
    except ValueError:
        raise ConfigError("--tz: the zone of this machine is not known: give it with --tz") from None


@command(
    commands,
    "celery-beat",
    "duetime import celery-beat shop.celery:app --output schedules.yaml",
    "duetime import celery-beat celeryconfig.py --plan",
)
def celery_beat(
    context: typer.Context,
    output: OutputFlags,
    source: Annotated[
        str,
        typer.Argument(metavar="MODULE:APP|FILE", help="A Celery app, or a Python file with its settings."),
    ],
    tz: ImportZoneFlag = None,
) -> None:
    """Each entry of the beat schedule, and of the database of django-celery-beat, becomes a schedule of the
    same task. What cannot be moved as it is stands in the file and on stderr."""
    with redirect_stdout(sys.stderr):  # what the application prints does not belong into the file
        read_celery_beat(_python_object(source), output.made, tz)
    output.write()


@command(
    commands,
    "apscheduler",
    "duetime import apscheduler shop.jobs:scheduler --output schedules.yaml",
    "duetime import apscheduler sqlite:///jobs.sqlite --plan",
)
def apscheduler(
    context: typer.Context,
    output: OutputFlags,
    source: Annotated[
        str, typer.Argument(metavar="MODULE:SCHEDULER|URL", help="A scheduler, or the URL of its job store.")
    ],
    tz: ImportZoneFlag = None,
) -> None:
    """Each job becomes a schedule of a task with the name of its function. Misfire, coalesce and
    max_instances become missed and overlap."""
    began = now_here()
    with redirect_stdout(sys.stderr):  # what the application prints does not belong into the file
        jobs = jobs_at(source, output.made) if "://" in source else jobs_of(_python_object(source), began)
        read_apscheduler(jobs, output.made, tz)
    output.write()


def _python_object(source: str) -> Any:
    if not source.endswith(".py"):
        return load_object(source)
    try:
        return SimpleNamespace(**run_path(source))
    except OSError as problem:
        raise ConfigError(f"{source} cannot be read: {problem.strerror}") from None
