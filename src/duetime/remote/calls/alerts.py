"""Alerts, channels, rules and mutes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from duetime.engine.submit.validate import check_name
from duetime.errors import ChannelNotFound, MuteNotFound, RuleNotFound
from duetime.model.duration import Duration
from duetime.model.views import (
    AlertChannelView,
    AlertRuleView,
    AlertTest,
    AlertView,
    JobSummary,
    MuteView,
    Page,
)
from duetime.remote.calls.fields import duration_text, everything, given, instant
from duetime.remote.request import Call, path_part, read, request


def alerts(*, past: bool = False, limit: int = 100) -> Call[list[AlertView]]:
    """Open alerts, newest first; with `past` those that are over, too."""
    query = {"limit": str(limit), "past": "true" if past else None}
    return list(read(Page[AlertView], (yield request("GET", "/alerts", query=query))).items)


def close_alert(alert_id: str) -> Call[AlertView]:
    """Close an alert by hand. If its condition still holds, it opens again."""
    return read(AlertView, (yield request("POST", f"/alerts/{path_part(alert_id)}/close")))


def snooze_alert(alert_id: str, for_: Duration = "1h", *, note: str | None = None) -> Call[MuteView]:
    """Tell nothing about what this alert is about for a time."""
    body = given(**{"for": duration_text(for_, "for")}, note=note)
    return read(MuteView, (yield request("POST", f"/alerts/{path_part(alert_id)}/snooze", body)))


def alert_deliveries(*, limit: int = 50) -> Call[list[JobSummary]]:
    """The jobs that deliver notices, newest first."""
    query = {"limit": str(limit)}
    return list(read(Page[JobSummary], (yield request("GET", "/alerts/deliveries", query=query))).items)


def alert_channels() -> Call[list[AlertChannelView]]:
    """The channels, without their secrets."""
    return (yield from everything(Page[AlertChannelView], "/alerts/channels"))


def set_alert_channel(
    name: str, *, quiet: list[dict[str, Any]] | None = None, enabled: bool = True, **target: Any
) -> Call[AlertChannelView]:
    """Create or replace a channel: `type` and the fields of that type. A secret that is left out keeps its
    value, None removes it."""
    body = {"target": target, "quiet": quiet or [], "enabled": enabled}
    path = f"/alerts/channels/{path_part(check_name(name, 'name'))}"
    return read(AlertChannelView, (yield request("PUT", path, body)))


def remove_alert_channel(name: str) -> Call[None]:
    """Remove a channel: it is told nothing any more."""
    yield request("DELETE", f"/alerts/channels/{path_part(name)}", done=(ChannelNotFound.code,))


def test_alert_channel(name: str) -> Call[UUID]:
    """Send a test notice to a channel; the id of the job that delivers it."""
    return read(AlertTest, (yield request("POST", f"/alerts/channels/{path_part(name)}/test"))).job_id


def alert_rules() -> Call[list[AlertRuleView]]:
    """The rules, built-in ones included, the most specific first."""
    return (yield from everything(Page[AlertRuleView], "/alerts/rules"))


def set_alert_rule(name: str, **fields: Any) -> Call[AlertRuleView]:
    """Create or replace a rule. One with the name of a built-in rule replaces that one."""
    path = f"/alerts/rules/{path_part(check_name(name, 'name'))}"
    return read(AlertRuleView, (yield request("PUT", path, given(**fields))))


def remove_alert_rule(name: str) -> Call[None]:
    """Remove a rule. A built-in rule with its name holds again."""
    yield request("DELETE", f"/alerts/rules/{path_part(name)}", done=(RuleNotFound.code,))


def alert_mutes() -> Call[list[MuteView]]:
    """Snoozes and maintenance windows that are not over."""
    return (yield from everything(Page[MuteView], "/alerts/mutes"))


def mute_alerts(
    for_: Duration,
    *,
    start: Any = None,
    condition: str | None = None,
    subject: str | None = None,
    note: str | None = None,
) -> Call[MuteView]:
    """Tell nothing about alerts with this condition and subject for a time: a maintenance window."""
    body = given(
        **{"for": duration_text(for_, "for")},
        start=instant(start, "start"),
        condition=condition,
        subject=subject,
        note=note,
    )
    return read(MuteView, (yield request("POST", "/alerts/mutes", body)))


def unmute_alerts(mute_id: str) -> Call[None]:
    """End a snooze or a maintenance window."""
    yield request("DELETE", f"/alerts/mutes/{path_part(mute_id)}", done=(MuteNotFound.code,))
