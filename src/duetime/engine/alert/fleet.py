"""Conditions of the fleet, for the operator's tenant: lost nodes, no leader, clocks that differ."""

from __future__ import annotations

from collections import Counter

from duetime.engine.node.registry import ALL_TENANTS
from duetime.model import duration
from duetime.model.alert.rule import Condition, RuleSet
from duetime.model.alert.state import AlertState, Finding
from duetime.model.codec import decode
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Node
from duetime.store import Store

SKEW = "clock_skew"  # kind of records: a node whose clock differs, by its id
FLEET = "fleet"
MAX_SKEWED = 100
FORGET_LOST = 24 * 3_600 * SECOND  # a node that was not replaced for so long is not missed


class FleetConditions:
    def __init__(
        self, store: Store, rules: RuleSet, state: AlertState, leads: bool, gap: Micros, now: Micros
    ) -> None:
        """`gap`: since when no leader has swept, if that is a long time; else 0."""
        self._store = store
        self._rules = rules
        self._state = state
        self._leads = leads
        self._gap = gap
        self._now = now
        self.findings: list[Finding] = []
        self.over: dict[str, str] = {}
        self.after_the_fact: list[str] = []  # keys: there was no node that could tell it

    async def read(self) -> None:
        self._leader()
        await self._nodes()
        await self._clocks()

    def _leader(self) -> None:
        rule = self._rules.best(Condition.NO_LEADER)
        key = f"{Condition.NO_LEADER}:{FLEET}"
        if self._leads:
            is_open = any(alert.key == key for alert in self._state.open)
            if rule is not None and not is_open and self._gap and self._now - self._gap > rule.after:
                text = "no node led: schedules were not planned in this time"
                self.findings.append(Finding(rule, FLEET, self._gap, text))
                self.after_the_fact.append(key)
            self.over[key] = "a node leads again"
        elif rule is not None and self._now - self._state.led_at > rule.after:
            text = "no node leads: schedules are not planned; start a node with the role planner"
            self.findings.append(Finding(rule, FLEET, self._state.led_at, text))

    async def _nodes(self) -> None:
        living = {str(node.id): node for node in await self._store.nodes(living=True)}
        state, rule = self._state, self._rules.best(Condition.NODE_LOST)
        before = Counter(roles for _, roles in state.nodes.values())
        if gone := [one for one in state.nodes if one not in living]:
            rows = {str(node.id): node for node in await self._store.nodes()}
            for one in gone:
                name, roles = state.nodes[one]
                if one not in rows or (rows[one].dead and not rows[one].has_left):
                    state.lost[one] = [name, roles, self._now, before[roles]]
        state.nodes = {one: [node.name, _roles(node)] for one, node in living.items()}
        count = Counter(_roles(node) for node in living.values())
        names = {node.name for node in living.values()}
        for one, (name, roles, at, wanted) in list(state.lost.items()):
            key = f"{Condition.NODE_LOST}:{name}"
            if name in names or count[roles] >= wanted or self._now - at > FORGET_LOST or rule is None:
                del state.lost[one]
                self.over[key] = "is back" if name in names else "another node took its place"
            elif self._now - at > rule.after:
                text = f"the node ({roles}) died and none took its place"
                self.findings.append(Finding(rule, name, at, text))

    async def _clocks(self) -> None:
        rule = self._rules.best(Condition.CLOCK_SKEW)
        found = set()
        for node, (name, skew) in (await skews(self._store)).items():
            if str(node) not in self._state.nodes:
                continue  # the node is gone, and its clock with it
            if rule is not None and abs(skew) > rule.after:
                shown = duration.show(abs(skew) // 1_000 * 1_000)
                side = "ahead of" if skew > 0 else "behind"
                text = f"the clock of this machine is {shown} {side} the store's: check its NTP service"
                self.findings.append(Finding(rule, name, self._now, text))
                found.add(name)
        for alert in self._state.open:
            if alert.condition == Condition.CLOCK_SKEW and alert.subject not in found:
                self.over[alert.key] = "the clock is right again"


async def skews(store: Store) -> dict[int, tuple[str, Micros]]:
    """By node, those whose clock differs: the name, and how far the clock is ahead of the store's."""
    records = await store.list_records(SKEW, ALL_TENANTS, MAX_SKEWED)
    known = {int(record.key): decode(record.value) for record in records}
    return {node: (told["name"], told["skew"]) for node, told in known.items()}


def _roles(node: Node) -> str:
    return ",".join(sorted(node.roles))
