"""The checklist of docs/production.md, as far as a program can check it: `duetime doctor --production`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duetime.cli.check import Check
from duetime.cli.format import plural
from duetime.config import Settings
from duetime.model.views import AlertChannelView, NodeView

ENOUGH = 2  # nodes of a role: one may end


def checklist(
    settings: Settings, nodes: Sequence[NodeView], channels: Sequence[AlertChannelView]
) -> Iterator[Check]:
    """Pure: judges what was read, and the settings of this machine."""
    alive = [node for node in nodes if node.state == "alive"]
    yield _store(settings, alive)
    for role in ("planner", "worker"):
        yield _enough(role, alive)
    yield _versions(alive)
    yield _access(settings)
    yield _keys(settings)
    yield _channels(channels)
    yield _watchdog(settings)


def _store(settings: Settings, alive: Sequence[NodeView]) -> Check:
    kind = settings.store.partition(":")[0]
    if kind == "memory":
        return Check(
            "durable store", "warn", "memory forgets everything", "use PostgreSQL, or SQLite on one machine"
        )
    if kind == "sqlite":
        remedy = "for several machines move to PostgreSQL: `duetime copy`"
        return Check("durable store", "ok", f"SQLite, {plural(len(alive), 'node')} on one machine", remedy)
    return Check("durable store", "ok", kind)


def _enough(role: str, alive: Sequence[NodeView]) -> Check:
    found = sum(role in node.roles for node in alive)
    if found >= ENOUGH:
        return Check(f"{role}s", "ok", f"{found} alive")
    remedy = f"start another on another machine: `duetime serve --roles {role}`"
    return Check(f"{role}s", "warn", f"{found} alive: without it nothing {_WORK[role]}", remedy)


_WORK = {"planner": "fires", "worker": "runs"}


def _versions(alive: Sequence[NodeView]) -> Check:
    versions = sorted({node.version for node in alive})
    if len(versions) <= 1:
        return Check("versions", "ok", ", ".join(versions) or "no node is alive")
    return Check(
        "versions", "warn", f"nodes run {', '.join(versions)}", "complete the upgrade: docs/upgrading.md"
    )


def _access(settings: Settings) -> Check:
    if settings.auth == "keys":
        return Check("access", "ok", "the API needs keys")
    return Check("access", "warn", "the API needs no key", "set DUETIME_AUTH=keys, then `duetime key create`")


def _keys(settings: Settings) -> Check:
    if settings.secret_keys:
        return Check("shared secret keys", "ok", "given, the same for every node if the setting is")
    remedy = "set DUETIME_SECRET_KEYS on every node, and keep a copy outside of the backup"
    return Check(
        "shared secret keys", "warn", "not given: a file of this machine holds the key, if any", remedy
    )


def _channels(channels: Sequence[AlertChannelView]) -> Check:
    if channels:
        return Check("alerts", "ok", f"told to {', '.join(channel.name for channel in channels)}")
    return Check(
        "alerts",
        "warn",
        "no channel: a silent schedule is told to no one",
        "add one: `duetime alert channel NAME --type slack url=@FILE`",
    )


def _watchdog(settings: Settings) -> Check:
    if settings.watchdog_url:
        return Check("watchdog", "ok", "an outside monitor is called")
    remedy = "set DUETIME_WATCHDOG_URL: the monitor tells when the whole fleet or its store is down"
    return Check("watchdog", "warn", "no outside monitor is called", remedy)
