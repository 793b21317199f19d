"""Options whose words come from the table of settings, and those that many commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from duetime.cli.completion import complete_queue, complete_queues, complete_schedule, complete_target, complete_zone
from duetime.config import TABLE

COMPLETIONS: dict[str, Any] = {"queues": complete_queues}


def option(name: str) -> Any:
    """The flag of a setting. Values are text here: the settings parse them, whatever source they come from."""
    setting = TABLE[name]
    default = f" [default: {setting.shown_default}]" if setting.shown_default else ""
    text = f"{setting.text} [env: {setting.variable}]{default}"
    return typer.Option(setting.flag, metavar=setting.form, show_default=False, help=text, autocompletion=COMPLETIONS.get(name))


def words(flag: str, form: str, text: str, **more: Any) -> Any:
    """An option that takes a value."""
    return typer.Option(flag, metavar=form, help=text, **more)


def switch(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text)


JsonFlag = Annotated[bool, typer.Option("--json", help="Write JSON.")]
LimitFlag = Annotated[int, words("--limit", "N", "At most so many.", min=1, max=10_000)]
PayloadFlag = Annotated[str | None, words("--payload", "JSON", "The task's arguments: JSON, @file, or - for stdin.")]
QueueFlag = Annotated[str | None, words("--queue", "NAME", "The queue to wait in.", autocompletion=complete_queue)]
AtFlag = Annotated[str | None, words("--at", "ISO", "Run at this instant.")]
DelayFlag = Annotated[str | None, words("--delay", "TIME", "Run after this time, such as 15m.")]
PriorityFlag = Annotated[int | None, words("--priority", "0-9", "9 is most urgent.")]
CronFlag = Annotated[str | None, words("--cron", "EXPR", "A cron expression.")]
EveryFlag = Annotated[str | None, words("--every", "TIME", "An interval, such as 5m.")]
RruleFlag = Annotated[str | None, words("--rrule", "TEXT", "A recurrence rule of RFC 5545.")]
ZoneFlag = Annotated[str | None, words("--tz", "ZONE", "The zone of --cron or --rrule.", autocompletion=complete_zone)]
MethodFlag = Annotated[str | None, words("--method", "METHOD", "How a URL is called; POST unless given.")]
OwnerFlag = Annotated[str | None, words("--owner", "NAME", "Whose it is.")]
LabelsFlag = Annotated[list[str] | None, words("--label", "NAME=VALUE", "A label; may be repeated.")]
YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

# -- which ones -----------------------------------------------------------------------------------------------------------
AllFlag = Annotated[bool, switch("--all", "All that match what is given beside it.")]
DryRunFlag = Annotated[bool, switch("--dry-run", "Only count those that match.")]
InQueueFlag = Annotated[str | None, words("--queue", "NAME", "Only in this queue.", autocompletion=complete_queue)]
OfOwnerFlag = Annotated[str | None, words("--owner", "NAME", "Only of this owner.")]
OfTargetFlag = Annotated[str | None, words("--target", "NAME", "Only of this task; @http: of URLs.", autocompletion=complete_target)]
OfLabelFlag = Annotated[str | None, words("--label", "NAME=VALUE", "Only with this label.")]
OfScheduleFlag = Annotated[str | None, words("--schedule", "NAME", "Only of this schedule.", autocompletion=complete_schedule)]
TextFlag = Annotated[str | None, words("--text", "TEXT", "Only with this in the name.")]
ErrorFlag = Annotated[str | None, words("--error", "TEXT", "Only with this error, as `duetime dead groups` shows it.")]
