"""Flags that several commands share."""

from __future__ import annotations

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
from duetime.cli.invocation import setting_option, settings_of, value_option
from duetime.config import Settings

COMPLETIONS: dict[str, Any] = {"queues": complete_queues}


def setting_flags(*names: str, roles: str | None = None, **arguments: Any) -> FlagGroup:
    """The flags of these settings; the value is the invocation's Settings. `arguments` are settings that
    have a flag of another kind, and `roles` fixes that setting."""

    def make(context: typer.Context, **given: str | None) -> Settings:
        return settings_of(context, **given, **({} if roles is None else {"roles": roles}))

    options = {
        name: Annotated[str | None, setting_option(name, autocompletion=COMPLETIONS.get(name))]
        for name in names
    }
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
JitterFlag = Annotated[str | None, value_option("--jitter", "TIME", "Spread the jobs over this time.")]
MaxRunsFlag = Annotated[int | None, value_option("--max-runs", "N", "Stop after this many fires.")]
OwnerFlag = Annotated[str | None, value_option("--owner", "NAME", "The owner, for filters.")]
LabelsFlag = Annotated[list[str] | None, value_option("--label", "NAME=VALUE", "A label; may be repeated.")]
YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
MigrateFlag = Annotated[bool, typer.Option("--migrate", help="Create or upgrade the schema first.")]
TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TASK|URL", help="The name of a task, or a URL to call.", autocompletion=complete_task
    ),
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
    value_option("--target", "NAME", "Only of this task; @http for URLs.", autocompletion=complete_target),
]
OfLabelFlag = Annotated[str | None, value_option("--label", "NAME=VALUE", "Only with this label.")]
OfScheduleFlag = Annotated[
    str | None, value_option("--schedule", "NAME", "Only of this schedule.", autocompletion=complete_schedule)
]
TextFlag = Annotated[str | None, value_option("--text", "TEXT", "Only with this text in the name.")]
ErrorFlag = Annotated[
    str | None, value_option("--error", "TEXT", "Only with this error, as `duetime dead groups` shows it.")
]
