"""What a notice says, in words and in the form that each kind of channel expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duetime.model import duration
from duetime.model.instant import SECOND, Micros, to_iso

MAX_LINES = 20
MAX_SLACK_TEXT = 3_500
MAX_SUMMARY = 1_000
DAY = 86_400 * SECOND
FAR = 365 * DAY  # an Alertmanager resolves by itself what has no end
_WHAT = {
    "silent": "silent",
    "skipped": "skipped fires",
    "late": "late",
    "failing": "failing",
    "dead_letters": "dead letters",
    "queue_lag": "queue lag",
    "no_leader": "no leader",
    "node_lost": "node lost",
    "clock_skew": "clock skew",
    "test": "test",
}
_MARK = {"firing": "ALERT", "resolved": "RECOVERED", "test": "TEST"}

Fields = Mapping[str, Any]  # of a notice, as its job carries them


def title(notice: Fields) -> str:
    """One line."""
    alerts = notice["alerts"]
    what = _WHAT.get(notice["condition"], notice["condition"])
    subject = alerts[0]["subject"] if len(alerts) == 1 else f"{len(alerts)} at the same time"
    return f"[{_MARK[notice['kind']]}] {what}: {subject}"


def body(notice: Fields, link: str | None = None) -> str:
    """A few lines; many alerts are a list."""
    alerts = notice["alerts"]
    lines = [line(one) for one in alerts[:MAX_LINES]]
    if len(alerts) > MAX_LINES:
        lines.append(f"... and {len(alerts) - MAX_LINES} more")
    if link is not None:
        lines.append(link)
    return "\n".join(lines)


def line(alert: Fields) -> str:
    if alert["closed_at"] is None:
        return f"{alert['subject']}: {alert['text']}"
    lasted = duration.show(max(SECOND, (alert["closed_at"] - alert["since"]) // SECOND * SECOND))
    return f"{alert['subject']}: {alert['closed'] or 'is well again'} after {lasted} ({alert['text']})"


def webhook(notice: Fields, tenant: str) -> dict[str, Any]:
    """In the shape of Standard Webhooks."""
    return {
        "type": f"alert.{notice['kind']}",
        "timestamp": to_iso(notice["at"]),
        "data": {
            "id": notice["id"],
            "tenant": tenant,
            "condition": notice["condition"],
            "title": title(notice),
            "alerts": [_shown(one) for one in notice["alerts"]],
        },
    }


def slack(notice: Fields, link: str | None) -> dict[str, Any]:
    text = f"*{_escaped(title(notice))}*\n{_escaped(body(notice, None))}"[:MAX_SLACK_TEXT]
    return {"text": text if link is None else f"{text}\n<{link}|Open Duetime>"}


def pagerduty(notice: Fields, routing_key: str, tenant: str, link: str | None) -> list[dict[str, Any]]:
    """One event for each incident. The same key in a repetition changes nothing."""
    events: dict[str, dict[str, Any]] = {}
    for one in notice["alerts"]:
        key = f"duetime/{tenant}/{one['incident']}"
        event: dict[str, Any] = {"routing_key": routing_key, "dedup_key": key}
        if notice["kind"] == "resolved":
            if one["last"]:
                events[key] = event | {"event_action": "resolve"}
        elif key not in events:
            several = sum(other["incident"] == one["incident"] for other in notice["alerts"]) > 1
            events[key] = event | {
                "event_action": "trigger",
                "payload": {
                    "summary": (title(notice) if several else f"{title(notice)}: {one['text']}")[
                        :MAX_SUMMARY
                    ],
                    "source": "duetime",
                    "severity": one["severity"],
                    "timestamp": to_iso(one["since"]),
                    "component": one["subject"][:255],
                    "class": one["condition"],
                    "custom_details": {"text": body(notice)},
                },
                **({} if link is None else {"links": [{"href": link, "text": "Duetime"}]}),
            }
    return list(events.values())


def alertmanager(notice: Fields, tenant: str, link: str | None) -> list[dict[str, Any]]:
    return [
        {
            "labels": {
                "alertname": f"Duetime{''.join(part.title() for part in one['condition'].split('_'))}",
                "subject": one["subject"],
                "severity": one["severity"],
                "tenant": tenant,
            },
            "annotations": {"summary": one["text"] or title(notice)},
            "startsAt": to_iso(one["since"]),
            "endsAt": to_iso(notice["at"] + FAR if one["closed_at"] is None else one["closed_at"]),
            **({} if link is None else {"generatorURL": link}),
        }
        for one in notice["alerts"]
    ]


def ago(now: Micros, at: Micros | None) -> str:
    if at is None:
        return "never"
    passed = duration.show(max(SECOND, (now - at) // SECOND * SECOND))
    return f"{to_iso(at // SECOND * SECOND)} ({passed} ago)"


def _shown(alert: Fields) -> dict[str, Any]:
    return {
        "id": alert["id"],
        "condition": alert["condition"],
        "subject": alert["subject"],
        "severity": alert["severity"],
        "since": to_iso(alert["since"]),
        "closed_at": None if alert["closed_at"] is None else to_iso(alert["closed_at"]),
        "text": line(alert),
    }


def _escaped(text: str) -> str:
    """As Slack wants it; a name must not make a link or call a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
