"""The simulated world: one store, a fleet of nodes that run the real engine, a client, and the hands that break them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from duetime.engine.alarm import LoopAlarm
from duetime.engine.clock import NodeClock
from duetime.engine.commands import Commands
from duetime.engine.heart import InlineHeart
from duetime.engine.node import Node
from duetime.engine.options import NodeOptions
from duetime.engine.tasks import Tasks
from duetime.errors import StoreError
from duetime.model.events import Event, TurnFailed
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, Micros
from duetime.observer import Observers
from duetime.testing.simulation.client import Client
from duetime.testing.simulation.invariants.checker import Checker
from duetime.testing.simulation.invariants.verdict import Verdict
from duetime.testing.simulation.journal import SimulatedStore
from duetime.testing.simulation.loop import NOBODY, Killed, Process, SimulationLoop, current_process
from duetime.testing.simulation.network import RemoteStore, Verb, Wire
from duetime.testing.simulation.processes import Host, Weather
from duetime.testing.simulation.recorder import Recorder
from duetime.testing.simulation.tasks import handlers

BEGAN: Micros = 1_800_000_000 * SECOND
CLIENT = "client"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    options: NodeOptions
    tasks: tuple[str, ...]


class World:
    def __init__(self, loop: SimulationLoop, chance: Random, keep_trace: bool = False) -> None:
        self.loop = loop
        self.chance = chance
        self.verdict = Verdict(loop.stop)
        self.recorder = Recorder(self.now, BEGAN, keep_trace)
        self.checker = Checker(self.verdict, self.recorder, self.now)
        self._store = SimulatedStore(self.now, self.checker.jobs)
        self.specs: dict[str, NodeSpec] = {}
        self.hosts: dict[str, Host] = {}  # the present run of each program
        self.nodes: dict[str, Node] = {}
        self.client: Client | None = None
        self.crashes = 0
        self.down = False
        self.healed = False
        self.armed: str | None = None  # the failpoint at which somebody dies next
        self.weather: Callable[[], Weather] = Weather
        self._runs = 0

    @property
    def store(self) -> SimulatedStore:
        return self._store

    def now(self) -> Micros:
        return BEGAN + self.loop.micros()

    # -- the store ----------------------------------------------------------------------------------------------------
    def execute(self, verb: Verb[Any], host: Host | None, *arguments: Any) -> Any:
        """One transaction. No verb of the memory store awaits anything, so it is run by hand."""
        transaction = self.checker.begin(verb.__name__, host, arguments)
        try:
            verb(*arguments).send(None)
        except StopIteration as done:
            self.checker.end(transaction, self.store, done.value)
            return done.value
        raise RuntimeError(f"{verb.__name__} of the memory store awaits something: the simulation takes each verb for one step")

    def crash_store(self) -> None:
        """Transactions under way are lost; those committed stay; every reply still on its way is lost, too."""
        self.crashes += 1
        self.down = True
        self._disturb_all()

    def restart_store(self) -> None:
        self.down = False
        self._disturb_all()

    # -- processes ----------------------------------------------------------------------------------------------------
    def spawn_node(self, name: str) -> None:
        spec, host = self.specs[name], self._host(name)
        self.hosts[name] = host
        host.process.context.run(self.loop.create_task, self._live(name, spec, host))

    def spawn_client(self) -> None:
        host = self._host(CLIENT)
        self.hosts[CLIENT] = host
        store, clock = self._remote(host), self._clock(host)
        commands = Commands(store, clock, Ids(self.chance.randbytes))
        client = Client(commands, store, self.chance, self.checker.jobs.acknowledged)
        if self.client is not None:
            client.gap, client.active, client.deadly = self.client.gap, self.client.active, self.client.deadly
        self.client = client
        host.process.context.run(self.loop.create_task, client.run())

    def kill(self, name: str, respawn_after: float | None) -> None:
        host = self.hosts[name]
        self.loop.kill(host.process)
        for unsubscribe in host.unsubscribes:
            unsubscribe()
        if respawn_after is not None:
            self.loop.call_later(respawn_after, self._respawn, name, host, context=NOBODY)

    def pause(self, name: str) -> None:
        self.hosts[name].disturb(self.now())
        self.loop.pause(self.hosts[name].process)

    def resume(self, name: str, host: Host) -> None:
        host.disturb(self.now())
        self.loop.resume(host.process)

    def stop(self, name: str) -> None:
        """SIGTERM."""
        host = self.hosts[name]
        host.stopping = True
        if not host.gone:
            self.loop.call_soon(self.nodes[name].stop, context=host.process.context)

    def die(self) -> None:
        """Called by a task that takes its process down, as long as faults are wanted."""
        process = current_process()
        if process is None or process.dead or self.healed:
            return
        self.recorder.fault("deadly task", process.name)
        self.kill(_program(process), 0.5)
        raise Killed

    def failpoint(self, name: str) -> None:
        self.recorder.failpoints[name] += 1
        process = current_process()
        if self.armed == name and process is not None and not process.dead and not self.healed:
            self.armed = None
            self.recorder.fault(f"kill at {name}", process.name)
            self.kill(_program(process), 0.2 + self.chance.random())
            raise Killed

    # -- inside -------------------------------------------------------------------------------------------------------
    def _host(self, name: str) -> Host:
        self._runs += 1
        offset = self.chance.randrange(10**12)
        rate = 1 + (self.chance.random() - 0.5) / 10_000
        return Host(Process(f"{name}#{self._runs}", offset, rate), self.weather())

    def _respawn(self, name: str, after: Host) -> None:
        if self.hosts[name] is not after:
            return
        if name == CLIENT:
            self.spawn_client()
        else:
            self.spawn_node(name)

    def _remote(self, host: Host) -> RemoteStore:
        return RemoteStore(Wire(self.loop, self.chance, self, host), self.store)

    def _clock(self, host: Host) -> NodeClock:
        loop, process = self.loop, host.process
        return NodeClock(lambda: process.monotonic(loop.micros()), LoopAlarm, self.chance.random)

    async def _live(self, name: str, spec: NodeSpec, host: Host) -> None:
        store, clock, observers = self._remote(host), self._clock(host), Observers([self._observe])
        tasks = Tasks(handlers(self.recorder, self.die, spec.tasks))
        node = Node(store, clock, tasks, spec.options, observers, lambda: InlineHeart(store, clock, observers))
        self.nodes[name] = node
        host.held = lambda: _held(node)
        try:
            await node.run()
        except StoreError as problem:
            self.recorder.note(f"{host.name} could not join: {problem}")
        host.ended = True
        self.recorder.note(f"{host.name} ends")
        self.kill(name, 0.1 if self.healed else 0.3)

    def _observe(self, event: Event) -> None:
        self.recorder.events[type(event).__name__] += 1
        if isinstance(event, TurnFailed) and not event.expected:
            self.verdict.violate("I18", f"{event.part} failed: {event.problem!r}")

    def _disturb_all(self) -> None:
        for host in self.hosts.values():
            host.disturb(self.now())


def _program(process: Process) -> str:
    return process.name.partition("#")[0]


def _held(node: Node) -> int:
    incarnation = node._incarnation
    return 0 if incarnation is None or incarnation._worker is None else incarnation._worker.held
