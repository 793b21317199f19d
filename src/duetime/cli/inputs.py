"""From typed text to values: payloads, instants, labels, targets and rules."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from inspect import Parameter
from typing import Annotated, Any

import typer

from duetime.cli.command import FlagGroup, flag_group
from duetime.cli.completion import (
    complete_queue,
    complete_queues,
    complete_schedule,
    complete_target,
    complete_task,
    complete_zone,
)
from duetime.cli.files import read_text
from duetime.cli.program import setting_option, settings_of, value_option
from duetime.config import Settings
from duetime.errors import ConfigError, InvalidInput, InvalidPayload, InvalidWhen
from duetime.model.retry import Retry
from duetime.model.when import At, Cron, Every, RRule, When

# Flags that several commands share.


COMPLETIONS: dict[str, Any] = {"queues": complete_queues}


def setting_flags(*names: str, roles: str | None = None, app_argument: Any = None) -> FlagGroup:
    """The flags of these settings; the value is the invocation's Settings. `app_argument` is another way to
    give the app, and `roles` fixes that setting."""

    def make(context: typer.Context, app_argument: str | None = None, **given: str | None) -> Settings:
        if app_argument is not None:
            if given["app"] not in (None, app_argument):
                raise ConfigError(f"app: {app_argument} and --app {given['app']}: give one of them")
            given["app"] = app_argument
        return settings_of(context, **given, **({} if roles is None else {"roles": roles}))

    options = {
        name: Annotated[str | None, setting_option(name, autocompletion=COMPLETIONS.get(name))]
        for name in names
    }
    arguments = {} if app_argument is None else {"app_argument": app_argument}
    flags = {name: (kind, None) for name, kind in {**arguments, **options}.items()}
    return flag_group(make, {"context": (typer.Context, Parameter.empty), **flags})


JsonFlag = Annotated[bool, typer.Option("--json", help="Write JSON.")]
LimitFlag = Annotated[int, value_option("--limit", "N", "Show at most this many.", min=1, max=10_000)]
PayloadFlag = Annotated[
    str | None, value_option("--payload", "JSON", "The task's arguments: JSON, @file, or - for stdin.")
]
QueueFlag = Annotated[
    str | None, value_option("--queue", "NAME", "The queue of the job.", autocompletion=complete_queue)
]
AtFlag = Annotated[str | None, value_option("--at", "ISO", "Run at this instant.")]
DelayFlag = Annotated[str | None, value_option("--delay", "TIME", "Run after this time, such as 15m.")]
PriorityFlag = Annotated[int | None, value_option("--priority", "0-9", "9 is most urgent.")]
CronFlag = Annotated[str | None, value_option("--cron", "EXPR", "A cron expression.")]
EveryFlag = Annotated[str | None, value_option("--every", "TIME", "An interval, such as 5m.")]
RruleFlag = Annotated[str | None, value_option("--rrule", "TEXT", "A recurrence rule of RFC 5545.")]
ZoneFlag = Annotated[
    str | None,
    value_option("--tz", "ZONE", "The time zone of --cron or --rrule.", autocompletion=complete_zone),
]
OnceFlag = Annotated[str | None, value_option("--at", "ISO", "A single instant.")]
MethodFlag = Annotated[
    str | None, value_option("--method", "METHOD", "The HTTP method for a URL; POST by default.")
]
OverlapFlag = Annotated[
    str | None,
    value_option(
        "--overlap", "POLICY", "If the previous job still runs: allow, skip, queue or cancel_previous."
    ),
]
JitterFlag = Annotated[
    str | None,
    value_option("--jitter", "TIME", "Delay each job by a random time up to this, or within 1s..5s."),
]
ExpiresFlag = Annotated[
    str | None,
    value_option("--expires", "TIME", "Skip the job if it has not started this long after it is due."),
]
MissedFlag = Annotated[
    str | None,
    value_option("--missed", "POLICY", "Fires that no worker started in time: latest, all or skip."),
]
WithinFlag = Annotated[
    str | None, value_option("--within", "TIME", "Run a missed fire only if it is at most this old.")
]
MissedWaitingFlag = Annotated[
    bool, typer.Option("--missed-waiting", help="A fire that waits for a limit counts as missed, too.")
]
StartAtFlag = Annotated[str | None, value_option("--start-at", "ISO", "No fire before this instant.")]
EndAtFlag = Annotated[str | None, value_option("--end-at", "ISO", "No fire after this instant.")]
MaxRunsFlag = Annotated[int | None, value_option("--max-runs", "N", "Stop after this many fires.")]
OwnerFlag = Annotated[str | None, value_option("--owner", "NAME", "The owner, for filters.")]
LabelsFlag = Annotated[list[str] | None, value_option("--label", "NAME=VALUE", "A label; may be repeated.")]
YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
MigrateFlag = Annotated[bool, typer.Option("--migrate", help="Create or upgrade the schema first.")]
TargetArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK|URL",
        help="The name of a task, or a URL to call.",
        autocompletion=complete_task,
        show_default=False,
    ),
]
HeadersFlag = Annotated[
    list[str] | None, value_option("--header", "NAME:VALUE", "A header of the call; may be repeated.")
]
CommandFlag = Annotated[
    str | None, value_option("--command", "WORDS", "Run this program, without a shell, instead of a task.")
]
ShellFlag = Annotated[
    str | None, value_option("--shell", "LINE", "Run this line with /bin/sh, like a line of a crontab.")
]
FolderFlag = Annotated[
    str | None, value_option("--cwd", "FOLDER", "The folder that --command or --shell runs in.")
]
DestinationFlag = Annotated[
    str | None, value_option("--destination", "NAME", "Publish the payload there, instead of a task.")
]
# Not --key: that is the API key, which must not become part of a message by mistake.
MessageKeyFlag = Annotated[
    str | None, value_option("--message-key", "TEXT", "The routing or partition key for --destination.")
]
ReportFlag = Annotated[
    bool,
    typer.Option(
        "--report", help="With --destination: the consumer reports the end of the job, within --timeout."
    ),
]
TimeoutFlag = Annotated[str | None, value_option("--timeout", "TIME", "The longest time of an attempt.")]
MaxAttemptsFlag = Annotated[
    int | None, value_option("--max-attempts", "N", "Failures until the job is a dead letter.")
]
RetryDelayFlag = Annotated[
    str | None,
    value_option("--retry-delay", "TIME", "The wait after the first failure; it doubles each time."),
]
DeliveryFlag = Annotated[
    str | None,
    value_option("--delivery", "PROMISE", "at_least_once, or at_most_once: never run a second time."),
]
ScheduleArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The schedule's name.", autocompletion=complete_schedule)
]

# -- filters ---------------------------------------------------------------------------------------
AllFlag = Annotated[bool, typer.Option("--all", help="All that match the filters.")]
DryRunFlag = Annotated[bool, typer.Option("--dry-run", help="Only count the matches.")]
InQueueFlag = Annotated[
    str | None, value_option("--queue", "NAME", "Only in this queue.", autocompletion=complete_queue)
]
OfOwnerFlag = Annotated[str | None, value_option("--owner", "NAME", "Only of this owner.")]
OfTargetFlag = Annotated[
    str | None,
    value_option(
        "--target",
        "NAME",
        "Only of this task; @http for URLs, @publish:NAME for a destination.",
        autocompletion=complete_target,
    ),
]
OfLabelFlag = Annotated[str | None, value_option("--label", "NAME=VALUE", "Only with this label.")]
OfScheduleFlag = Annotated[
    str | None, value_option("--schedule", "NAME", "Only of this schedule.", autocompletion=complete_schedule)
]
TextFlag = Annotated[str | None, value_option("--text", "TEXT", "Only with this text in the name.")]
ErrorFlag = Annotated[
    str | None, value_option("--error", "TEXT", "Only with this text in the error; case does not matter.")
]
ErrorGroupFlag = Annotated[
    str | None, value_option("--error-group", "TEXT", "Only of this group of `duetime dead groups`.")
]


ISO = "use a form such as 2030-01-01T09:00:00Z or 2030-01-01T09:00:00+01:00"

Target = str | dict[str, Any]  # the name of a task, or another target


def read_payload(text: str | None) -> Any:
    """JSON as given, from a file (@name) or from stdin (-)."""
    if text is None:
        return {}
    try:
        return json.loads(_payload_text(text), parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except (json.JSONDecodeError, RecursionError) as problem:
        raise InvalidPayload(
            "payload",
            f'is not JSON ({problem}): use a form such as \'{{"customer": "c1"}}\', @file.json or -',
        ) from None


def _payload_text(text: str) -> str:
    if not text.startswith("@") and text != "-":
        return text
    try:
        return sys.stdin.read() if text == "-" else read_text(text[1:])
    except ValueError as problem:  # also for text that is not UTF-8
        name = "stdin" if text == "-" else repr(text[1:])
        raise InvalidPayload("payload", f"{name} cannot be read: {problem}") from None


def _refuse_constant(name: str) -> Any:
    raise InvalidPayload("payload", f"{name} is not a JSON number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InvalidPayload(
            "payload", f"has {next(name for name in names if names.count(name) > 1)!r} twice"
        )
    return found


def read_instant(text: str | None, field: str) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(field, f"{text!r} is not an ISO 8601 instant: {ISO}") from None
    if moment.utcoffset() is None:
        raise InvalidInput(field, f"{text!r} has no time zone: {ISO}")
    return moment


def read_moment(at: str | None, delay: str | None) -> datetime | None:
    """The instant, if one is given; not together with a delay."""
    if at is not None and delay is not None:
        raise InvalidInput("delay", "give either `at` or `delay`, not both")
    return read_instant(at, "at")


def read_labels(pairs: Sequence[str]) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise InvalidInput("label", f"{pair!r} must be written name=value")
        labels[name] = value
    return labels or None


def read_label(pair: str | None) -> tuple[str, str] | None:
    labels = read_labels([] if pair is None else [pair])
    return None if labels is None else next(iter(labels.items()))


def read_target(
    target: TargetArgument = None,
    method: MethodFlag = None,
    header: HeadersFlag = None,
    command: CommandFlag = None,
    shell: ShellFlag = None,
    cwd: FolderFlag = None,
    destination: DestinationFlag = None,
    message_key: MessageKeyFlag = None,
    report: ReportFlag = False,
) -> Target:
    """The name of a task, a URL to call, a program to run, or a destination to publish to."""
    if [target, command, shell, destination].count(None) != 3:
        raise InvalidInput("target", "give one of a task, a URL, --command, --shell or --destination")
    is_url = target is not None and "://" in target
    for name, value, fits, kind in (
        ("method", method, is_url, "a URL"),
        ("header", header, is_url, "a URL"),
        ("cwd", cwd, command or shell, "--command or --shell"),
        ("message-key", message_key, destination, "--destination"),
        ("report", report, destination, "--destination"),
    ):
        if value and not fits:
            raise InvalidInput(name, f"works only with {kind}: leave it out")
    if destination is not None:
        more = {"key": message_key, "report": "required" if report else None}
        return {"type": "publish", "destination": destination, **_given(more)}
    if target is None:
        argv = ["/bin/sh", "-c", shell] if command is None else _words(command)
        return {"type": "command", "argv": argv, **({} if cwd is None else {"cwd": cwd})}
    if not is_url:
        return target
    headers = dict(_header(one) for one in header or ())
    return {"type": "http", "url": target, **_given({"method": method, "headers": headers or None})}


TargetFlags = Annotated[Target, FlagGroup(read_target)]


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as problem:
        raise InvalidInput("command", f"{command!r} cannot be split into words: {problem}") from None


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise InvalidInput("header", f"{text!r} must be written 'Name: value'")
    return name.strip(), value.strip()


def read_retry(max_attempts: int | None, delay: str | None) -> Retry | None:
    given = retry_flags(max_attempts, delay)
    return Retry(**given) if given else None


def retry_flags(max_attempts: int | None, delay: str | None) -> dict[str, Any]:
    """Only what was given; a delay replaces a list of delays."""
    exact = {} if delay is None else {"first_delay": delay, "delays": None}
    return {**({} if max_attempts is None else {"max_attempts": max_attempts}), **exact}


def read_when(cron: str | None, every: str | None, at: str | None, rrule: str | None, tz: str | None) -> When:
    """Exactly one of the four; a time zone only for --cron and --rrule."""
    given = [
        name
        for name, value in (("cron", cron), ("every", every), ("at", at), ("rrule", rrule))
        if value is not None
    ]
    if len(given) != 1:
        found = " and ".join(f"--{name}" for name in given) or "nothing"
        raise InvalidWhen("when", f"{found} given: use one of --cron, --every, --at, --rrule")
    if tz is not None and given[0] in ("every", "at"):
        raise InvalidWhen("tz", f"does not apply to --{given[0]}: leave it out")
    if cron is not None:
        return Cron(cron, tz or "UTC")
    if every is not None:
        return Every(every)
    if rrule is not None:
        return RRule(rrule.replace("\\n", "\n"), tz or "UTC")
    moment = read_instant(at, "at")
    assert moment is not None
    return At(moment)
