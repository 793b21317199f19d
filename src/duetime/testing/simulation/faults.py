"""The nemesis: injects faults that the seed decides. At the end it repairs everything, and then no job may be
stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from duetime.engine.failpoint import FAILPOINTS
from duetime.model.instant import SECOND, Micros
from duetime.queue import Message
from duetime.queues.memory import MemoryBroker, deliver_once
from duetime.testing.processes import NO_PROCESS
from duetime.testing.simulation.hosts import Host, NetworkConditions
from duetime.testing.simulation.world import CLIENT, World

MAX_WRITE_DELAY = 3 * SECOND
GOOD_CONDITIONS = NetworkConditions(lost_hints=0.05, doubled_hints=0.05)
FAULT_KINDS = (
    "kill", "kill_at", "kill_all", "pause", "stop", "owner_gone", "overtaken", "lossy", "slow", "store_crash",
    "kill_client", "partition", "blackout",
)  # fmt: skip
MIXED_KINDS = tuple(kind for kind in FAULT_KINDS if kind != "blackout")  # after a blackout no node is left


@dataclass(frozen=True, slots=True)
class NemesisPlan:
    """Decided by the seed before the run begins."""

    kinds: tuple[str, ...]  # empty: a run without faults
    gap: float  # seconds between faults, on average
    background_loss: float  # share of calls lost at any time


def draw_plan(chance: Random) -> NemesisPlan:
    draw = chance.random()
    if draw < 0.08:
        return NemesisPlan((), 1.0, 0.0)
    if draw < 0.2:
        return NemesisPlan(("blackout",), 0.6, 0.0)
    count = len(MIXED_KINDS) if draw < 0.5 else chance.randint(1, 3)
    return NemesisPlan(
        tuple(chance.sample(MIXED_KINDS, count)), 0.5 + 2 * chance.random(), chance.choice((0.0, 0.005, 0.03))
    )


class BrokerNemesis:
    """Loses, doubles, delays and so reorders messages; flushes the broker and takes it down."""

    def __init__(self, world: World, broker: MemoryBroker) -> None:
        self._world = world
        self._chance = world.chance
        self._broker = broker

    async def run(self) -> None:
        self._broker.faults = self._deliver
        while not self._world.healed:
            await asyncio.sleep(2 * self._chance.random())
            if self._world.healed:
                return
            kind = self._chance.choice(("broker down", "broker down", "broker flushed"))
            self._world.recorder.fault(kind, "broker")
            if kind == "broker flushed":
                self._broker.flush()
            else:
                self._broker.go_down()
                await asyncio.sleep(self._chance.choice((0.05, 1.0, 3.0)))
                self._broker.come_back()

    def heal(self) -> None:
        self._broker.faults = deliver_once
        self._broker.come_back()

    def _deliver(self, message: Message) -> Sequence[Micros]:
        kind = self._chance.choice(("once", "once", "once", "lost", "doubled", "late", "doubled late"))
        late = self._chance.randrange(SECOND // 100, 6 * SECOND)
        self._world.recorder.fault(f"message {kind}", "broker")
        return {"lost": (), "doubled": (0, 0), "late": (late,), "doubled late": (0, late)}.get(kind, (0,))


class Nemesis:
    def __init__(self, world: World, plan: NemesisPlan) -> None:
        self._world = world
        self._chance = world.chance
        self._plan = plan
        world.conditions = self._conditions

    async def run(self, seconds: float) -> None:
        loop = self._world.loop
        end = loop.time() + seconds
        while self._plan.kinds and (left := end - loop.time()) > 0:
            await asyncio.sleep(min(left, self._plan.gap * 2 * self._chance.random()))
            await self._inject(self._chance.choice(self._plan.kinds))
        await asyncio.sleep(max(0.0, end - loop.time()))

    def heal(self) -> None:
        """No more faults. Dead nodes restart, paused nodes continue."""
        world = self._world
        world.healed = True
        world.armed = None
        world.restart_store()
        world.conditions = lambda: replace(GOOD_CONDITIONS)
        for name, host in list(world.hosts.items()):
            host.conditions = replace(GOOD_CONDITIONS)
            world.resume(name, host)
            if host.process.dead and name != CLIENT:
                world.spawn_node(name)

    # -- faults ----------------------------------------------------------------------------------------------
    async def _inject(self, kind: str) -> None:
        victim = self._chance.choice(sorted(self._world.specs))
        faults: dict[str, Callable[[str], Awaitable[None]]] = {
            "kill": self._kill,
            "kill_at": self._kill_at,
            "kill_all": self._kill_all,
            "pause": self._pause,
            "stop": self._stop,
            "owner_gone": self._owner_gone,
            "overtaken": self._overtaken,
            "lossy": self._lossy,
            "slow": self._slow,
            "store_crash": self._store_crash,
            "kill_client": self._kill_client,
            "partition": self._partition,
            "blackout": self._blackout,
        }
        host = self._world.hosts[victim]
        if not host.gone or kind in ("store_crash", "kill_client", "kill_at"):
            self._world.recorder.fault(kind, host.name)
            await faults[kind](victim)

    async def _kill(self, victim: str) -> None:
        self._world.kill(victim, 0.2 + 2.5 * self._chance.random())

    async def _kill_at(self, victim: str) -> None:
        self._world.armed = self._chance.choice(sorted(FAILPOINTS))

    async def _kill_all(self, victim: str) -> None:
        away = self._chance.choice((0.5, 2.0, 4.0))
        for name in sorted(self._world.specs):
            self._world.kill(name, away + self._chance.random())

    async def _blackout(self, victim: str) -> None:
        """No node runs until the end of the faults. If it comes early, fires count as missed."""
        for name in sorted(self._world.specs):
            self._world.kill(name, None)

    async def _pause(self, victim: str) -> None:
        """For less than, about, and more than the lease."""
        lease = self._world.specs[victim].options.lease / 1e6
        host = self._world.hosts[victim]
        self._world.pause(victim)
        self._later(
            lease * self._chance.choice((0.3, 0.9, 1.0, 1.1, 3.0)), lambda: self._world.resume(victim, host)
        )

    async def _stop(self, victim: str) -> None:
        if not self._world.hosts[victim].stopping and victim in self._world.nodes:
            self._world.stop(victim)

    async def _owner_gone(self, victim: str) -> None:
        """A living node is declared dead."""
        node = self._world.hosts[victim].node
        if node is not None:
            self._world.hosts[victim].disturb(self._world.now())
            self._world.execute(self._world.store.leave, None, node)

    async def _overtaken(self, victim: str) -> None:
        """Writes of its attempts are delayed. Meanwhile the node is declared dead, and other nodes get the
        same jobs."""
        host = self._world.hosts[victim]
        self._change_network(host, NetworkConditions(late_writes=0.8))
        host.disturb(self._world.now() + MAX_WRITE_DELAY)
        await asyncio.sleep(0.2 + 0.3 * self._chance.random())
        if self._world.hosts[victim] is host and not host.gone:
            await self._owner_gone(victim)

    async def _lossy(self, victim: str) -> None:
        name = self._chance.choice((victim, CLIENT))
        share = self._chance.choice((0.2, 0.5))
        self._change_network(self._world.hosts[name], NetworkConditions(share, share, 0.5, 0.2))

    async def _slow(self, victim: str) -> None:
        stall = self._chance.choice((0.1, 0.5, 2.0))
        self._change_network(
            self._world.hosts[victim], NetworkConditions(stalls=0.3, stall=stall, lost_hints=0.3)
        )

    async def _partition(self, victim: str) -> None:
        requests = self._chance.choice((0.0, 1.0))
        self._change_network(self._world.hosts[victim], NetworkConditions(requests, 1.0 - requests, 1.0))

    async def _store_crash(self, victim: str) -> None:
        self._world.crash_store()
        self._later(self._chance.choice((0.05, 0.5, 1.5, 3.0)), self._world.restart_store)

    async def _kill_client(self, victim: str) -> None:
        if not self._world.hosts[CLIENT].gone:
            self._world.kill(CLIENT, self._chance.random())

    # -- internals -------------------------------------------------------------------------------------------
    def _change_network(self, host: Host, conditions: NetworkConditions) -> None:
        host.conditions = conditions
        self._later(0.3 + 2 * self._chance.random(), lambda: self._restore_network(host, conditions))

    def _restore_network(self, host: Host, conditions: NetworkConditions) -> None:
        if host.conditions is conditions:
            host.conditions = self._conditions()

    def _later(self, delay: float, call: Callable[[], None]) -> None:
        self._world.loop.call_later(delay, self._unless_healed, call, context=NO_PROCESS)

    def _unless_healed(self, call: Callable[[], None]) -> None:
        if not self._world.healed:
            call()

    def _conditions(self) -> NetworkConditions:
        if not self._plan.kinds:
            return replace(GOOD_CONDITIONS)
        share = self._plan.background_loss
        return NetworkConditions(share, share, 0.1, 0.1, stalls=share, stall=0.3)
