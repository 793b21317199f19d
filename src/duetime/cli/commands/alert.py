"""`duetime alert`: open alerts, the channels that are told, the rules, and times in which nothing is told."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from duetime.cli.backend import Backend, with_backend
from duetime.cli.command import command, group
from duetime.cli.files import read_text
from duetime.cli.format import hint, last_line, moment_text, say, show, show_list
from duetime.cli.inputs import JsonFlag, LimitFlag, YesFlag, read_instant
from duetime.cli.program import value_option
from duetime.errors import Conflict, InvalidInput, WaitTimeout
from duetime.model.alert.channel import FIELDS, ChannelType
from duetime.model.alert.rule import Condition
from duetime.model.views import (
    AlertChannelView,
    AlertRuleView,
    AlertView,
    JobSummary,
    JobView,
    MuteView,
)

commands = group("List, snooze and close alerts; set channels.")

TEST_TIMEOUT = "30s"
_NUMBERS = ("port",)
_LISTS = ("to",)
VERBS = ("add", "create", "new", "set", "update")  # that other programs have before the name of a channel
RULE_COLUMNS = ("NAME", "CONDITION", "SCHEDULE", "QUEUE", "LIMIT", "CHANNELS", "SEVERITY", "STATE")
ChannelName = Annotated[str, typer.Argument(metavar="CHANNEL", help="The channel's name.")]
RuleName = Annotated[str, typer.Argument(metavar="RULE", help="The rule's name.")]
AlertId = Annotated[str, typer.Argument(metavar="ID", help="The alert's id.")]
ForFlag = Annotated[str, value_option("--for", "TIME", "How long, such as 2h.")]
NoteFlag = Annotated[str | None, value_option("--note", "TEXT", "The reason.")]


@command(commands, "list", "duetime alert list", "duetime alert list --past --json")
def list_alerts(
    context: typer.Context,
    past: Annotated[bool, typer.Option("--past", help="Those that are over, too.")] = False,
    limit: LimitFlag = 100,
    as_json: JsonFlag = False,
) -> None:
    """Open alerts, newest first."""
    found = with_backend(context, lambda backend: backend.alerts(past=past, limit=limit))
    columns = ("ID", "CONDITION", "SUBJECT", "SEVERITY", "SINCE", "STATE", "TEXT")
    show_list(found, as_json, columns, _alert_row, "no alerts")


def _alert_row(one: AlertView) -> tuple[str, ...]:
    state = "open"
    if one.closed_at is not None:
        state = f"over: {one.closed}"
    elif one.muted_until is not None:
        state = f"muted until {moment_text(one.muted_until)}"
    return one.id, one.condition, one.subject, one.severity, moment_text(one.since), state, one.text


@command(commands, "close", "duetime alert close 5f0c9d2b7a31")
def close(context: typer.Context, alert_id: AlertId, as_json: JsonFlag = False) -> None:
    """Close an alert by hand, such as that of a node that is not coming back. It opens again if its condition
    still holds."""
    found = with_backend(context, lambda backend: backend.close_alert(alert_id))
    show(found, as_json, lambda one: say(f"closed: {one.condition} {one.subject}"))


@command(commands, "snooze", "duetime alert snooze 5f0c9d2b7a31 --for 4h --note 'disk ordered'")
def snooze(
    context: typer.Context,
    alert_id: AlertId,
    for_: ForFlag = "1h",
    note: NoteFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell nothing more about what this alert is about for a time."""
    show(
        with_backend(context, lambda backend: backend.snooze_alert(alert_id, for_, note=note)),
        as_json,
        _muted,
    )


@command(
    commands,
    "mute",
    "duetime alert mute --for 2h --subject 'report-*' --note 'new database'",
    "duetime alert mute --for 6h --start 2026-12-24T22:00:00+01:00",
)
def mute(
    context: typer.Context,
    for_: ForFlag,
    start: Annotated[
        str | None, value_option("--start", "ISO", "From this instant; now if left out.")
    ] = None,
    condition: Annotated[str | None, value_option("--condition", "NAME", "Only this condition.")] = None,
    subject: Annotated[
        str | None, value_option("--subject", "PATTERN", "Only schedules, queues or nodes of this name.")
    ] = None,
    note: NoteFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """A maintenance window: nothing is told. What is still wrong at its end is told then."""
    begins = read_instant(start, "start")
    made = with_backend(
        context,
        lambda backend: backend.mute_alerts(
            for_, start=begins, condition=condition, subject=subject, note=note
        ),
    )
    show(made, as_json, _muted)


def _muted(made: MuteView) -> None:
    what = made.subject or "all alerts"
    say(f"{made.id}: {what} muted until {moment_text(made.until)}: duetime alert unmute {made.id}")


@command(commands, "mutes", "duetime alert mutes")
def list_mutes(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Snoozes and maintenance windows that are not over."""
    found = with_backend(context, lambda backend: backend.alert_mutes())
    show_list(
        found,
        as_json,
        ("ID", "CONDITION", "SUBJECT", "START", "UNTIL", "BY", "NOTE"),
        lambda one: (
            one.id,
            one.condition or "all",
            one.subject or "all",
            moment_text(one.start),
            moment_text(one.until),
            one.author or "-",
            one.note or "-",
        ),
        "nothing is muted",
    )


@command(commands, "unmute", "duetime alert unmute 0c9d2b7a315f")
def unmute(
    context: typer.Context,
    mute_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the snooze or window.")],
) -> None:
    """End a snooze or a maintenance window."""
    with_backend(context, lambda backend: backend.unmute_alerts(mute_id))
    say(f"{mute_id} is over")


# -- channels --------------------------------------------------------------------------------------
@command(commands, "channels", "duetime alert channels")
def list_channels(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Channels by name. Their secrets are not shown."""
    found = with_backend(context, lambda backend: backend.alert_channels())
    show_list(
        found, as_json, ("NAME", "TYPE", "SETTINGS", "SECRETS", "QUIET", "STATE"), _channel_row, "no channels"
    )


def _channel_row(one: AlertChannelView) -> tuple[str, ...]:
    settings = ", ".join(f"{name}={value}" for name, value in one.settings.items())
    quiet = ", ".join(f"{time['start']}-{time['end']} {time['tz']}" for time in one.quiet)
    return (
        one.name,
        one.type,
        settings or "-",
        ", ".join(one.secrets) or "-",
        quiet or "-",
        "on" if one.enabled else "off",
    )


@command(
    commands,
    "channel",
    "duetime alert channel ops --type slack url=@slack-webhook.txt",
    "duetime alert channel pager --type pagerduty routing_key=@pagerduty.key",
    "duetime alert channel team --type email host=mail.example.org sender=dt@example.org to=ops@example.org",
    "duetime alert channel ops --quiet 22:00-07:00 --tz Europe/Berlin",
    "duetime alert channel hook --unset signing_secret",
)
def set_channel(
    context: typer.Context,
    name: ChannelName,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIELD=VALUE]...", help="Its fields; @FILE reads a value from a file."),
    ] = None,
    type_: Annotated[
        str | None,
        value_option("--type", "NAME", "webhook, slack, pagerduty, alertmanager, email or apprise."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        value_option("--unset", "FIELD", "Remove an optional field: signing_secret, ...; may be repeated."),
    ] = None,
    quiet: Annotated[
        list[str] | None,
        value_option("--quiet", "FROM-TO", "A time in which it is told nothing: 22:00-07:00."),
    ] = None,
    tz: Annotated[str, value_option("--tz", "ZONE", "The time zone of --quiet.")] = "UTC",
    on: Annotated[bool | None, typer.Option("--on/--off", help="Whether it is told anything.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create or change a channel. Fields that are left out stay as they are. From the first channel on, the
    built-in rules apply."""
    given = dict(_field(text, name) for text in fields or [])
    if both := [field for field in unset or [] if field in given]:
        raise InvalidInput(both[0], "has a value and is removed: leave one of the two out")

    async def work(backend: Backend) -> AlertChannelView:
        known = {one.name: one for one in await backend.alert_channels()}.get(name)
        kind = type_ or (None if known is None else known.type)
        if kind is None:
            raise InvalidInput("type", f"a new channel needs --type: {', '.join(ChannelType)}; {_form(name)}")
        old = known.settings if known is not None and known.type == kind else {}
        times = [_quiet(text, tz) for text in quiet] if quiet else [] if known is None else known.quiet
        settings = _without(unset or [], {**old, **given}, kind)
        enabled = on if on is not None else known is None or known.enabled
        return await backend.set_alert_channel(name, type=kind, quiet=times, enabled=enabled, **settings)

    made = with_backend(context, work, creates=True)
    show(made, as_json, lambda one: say(f"channel {one.name} ({one.type}): duetime alert test {one.name}"))


def _without(unset: list[str], settings: dict[str, Any], kind: str) -> dict[str, Any]:
    """An absent secret would be kept: null removes it. An absent setting is removed."""
    if not unset or kind not in tuple(ChannelType):
        return settings  # an unknown type is refused by the service
    fields = FIELDS[ChannelType(kind)]
    for name in unset:
        if name not in fields:
            raise InvalidInput(
                "unset", f"a channel of type {kind} has no field {name[:40]!r}: known are {', '.join(fields)}"
            )
        if fields[name].required:
            raise InvalidInput(name, f"cannot be removed: a channel of type {kind} needs it")
    kept = {name: value for name, value in settings.items() if name not in unset}
    return kept | {name: None for name in unset if fields[name].secret}


def _form(channel: str) -> str:
    return f"write: duetime alert channel {channel} --type slack url=@slack-webhook.txt"


def _field(text: str, channel: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    known = sorted({field for fields in FIELDS.values() for field in fields})
    if not sign:
        form = _form(text[:40] if channel in VERBS else channel)
        raise InvalidInput("field", f"{text[:40]!r} is not FIELD=VALUE; {form}")
    if name not in known:
        raise InvalidInput("field", f"{text[:40]!r} is not FIELD=VALUE; fields are {', '.join(known)}")
    if value.startswith("@"):
        try:
            value = read_text(value[1:]).strip()
        except ValueError as problem:
            raise InvalidInput(name, f"{value[1:]} cannot be read: {problem}") from None
    if name in _NUMBERS and value.isdigit():
        return name, int(value)
    return name, value.split(",") if name in _LISTS else value


def _quiet(text: str, tz: str) -> dict[str, Any]:
    start, dash, end = text.partition("-")
    if not dash:
        raise InvalidInput("quiet", f"{text!r} is not a time such as 22:00-07:00")
    return {"start": start, "end": end, "tz": tz}


@command(commands, "remove-channel", "duetime alert remove-channel ops --yes")
def remove_channel(context: typer.Context, name: ChannelName, yes: YesFlag = False) -> None:
    """Remove a channel. Without any channel nothing is watched."""
    if not yes:
        typer.confirm(f"Remove channel {name}?", abort=True)
    with_backend(context, lambda backend: backend.remove_alert_channel(name))
    say(f"channel {name} is removed")


@command(commands, "test", "duetime alert test ops")
def send_test(context: typer.Context, name: ChannelName, as_json: JsonFlag = False) -> None:
    """Send a test notice and wait until it is delivered. A running node with the role planner delivers it."""

    async def work(backend: Backend) -> JobView:
        job_id = await backend.test_alert_channel(name)
        try:
            return await backend.wait_for(job_id, TEST_TIMEOUT)
        except WaitTimeout:
            found = await backend.get_job(job_id)
            error = f": {last_line(found.error)}" if found.error else ": is a planner running?"
            raise Conflict(
                f"the test notice was not delivered within {TEST_TIMEOUT}{error} (job {job_id} goes on)"
            ) from None

    done = with_backend(context, work)
    if done.state != "succeeded":
        raise Conflict(f"channel {name}: {last_line(done.error)} (job {done.id})")
    show(done, as_json, lambda _: say(f"channel {name} accepted the test notice"))


@command(commands, "deliveries", "duetime alert deliveries --limit 20")
def deliveries(context: typer.Context, limit: LimitFlag = 50, as_json: JsonFlag = False) -> None:
    """The jobs that deliver notices, newest first. A dead one was not delivered."""
    found = with_backend(context, lambda backend: backend.alert_deliveries(limit=limit))
    show_list(found, as_json, ("JOB", "CHANNEL", "STATE", "AT", "ERROR"), _delivery_row, "no deliveries")


def _delivery_row(one: JobSummary) -> tuple[str, ...]:
    channel = one.labels.get("channel", "-") if one.labels else "-"
    return str(one.id), channel, one.state, moment_text(one.fire_time), last_line(one.error)


# -- rules -----------------------------------------------------------------------------------------
@command(commands, "rules", "duetime alert rules")
def list_rules(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Rules, built-in ones included, the most specific first: for each schedule and queue the first one that
    matches applies."""
    found = with_backend(context, lambda backend: backend.alert_rules())
    show_list(found, as_json, RULE_COLUMNS, _rule_row, "no rules")


def _rule_row(one: AlertRuleView) -> tuple[str, ...]:
    measure = f"{one.ratio:.0%}" if one.ratio else str(one.count)
    limit = one.after or (f"{measure} in {one.window}" if one.window else measure)
    state = "on" if one.enabled else "off"
    return (
        one.name,
        one.condition,
        one.schedule or "all",
        one.queue or "all",
        limit,
        ", ".join(one.channels) or "all",
        one.severity,
        state if one.version else f"{state}, built in",
    )


@command(
    commands,
    "rule",
    "duetime alert rule nightly --condition silent --schedule nightly --after 2h",
    "duetime alert rule silent --after 30m",
    "duetime alert rule 'mail fails' --condition failing --queue mail --ratio 0.2 --window 1h",
    "duetime alert rule noise --condition silent --schedule 'test-*' --off",
)
def set_rule(
    context: typer.Context,
    name: RuleName,
    condition: Annotated[
        str | None,
        value_option("--condition", "NAME", "silent, late, failing, dead_letters, skipped, queue_lag, ..."),
    ] = None,
    schedule: Annotated[
        str | None, value_option("--schedule", "PATTERN", "Only schedules of this name; * matches any text.")
    ] = None,
    queue: Annotated[
        str | None, value_option("--queue", "PATTERN", "Only queues of this name; * matches any text.")
    ] = None,
    after: Annotated[str | None, value_option("--after", "TIME", "How long it may last.")] = None,
    count: Annotated[
        int | None, value_option("--count", "N", "How many: in a row, dead letters, or skipped.")
    ] = None,
    ratio: Annotated[
        float | None, value_option("--ratio", "NUMBER", "The share of failed jobs, such as 0.2.")
    ] = None,
    window: Annotated[str | None, value_option("--window", "TIME", "For --ratio, and skipped fires.")] = None,
    channels: Annotated[
        list[str] | None, value_option("--channel", "NAME", "Tell this channel only; may be repeated.")
    ] = None,
    severity: Annotated[str | None, value_option("--severity", "NAME", "critical, warning or info.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Exempt what the rule names.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create or replace a rule. A rule with the name of a built-in one replaces it."""

    async def work(backend: Backend) -> tuple[AlertRuleView, set[str]]:
        known = {one.name: one for one in await backend.alert_rules()}.get(name)
        kind = condition or (None if known is None else known.condition)
        if kind is None:
            raise InvalidInput("condition", f"a new rule needs --condition: {', '.join(Condition)}")
        fields: dict[str, Any] = {
            "condition": kind,
            "schedule": schedule,
            "queue": queue,
            "after": after,
            "count": count,
            "ratio": ratio,
            "window": window,
            "channels": channels,
            "severity": severity,
        }
        given = {field: value for field, value in fields.items() if value is not None}
        made = await backend.set_alert_rule(name, enabled=not off, **given)
        return made, set(made.channels) - {one.name for one in await backend.alert_channels()}

    made, missing = with_backend(context, work, creates=True)
    show(made, as_json, lambda one: show_list([one], False, RULE_COLUMNS, _rule_row, ""))
    for channel in sorted(missing):
        hint(f"there is no channel {channel!r}: until there is, the rule tells it nothing")


@command(commands, "remove-rule", "duetime alert remove-rule nightly")
def remove_rule(context: typer.Context, name: RuleName) -> None:
    """Remove a rule. A built-in rule that it replaced applies again."""
    with_backend(context, lambda backend: backend.remove_alert_rule(name))
    say(f"rule {name} is removed")
