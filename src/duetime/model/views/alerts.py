"""Alerts, their rules, channels and mutes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from duetime.model.alert.channel import Channel
from duetime.model.alert.quiet import Mute
from duetime.model.alert.rule import AlertRule
from duetime.model.alert.state import Alert
from duetime.model.instant import to_datetime
from duetime.model.views.fields import about, moment

ConditionName = Literal[
    "silent",
    "late",
    "failing",
    "dead_letters",
    "skipped",
    "queue_lag",
    "no_leader",
    "node_lost",
    "clock_skew",
]
SeverityName = Literal["critical", "warning", "info"]
ChannelTypeName = Literal["webhook", "slack", "pagerduty", "alertmanager", "email", "apprise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertView:
    """One episode of one condition."""

    id: str
    condition: ConditionName
    subject: str = field(metadata=about("The schedule, queue, node or target.", "nightly"))
    severity: SeverityName
    rule: str
    text: str
    since: datetime = field(metadata=about("When the condition began."))
    opened_at: datetime = field(metadata=about("When it was found."))
    closed_at: datetime | None = field(default=None, metadata=about("null: it is open."))
    closed: str | None = field(default=None, metadata=about("Why it is over.", "succeeded again"))
    told: list[str] = field(
        default_factory=list, metadata=about("The channels that know that it is open.", ["ops"])
    )
    muted_until: datetime | None = field(default=None, metadata=about("It is not told before."))

    @staticmethod
    def of(alert: Alert, mute: Mute | None = None) -> AlertView:
        return AlertView(
            id=alert.id,
            condition=alert.condition,  # type: ignore[arg-type]
            subject=alert.subject,
            severity=alert.severity,  # type: ignore[arg-type]
            rule=alert.rule,
            text=alert.text,
            since=to_datetime(alert.since),
            opened_at=to_datetime(alert.opened_at),
            closed_at=moment(alert.closed_at),
            closed=alert.closed,
            told=alert.told,
            muted_until=None if mute is None else to_datetime(mute.until),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRuleView:
    name: str
    condition: ConditionName
    schedule: str | None = field(default=None, metadata=about("A name or a pattern with *; null: all."))
    queue: str | None = field(default=None, metadata=about("A name or a pattern with *; null: all."))
    after: str | None = field(default=None, metadata=about("How long it may last.", "10m"))
    count: int | None = field(default=None, metadata=about("How many in a row, or dead letters.", 3))
    ratio: float | None = field(default=None, metadata=about("The share of failed jobs within `window`."))
    window: str | None = field(default=None, metadata=about("For `ratio`.", "1h"))
    channels: list[str] = field(default_factory=list, metadata=about("Empty: all channels."))
    severity: SeverityName = "warning"
    enabled: bool = True
    version: int = field(default=0, metadata=about("0: built in."))

    @staticmethod
    def of(rule: AlertRule) -> AlertRuleView:
        return AlertRuleView(name=rule.name, **rule.to_json(), version=rule.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChannelView:
    """Secrets are named and never shown."""

    name: str
    type: ChannelTypeName
    settings: dict[str, Any] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list, metadata=about("Those that are set.", ["url"]))
    quiet: list[dict[str, Any]] = field(default_factory=list)
    enabled: bool = True
    version: int = 1

    @staticmethod
    def of(channel: Channel) -> AlertChannelView:
        return AlertChannelView(
            name=channel.name,
            type=channel.type.value,
            settings=dict(channel.settings),
            secrets=sorted(channel.secrets),
            quiet=[one.to_json() for one in channel.quiet],
            enabled=channel.enabled,
            version=channel.version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTest:
    """A test notice on its way."""

    job_id: UUID = field(metadata=about("The job that delivers it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteView:
    """A snooze or a maintenance window."""

    id: str
    start: datetime
    until: datetime
    condition: ConditionName | None = None
    subject: str | None = field(default=None, metadata=about("A name or a pattern with *; null: all."))
    note: str | None = None
    author: str | None = None

    @staticmethod
    def of(mute: Mute) -> MuteView:
        return MuteView(
            id=mute.id,
            start=to_datetime(mute.start),
            until=to_datetime(mute.until),
            condition=mute.condition,  # type: ignore[arg-type]
            subject=mute.subject,
            note=mute.note,
            author=mute.author,
        )
