"""The sweep: once every quarter of a minute the leader looks for what is wrong, and what is well again.

If the leader does not look for a while, any other node does: so that the absence of a leader is told, too.
Tenants without a channel cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from duetime.clock import Clock
from duetime.engine.alert.fleet import SKEW, FleetConditions
from duetime.engine.alert.ledger import Ledger
from duetime.engine.alert.notices import submit
from duetime.engine.failpoint import failpoint
from duetime.engine.node.registry import ALL_TENANTS
from duetime.model.alert.channel import Channel
from duetime.model.alert.quiet import Mute
from duetime.model.alert.rule import AlertRule, RuleSet
from duetime.model.alert.state import AlertState, tell, update
from duetime.model.codec import decode, encode
from duetime.model.instant import MINUTE, SECOND, Micros
from duetime.model.job import DEFAULT_TENANT
from duetime.model.lease import NodeId
from duetime.store import Record, Store

CHANNEL, RULE, MUTE, STATE = "alert_channel", "alert_rule", "alert_mute", "alert_state"  # kinds of records
KEY = "state"
MAX_RECORDS = 10_000
PAGE = 1_000
SWEEP_INTERVAL = 15 * SECOND
BUSY_INTERVAL = 2 * SECOND  # when there is more to look at
# In sweeps that the leader would have made:
STAND_IN_INTERVAL = 2  # another node looks whether the leader does it
STAND_IN_AFTER = 3  # the other node does it
GAP = 4  # nothing could be checked in this time
LOOK_BACK = 86_400 * SECOND  # at the first sweep
MIN_SKEW = SECOND // 2
MIN_SKEW_TTL = 5 * MINUTE
SKEW_TTL = 3 * STAND_IN_INTERVAL  # in sweeps of the leader: a node that does not lead reports more often


class Watched(NamedTuple):
    """What one tenant has set up."""

    channels: list[Channel]
    rules: RuleSet
    mutes: list[Mute]


class AlertSweep:
    name = "alerts"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        leads: Callable[[], bool],
        node: NodeId,
        node_name: str,
        interval: Micros = SWEEP_INTERVAL,
    ) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._node = node
        self._node_name = node_name
        self._interval = interval
        self._waits_since: Micros | None = None  # since when another node should lead
        self._is_skewed = False  # and a record says so

    async def run_once(self) -> Micros:
        await self._report_skew()
        tenants = await set_up(self._store)
        if not tenants:
            return self._wait(self._leads())
        leads, busy = self._leads(), False
        self._waits_since = None if leads else self._waits_since
        for tenant, watched in tenants.items():
            busy = await self._sweep(tenant, watched, leads) or busy
        return BUSY_INTERVAL if busy else self._wait(leads)

    def _wait(self, leads: bool) -> Micros:
        return self._interval if leads else STAND_IN_INTERVAL * self._interval

    async def _sweep(self, tenant: str, watched: Watched, leads: bool) -> bool:
        """True if there is more to look at."""
        record = await self._store.get_record(STATE, tenant, KEY)
        state = AlertState.from_bytes(None if record is None else record.value)
        now = await self._store.time()
        if not leads and not self._stands_in(state, now):
            return False
        await submit(self._store, tenant, state.outbox, now)
        state.outbox = []
        await self._look(tenant, watched, state, leads, now)
        state.swept_at, state.led_at = now, now if leads else state.led_at
        version = await self._store.put_record(
            STATE, tenant, KEY, state.to_bytes(), 0 if record is None else record.version
        )
        failpoint("alerts.decided")
        if version:
            await submit(self._store, tenant, state.outbox, now)
            failpoint("alerts.submitted")
        return not version or any(at <= now for _, _, at in state.watch)

    def _stands_in(self, state: AlertState, now: Micros) -> bool:
        """A node that has just started, or just lost its lease, may lead soon: it does not stand in yet."""
        patience = STAND_IN_AFTER * self._interval
        if self._waits_since is None:
            self._waits_since = now
        return bool(state.swept_at) and min(now - state.swept_at, now - self._waits_since) >= patience

    async def _look(self, tenant: str, watched: Watched, state: AlertState, leads: bool, now: Micros) -> None:
        gap_start = state.gap_start
        if now - state.swept_at > GAP * self._interval:
            gap_start = state.gap_start = state.swept_at or now - LOOK_BACK
            state.resumed_at = now
        ledger = Ledger(self._store, tenant, watched.rules, state, gap_start, now)
        await ledger.read()
        update(state, tenant, ledger.findings, ledger.over, now)
        if tenant == DEFAULT_TENANT:
            await self._look_at_fleet(watched, state, leads, now)
        tell(state, watched.channels, {rule.name: rule for rule in watched.rules.rules}, watched.mutes, now)

    async def _look_at_fleet(self, watched: Watched, state: AlertState, leads: bool, now: Micros) -> None:
        gap = state.led_at if now - state.led_at > GAP * self._interval else 0
        fleet = FleetConditions(self._store, watched.rules, state, leads, gap, now)
        await fleet.read()
        update(state, DEFAULT_TENANT, fleet.findings, fleet.over, now)
        for alert in state.alerts:
            if alert.key in fleet.after_the_fact and alert.closed_at == now:
                alert.told = [channel.name for channel in watched.channels]

    async def _report_skew(self) -> None:
        """Each node knows only its own clock."""
        skew = self._clock.skew()
        if abs(skew) > MIN_SKEW:
            value = encode({"name": self._node_name, "skew": skew})
            expires_at = self._clock.now() + max(MIN_SKEW_TTL, SKEW_TTL * self._interval)
            await self._store.put_record(SKEW, ALL_TENANTS, str(self._node), value, expires_at=expires_at)
            self._is_skewed = True
        elif self._is_skewed:
            await self._store.put_record(SKEW, ALL_TENANTS, str(self._node), None)
            self._is_skewed = False


async def set_up(store: Store) -> dict[str, Watched]:
    """By tenant, those that have a channel."""
    channels: dict[str, list[Channel]] = {}
    for record in await records(store, CHANNEL):
        channel = Channel.from_json(record.key, decode(record.value), record.version)
        channels.setdefault(record.tenant, []).append(channel)
    if not channels:
        return {}
    rules, mutes = await records(store, RULE), await records(store, MUTE)
    return {
        tenant: Watched(
            named,
            RuleSet(read_rule(record) for record in rules if record.tenant == tenant),
            [read_mute(record) for record in mutes if record.tenant == tenant],
        )
        for tenant, named in channels.items()
    }


async def records(store: Store, kind: str, tenant: str | None = None) -> list[Record]:
    found: list[Record] = []
    while len(found) < MAX_RECORDS:
        after = (found[-1].tenant, found[-1].key) if found else None
        page = await store.list_records(kind, tenant, PAGE, after)
        found += page
        if len(page) < PAGE:
            break
    return found


def read_rule(record: Record) -> AlertRule:
    return AlertRule.from_json(record.key, decode(record.value), record.version)


def read_mute(record: Record) -> Mute:
    value: dict[str, Any] = decode(record.value)
    return Mute(record.key, **value)
