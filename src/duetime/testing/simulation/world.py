"""The simulated world: one store, nodes that run the real engine, a client, and the ways to break them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from duetime.engine.node.heartbeat import Heartbeat
from duetime.engine.node.node import Node
from duetime.engine.node.options import HandlerRegistry, NodeOptions
from duetime.engine.node.timer import LoopTimer, NodeClock
from duetime.engine.submit.commands import Commands
from duetime.errors import StoreError
from duetime.model.events import Event, TurnFailed
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, Micros
from duetime.observer import Observers
from duetime.queues.memory import MemoryBroker, MemoryQueue
from duetime.store import Store
from duetime.testing.one_step import run_in_one_step
from duetime.testing.processes import NO_PROCESS, Killed, Process, current_process
from duetime.testing.simulation.client import SimulatedClient
from duetime.testing.simulation.hosts import Host, NetworkConditions
from duetime.testing.simulation.invariants.checker import Checker
from duetime.testing.simulation.invariants.verdict import Invariant, Verdict
from duetime.testing.simulation.loop import SimulationLoop
from duetime.testing.simulation.network import NetworkLink, RemoteStore, Verb
from duetime.testing.simulation.recorder import Recorder
from duetime.testing.simulation.store import SimulatedStore
from duetime.testing.simulation.tasks import handlers

BEGAN: Micros = 1_800_000_000 * SECOND
CLIENT = "client"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    options: NodeOptions
    tasks: tuple[str, ...]


class World:
    def __init__(
        self, loop: SimulationLoop, chance: Random, keep_trace: bool = False, *, broker: bool = False
    ) -> None:
        self.loop = loop
        self.chance = chance
        self.verdict = Verdict(loop.stop)
        self.recorder = Recorder(self.now, BEGAN, keep_trace)
        self.checker = Checker(self.verdict, self.recorder, self.now)
        self._store = SimulatedStore(self.now, self.checker.jobs)
        self.specs: dict[str, NodeSpec] = {}
        self.hosts: dict[str, Host] = {}  # the current run of each program
        self.nodes: dict[str, Node] = {}
        self.client: SimulatedClient | None = None
        self.crashes = 0
        self.down = False
        self.healed = False
        self.armed: str | None = None  # the failpoint that kills the next process to reach it
        self.conditions: Callable[[], NetworkConditions] = NetworkConditions
        self._runs = 0
        self.broker = MemoryBroker() if broker else None

    @property
    def store(self) -> SimulatedStore:
        return self._store

    def now(self) -> Micros:
        return BEGAN + self.loop.micros()

    # -- the store -------------------------------------------------------------------------------------------
    def execute(self, verb: Verb[Any], host: Host | None, *arguments: Any) -> Any:
        """One transaction. The verbs of the memory store await nothing, so each runs in one step."""
        transaction = self.checker.begin(verb.__name__, host, arguments)
        answer = run_in_one_step(verb(*arguments))
        self.checker.end(transaction, self.store, answer)
        return answer

    def crash_store(self) -> None:
        """Committed transactions stay. Open transactions and all replies on their way are lost."""
        self.crashes += 1
        self.down = True
        self._disturb_all()

    def restart_store(self) -> None:
        self.down = False
        self._disturb_all()

    # -- processes -------------------------------------------------------------------------------------------
    def spawn_node(self, name: str) -> None:
        spec, host = self.specs[name], self._host(name)
        self.hosts[name] = host
        host.process.context.run(self.loop.create_task, self._run_node(name, spec, host))

    def spawn_client(self) -> None:
        host = self._host(CLIENT)
        self.hosts[CLIENT] = host
        store, clock = self._remote(host), self._clock(host)
        commands = Commands(store, clock, Ids(self.chance.randbytes))
        client = SimulatedClient(commands, store, self.chance, self.checker.jobs.acknowledged)
        if self.client is not None:
            client.gap, client.active, client.disruptive = (
                self.client.gap,
                self.client.active,
                self.client.disruptive,
            )
        self.client = client
        host.process.context.run(self.loop.create_task, client.run())

    def kill(self, name: str, respawn_after: float | None) -> None:
        host = self.hosts[name]
        self.loop.kill(host.process)
        for unsubscribe in host.unsubscribes:
            unsubscribe()
        for connection in host.connections:
            connection.drop()
        if respawn_after is not None:
            self.loop.call_later(respawn_after, self._respawn, name, host, context=NO_PROCESS)

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
        """Called by a task that kills its process; ignored once faults are over."""
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

    # -- internals -------------------------------------------------------------------------------------------
    def _host(self, name: str) -> Host:
        self._runs += 1
        offset = self.chance.randrange(10**12)
        rate = 1 + (self.chance.random() - 0.5) / 10_000
        return Host(Process(f"{name}#{self._runs}", offset, rate), self.conditions())

    def _respawn(self, name: str, after: Host) -> None:
        if self.hosts[name] is not after:
            return
        if name == CLIENT:
            self.spawn_client()
        else:
            self.spawn_node(name)

    def _remote(self, host: Host) -> Store:
        return cast(Store, RemoteStore(NetworkLink(self.loop, self.chance, self, host), self.store))

    def _clock(self, host: Host) -> NodeClock:
        loop, process = self.loop, host.process
        return NodeClock(lambda: process.monotonic(loop.micros()), LoopTimer, self.chance.random)

    async def _run_node(self, name: str, spec: NodeSpec, host: Host) -> None:
        store, clock, observers = self._remote(host), self._clock(host), Observers([self._observe])
        tasks = HandlerRegistry(handlers(self.recorder, self.die, spec.tasks))
        node = Node(
            store,
            clock,
            tasks,
            spec.options,
            observers,
            lambda: Heartbeat(store, clock, observers),
            connect=None if self.broker is None else lambda: self._connect(host),
        )
        self.nodes[name] = node
        host.held = lambda: _held(node)
        try:
            await node.run()
        except StoreError as problem:
            self.recorder.note(f"{host.name} could not join: {problem}")
        host.ended = True
        self.recorder.note(f"{host.name} ends")
        self.kill(name, 0.1 if self.healed else 0.3)

    def _connect(self, host: Host) -> MemoryQueue:
        assert self.broker is not None
        connection = MemoryQueue(self.broker)
        host.connections.append(connection)
        return connection

    def _observe(self, event: Event) -> None:
        self.recorder.events[type(event).__name__] += 1
        if isinstance(event, TurnFailed) and not event.expected:
            self.verdict.violate(Invariant.NO_UNEXPECTED_ERRORS, f"{event.part} failed: {event.problem!r}")

    def _disturb_all(self) -> None:
        for host in self.hosts.values():
            host.disturb(self.now())


def _program(process: Process) -> str:
    return process.name.partition("#")[0]


def _held(node: Node) -> int:
    session = node._session
    return 0 if session is None or session._work is None else session._work.worker.capacity.held
