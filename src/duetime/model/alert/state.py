"""The alerts of one tenant, and the rule that turns what was found into notices.

An alert is one episode: it opens when a condition is found, is told once to each channel, closes when the
condition is over, and that is told to the channels that know of it. Everything is in one document that is
replaced if it is still the one that was read, notices included: what a notice says and that it is to be sent
are written together, and no two nodes can both decide to send it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any
from uuid import UUID

from duetime.model.alert.channel import Channel
from duetime.model.alert.quiet import Mute
from duetime.model.alert.rule import AlertRule, Condition
from duetime.model.codec import decode, encode
from duetime.model.instant import MINUTE, Micros

MAX_OPEN = 2_000  # alerts; more of them would say nothing new
MAX_LISTED = 100  # alerts in one notice; others follow in the next
MAX_PAST = 100  # alerts that are over and still shown
GROUPED = 10  # alerts of one notice that count as one incident where incidents have a key
BURST, BURST_SPAN = 3, 10 * MINUTE  # notices of one condition to one channel; after that they are collected
FIRING, RESOLVED, TEST = "firing", "resolved", "test"


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition that holds now."""

    rule: AlertRule
    subject: str
    since: Micros
    text: str
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return key_of(self.rule.condition, self.subject)


@dataclass(slots=True)
class Alert:
    id: str
    condition: str
    subject: str
    rule: str
    severity: str
    since: Micros  # when the condition began
    opened_at: Micros  # when it was found
    text: str
    detail: dict[str, Any] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)  # channels that know that it is open
    group: str | None = None
    closed_at: Micros | None = None
    closed: str | None = None  # why

    @property
    def key(self) -> str:
        return key_of(self.condition, self.subject)


@dataclass(slots=True)
class Notice:
    """What one channel is told, once."""

    id: str
    channel: str
    kind: str
    condition: str
    at: Micros
    alerts: list[dict[str, Any]]

    @property
    def seed(self) -> UUID:
        return UUID(bytes=blake2b(self.id.encode(), digest_size=16).digest())


@dataclass(slots=True)
class AlertState:
    swept_at: Micros = 0
    led_at: Micros = 0  # the last sweep by a leader
    resumed_at: Micros = 0  # the first sweep after a gap: what is overdue gets its grace again
    gap_start: Micros = 0  # up to when everything was checked before that gap
    alerts: list[Alert] = field(default_factory=list)  # open, or over and not told yet
    past: list[Alert] = field(default_factory=list)  # newest first
    outbox: list[Notice] = field(default_factory=list)  # decided, and perhaps not submitted yet
    watch: list[tuple[str, Micros, Micros]] = field(default_factory=list)  # schedule, fire, when to look
    nodes: dict[str, list[str]] = field(default_factory=dict)  # living: name and roles by id
    lost: dict[str, list[Any]] = field(default_factory=dict)  # name, roles, when, how many there were
    sent: dict[str, list[Micros]] = field(default_factory=dict)  # by channel and condition
    turn: int = 0  # which of many open alerts is checked next

    @property
    def open(self) -> list[Alert]:
        return [alert for alert in self.alerts if alert.closed_at is None]

    def to_bytes(self) -> bytes:
        return encode(asdict(self))

    @staticmethod
    def from_bytes(data: bytes | None) -> AlertState:
        """Fields of a later version are ignored."""
        if data is None:
            return AlertState()
        value = _known(AlertState, decode(data))
        value["alerts"] = [Alert(**_known(Alert, one)) for one in value["alerts"]]
        value["past"] = [Alert(**_known(Alert, one)) for one in value["past"]]
        value["outbox"] = [Notice(**_known(Notice, one)) for one in value["outbox"]]
        value["watch"] = [(name, fire, at) for name, fire, at in value["watch"]]
        return AlertState(**value)


def key_of(condition: str, subject: str) -> str:
    return f"{condition}:{subject}"


def update(
    state: AlertState,
    tenant: str,
    findings: Iterable[Finding],
    over: Mapping[str, str],
    now: Micros,
) -> None:
    """Open alerts for what was found, and close those that are over (by key: why)."""
    known = {alert.key: alert for alert in state.open}
    for finding in findings:
        alert = known.get(finding.key)
        if alert is None and len(known) < MAX_OPEN:
            alert = known[finding.key] = _opened(tenant, finding, now)
            state.alerts.append(alert)
        elif alert is not None:
            alert.text, alert.detail = finding.text, dict(finding.detail)
    for key, reason in over.items():
        if key in known:
            known[key].closed_at, known[key].closed = now, reason


def tell(
    state: AlertState,
    channels: Sequence[Channel],
    rules: Mapping[str, AlertRule],
    mutes: Sequence[Mute],
    now: Micros,
) -> None:
    """Put the notices that are due into the outbox, one for each channel and condition."""
    active = {channel.name: channel for channel in channels if channel.enabled}
    for alert in state.alerts:
        alert.told = [name for name in alert.told if name in active]
    for name, channel in active.items():
        if not channel.is_quiet(now):
            _tell_channel(state, name, rules, mutes, now)
    done = [alert for alert in state.alerts if alert.closed_at is not None and not alert.told]
    state.alerts = [alert for alert in state.alerts if alert.closed_at is None or alert.told]
    state.past = [*reversed(done), *state.past][:MAX_PAST]


def muted(alert: Alert, mutes: Iterable[Mute], now: Micros) -> Mute | None:
    return next((mute for mute in mutes if mute.covers(alert.condition, alert.subject, now)), None)


def _tell_channel(
    state: AlertState, channel: str, rules: Mapping[str, AlertRule], mutes: Sequence[Mute], now: Micros
) -> None:
    firing: dict[str, list[Alert]] = {}
    resolved: dict[str, list[Alert]] = {}
    for alert in state.alerts:
        if alert.closed_at is not None:
            if channel in alert.told:
                resolved.setdefault(alert.condition, []).append(alert)
        elif (
            channel not in alert.told
            and _goes_to(rules.get(alert.rule), channel)
            and muted(alert, mutes, now) is None
        ):
            firing.setdefault(alert.condition, []).append(alert)
    # A recovery first: what a receiver knows as open is closed before it opens again
    for condition, alerts in resolved.items():
        for alert in alerts[:MAX_LISTED]:
            alert.told.remove(channel)
        _add(state, channel, RESOLVED, condition, alerts[:MAX_LISTED], now)
    for condition, alerts in firing.items():
        if _may_send(state, f"{channel}/{condition}", now):
            told = alerts[:MAX_LISTED]
            group = told[0].id if len(told) > GROUPED else None
            for alert in told:
                alert.told.append(channel)
                alert.group = alert.group or group
            _add(state, channel, FIRING, condition, told, now)


def _goes_to(rule: AlertRule | None, channel: str) -> bool:
    return rule is None or not rule.channels or channel in rule.channels


def _may_send(state: AlertState, key: str, now: Micros) -> bool:
    recent = [at for at in state.sent.get(key, ()) if at > now - BURST_SPAN]
    if len(recent) >= BURST:
        return False
    state.sent[key] = [*recent, now]
    return True


def _add(
    state: AlertState, channel: str, kind: str, condition: str, alerts: Sequence[Alert], now: Micros
) -> None:
    open_groups = {alert.group for alert in state.open if alert.group is not None}
    identity = _digest(kind, channel, *[alert.id for alert in alerts])
    told = [notice_fields(alert, alert.group not in open_groups) for alert in alerts]
    state.outbox.append(Notice(identity, channel, kind, condition, now, told))


def notice_fields(alert: Alert, last: bool) -> dict[str, Any]:
    """`incident`: the same for alerts that were told together, if they are many; `last`: none of them is
    open."""
    return {
        "id": alert.id,
        "condition": alert.condition,
        "subject": alert.subject,
        "severity": alert.severity,
        "since": alert.since,
        "closed_at": alert.closed_at,
        "closed": alert.closed,
        "text": alert.text,
        "incident": alert.group or alert.id,
        "last": last,
    }


def _opened(tenant: str, finding: Finding, now: Micros) -> Alert:
    condition: Condition = finding.rule.condition
    return Alert(
        _digest(tenant, finding.key, str(now))[:12],
        condition.value,
        finding.subject,
        finding.rule.name,
        finding.rule.severity.value,
        finding.since,
        now,
        finding.text,
        dict(finding.detail),
    )


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _known(kind: type[Any], value: dict[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in kind.__dataclass_fields__ if name in value}
