"""Alerts: what is open, and the channels, rules and mutes that decide who is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.app.context import AppContext
from duetime.engine.alert import sweep
from duetime.engine.alert.notices import ALERT_QUEUE, submit
from duetime.engine.submit.validate import check_count, check_name, check_note
from duetime.errors import (
    AlertNotFound,
    ChannelNotFound,
    ConfigError,
    InvalidInput,
    MuteNotFound,
    RuleNotFound,
    StoreUnavailable,
    VersionConflict,
)
from duetime.invokers.alert import apprise
from duetime.invokers.alert.handler import secret_name
from duetime.invokers.http.lazy import seal_for
from duetime.model import duration
from duetime.model.alert.channel import Channel, ChannelType, Sealer
from duetime.model.alert.quiet import Mute
from duetime.model.alert.rule import DEFAULT_RULES, AlertRule, Condition, RuleSet
from duetime.model.alert.state import TEST, AlertState, Notice, muted
from duetime.model.codec import decode, encode
from duetime.model.duration import Duration
from duetime.model.ids import fire_id, random_bytes
from duetime.model.instant import LATEST, Micros, read
from duetime.model.job import JobFilter
from duetime.model.target import NO_KEY
from duetime.model.views import AlertChannelView, AlertRuleView, AlertView, JobSummary, MuteView
from duetime.store import Record, Store

MAX_TRIES = 20  # the leader writes the same document
MAX_CHANNELS, MAX_RULES, MAX_MUTES = 50, 1_000, 1_000  # of one tenant


@dataclass(frozen=True, slots=True)
class AppAlerts:
    """Calling it lists the alerts."""

    context: AppContext

    async def __call__(self, *, past: bool = False, limit: int = 100) -> list[AlertView]:
        """Open alerts, newest first; with `past` those that are over, too."""
        wanted = check_count(limit, "limit")
        state = AlertState.from_bytes(_value(await self._record(sweep.STATE, sweep.KEY)))
        mutes, now = await self._mutes(), await self.context.now()
        known = sorted(state.open, key=lambda alert: alert.opened_at, reverse=True)
        views = [AlertView.of(alert, muted(alert, mutes, now)) for alert in known]
        if past:
            over = [alert for alert in state.alerts if alert.closed_at is not None] + state.past
            views += [AlertView.of(alert) for alert in over]
        return views[:wanted]

    async def close(self, alert_id: str) -> AlertView:
        """End an alert by hand, such as that of a node that is not coming back. It is told as recovered. If
        its condition still holds, it opens again."""
        for _ in range(MAX_TRIES):
            record = await self._record(sweep.STATE, sweep.KEY)
            state, now = AlertState.from_bytes(_value(record)), await self.context.now()
            found = next((alert for alert in state.open if alert.id == alert_id), None)
            if record is None or found is None:
                raise AlertNotFound(f"no alert {alert_id[:40]!r} is open: list the alerts to see all of them")
            found.closed_at, found.closed = now, "closed by hand"
            if found.condition == Condition.NODE_LOST:
                state.lost = {one: lost for one, lost in state.lost.items() if lost[0] != found.subject}
            if await self._put(sweep.STATE, sweep.KEY, state.to_bytes(), record.version):
                return AlertView.of(found)
        raise StoreUnavailable("the alerts are being changed by other processes: try again")

    async def deliveries(self, *, limit: int = 50) -> list[JobSummary]:
        """The jobs that deliver notices, newest first: a dead one was not delivered."""
        wanted = JobFilter(self.context.tenant, queue=ALERT_QUEUE)
        rows = await self.context.reads.list_jobs(wanted, check_count(limit, "limit"))
        return [JobSummary.of(row) for row in rows]

    # -- channels ------------------------------------------------------------------------------------
    async def channels(self) -> list[AlertChannelView]:
        rows = await sweep.records(self.context.store, sweep.CHANNEL, self.context.tenant)
        return [AlertChannelView.of(_channel(row)) for row in rows]

    async def set_channel(
        self, name: str, *, version: int | None = None, **settings: Any
    ) -> AlertChannelView:
        """Create or replace a channel: `type` and the fields of that type, `quiet` and `enabled`. A secret
        that is left out keeps its value, None removes it. With `version` only if it is still at that version
        (0: new)."""
        checked = check_name(name, "name")
        record = await self._record(sweep.CHANNEL, checked)
        before = None if record is None else _channel(record)
        if before is None and len(await self.channels()) >= MAX_CHANNELS:
            raise InvalidInput("name", f"there are {MAX_CHANNELS} channels already: remove one first")
        made = Channel.received(checked, settings, before, self._sealer(checked))
        if made.type is ChannelType.APPRISE:
            await apprise.check(settings.get("url"))
        stored = await self._replace(
            sweep.CHANNEL, checked, encode(made.to_json()), record, version, "channel"
        )
        return AlertChannelView.of(made.at_version(stored))

    async def type_of(self, name: str) -> str | None:
        """Of a channel, if there is one of this name."""
        record = await self._record(sweep.CHANNEL, name)
        return None if record is None else _channel(record).type

    async def remove_channel(self, name: str) -> None:
        if not await self._put(sweep.CHANNEL, name, None, None):
            raise ChannelNotFound(f"there is no channel {name[:128]!r}: list the channels to see all of them")

    async def test(self, name: str) -> UUID:
        """Send a test notice to a channel; returns the id of the job that delivers it."""
        if await self._record(sweep.CHANNEL, name) is None:
            raise ChannelNotFound(f"there is no channel {name[:128]!r}: list the channels to see all of them")
        now = await self.context.now()
        alert = {
            "id": "test",
            "condition": TEST,
            "subject": name,
            "severity": "info",
            "since": now,
            "closed_at": None,
            "closed": None,
            "text": "this is a test: alerts of Duetime arrive here",
            "incident": f"test-{now}",
            "last": True,
        }
        notice = Notice(f"test-{random_bytes(8).hex()}", name, TEST, TEST, now, [alert])
        await submit(self.context.store, self.context.tenant, [notice], now)
        return fire_id(notice.seed, notice.at)

    # -- rules ---------------------------------------------------------------------------------------
    async def rules(self) -> list[AlertRuleView]:
        """The rules of this tenant and those that are built in, the most specific first."""
        rows = await sweep.records(self.context.store, sweep.RULE, self.context.tenant)
        return [AlertRuleView.of(rule) for rule in RuleSet(map(sweep.read_rule, rows)).rules]

    async def set_rule(self, name: str, *, version: int | None = None, **fields: Any) -> AlertRuleView:
        """Create or replace a rule. One with the name of a built-in rule replaces that one; it may leave out
        the condition."""
        checked = check_name(name, "name")
        if fields.get("condition") is None and checked in DEFAULT_RULES:
            fields["condition"] = checked
        made = AlertRule.from_json(checked, fields)
        if made.ratio is not None and any("*" in (text or "") for text in (made.schedule, made.queue)):
            raise InvalidInput(
                "ratio", "needs the name of a schedule or queue, or none: a pattern is not counted"
            )
        record = await self._record(sweep.RULE, checked)
        if record is None and len(await self.rules()) >= MAX_RULES:
            raise InvalidInput("name", f"there are {MAX_RULES:,} rules already: remove one first")
        stored = await self._replace(sweep.RULE, checked, encode(made.to_json()), record, version, "rule")
        return AlertRuleView.of(AlertRule.from_json(checked, made.to_json(), stored))

    async def remove_rule(self, name: str) -> None:
        """A built-in rule that was replaced applies again."""
        if await self._put(sweep.RULE, name, None, None):
            return
        if name in DEFAULT_RULES:
            raise RuleNotFound(f"rule {name!r} is built in: switch it off instead (enabled: false)")
        raise RuleNotFound(f"there is no rule {name[:128]!r}: list the rules to see all of them")

    # -- mutes ---------------------------------------------------------------------------------------
    async def mutes(self) -> list[MuteView]:
        """Snoozes and maintenance windows that are not over."""
        return [MuteView.of(mute) for mute in await self._mutes()]

    async def mute(
        self,
        *,
        for_: Duration | None = None,
        until: datetime | None = None,
        start: datetime | None = None,
        condition: str | None = None,
        subject: str | None = None,
        note: str | None = None,
        author: str | None = None,
    ) -> MuteView:
        """Tell nothing about alerts with this condition and subject (a name or a pattern with `*`) for a
        time: a maintenance window. What is still wrong at its end is told then."""
        now = await self.context.now()
        begins = now if start is None else read(start, "start")
        ends = _end(begins, for_, until)
        if condition is not None and condition not in tuple(Condition):
            raise InvalidInput("condition", f"{condition!r} is not one of {', '.join(Condition)}")
        if subject is not None and not (0 < len(subject) <= 256 and subject.isprintable()):
            raise InvalidInput("subject", "must be 1 to 256 printable characters")
        if len(await self._mutes()) >= MAX_MUTES:
            raise InvalidInput("subject", f"there are {MAX_MUTES:,} mutes already: remove one first")
        made = Mute(random_bytes(6).hex(), begins, ends, condition, subject, check_note(note), author)
        value = {name: getattr(made, name) for name in Mute.__slots__ if name != "id"}
        if ends > now:  # one that is over has no effect
            await self._put(sweep.MUTE, made.id, encode(value), 0, expires_at=min(ends, LATEST - 1))
        return MuteView.of(made)

    async def snooze(
        self, alert_id: str, for_: Duration = "1h", *, note: str | None = None, author: str | None = None
    ) -> MuteView:
        """Tell nothing about what this alert is about for a time."""
        known = await self(limit=10_000)
        found = next((alert for alert in known if alert.id == alert_id), None)
        if found is None:
            raise AlertNotFound(f"no alert {alert_id[:40]!r} is open: list the alerts to see all of them")
        return await self.mute(
            for_=for_, condition=found.condition, subject=found.subject, note=note, author=author
        )

    async def unmute(self, mute_id: str) -> None:
        if not await self._put(sweep.MUTE, mute_id, None, None):
            raise MuteNotFound(f"there is no mute {mute_id[:40]!r}: it is over, or was removed")

    # -- inside --------------------------------------------------------------------------------------
    async def _mutes(self) -> list[Mute]:
        rows = await sweep.records(self.context.store, sweep.MUTE, self.context.tenant)
        return [sweep.read_mute(row) for row in rows]

    async def _record(self, kind: str, key: str) -> Record | None:
        return await self.context.store.get_record(kind, self.context.tenant, key)

    async def _put(
        self, kind: str, key: str, value: bytes | None, expect: int | None, expires_at: Micros | None = None
    ) -> int:
        return await self.context.store.put_record(kind, self.context.tenant, key, value, expect, expires_at)

    async def _replace(
        self, kind: str, key: str, value: bytes, record: Record | None, version: int | None, noun: str
    ) -> int:
        known = 0 if record is None else record.version
        if version in (None, known) and (stored := await self._put(kind, key, value, known)):
            return stored
        raise VersionConflict(
            f"{noun} {key!r} has been changed in between: read it again and repeat the edit"
        )

    def _sealer(self, channel: str) -> Sealer:
        def seal(field: str, text: str) -> str:
            try:
                made = seal_for(self.context.shared.ring, self.context.tenant)
            except ConfigError as problem:
                raise InvalidInput(field, str(problem)) from None
            if made is None:
                raise InvalidInput(field, NO_KEY)
            return made(secret_name(channel, field), text)

        return seal


async def open_alerts(store: Store) -> Counter[tuple[str, str]]:
    """Of all tenants, how many of each condition and severity."""
    rows = await sweep.records(store, sweep.STATE)
    states = [AlertState.from_bytes(row.value) for row in rows]
    return Counter((alert.condition, alert.severity) for state in states for alert in state.open)


def _channel(row: Record) -> Channel:
    return Channel.from_json(row.key, decode(row.value), row.version)


def _value(record: Record | None) -> bytes | None:
    return None if record is None else record.value


def _end(begins: Micros, for_: Duration | None, until: datetime | None) -> Micros:
    if (for_ is None) == (until is None):
        raise InvalidInput("until", "give either an instant (until) or a time (for), such as 2h")
    return begins + duration.positive(for_, "for") if for_ is not None else read(until, "until")  # type: ignore[arg-type]
