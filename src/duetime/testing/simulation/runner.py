"""Runs one seed: random nodes, a period with faults, a period without, and a verdict that can be replayed."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from duetime.engine.node import heartbeat, reaper
from duetime.engine.node.options import DEFAULT_ROLES, ROLES, NodeOptions
from duetime.engine.plan import planner
from duetime.engine.run import checkpoints, commit, perform, settler, worker
from duetime.engine.submit import commands
from duetime.model.instant import SECOND
from duetime.model.limit import Queue
from duetime.store import ScheduleState
from duetime.testing.simulation.client import TENANT
from duetime.testing.simulation.faults import BrokerNemesis, Nemesis, draw_plan
from duetime.testing.simulation.invariants.ending import check_healthy, check_quiet
from duetime.testing.simulation.loop import SimulationLoop
from duetime.testing.simulation.tasks import KINDS
from duetime.testing.simulation.world import NodeSpec, World

FAULTS_SECONDS = 9.0
RECOVERY_SECONDS = 4.5
HEALTHY_SECONDS = 3.5
QUIET_SECONDS = 5.0
_MODULES_WITH_FAILPOINTS = (
    commands,
    commit,
    checkpoints,
    heartbeat,
    perform,
    planner,
    reaper,
    settler,
    worker,
)


@dataclass(frozen=True, slots=True)
class Report:
    seed: int
    trace_hash: str
    problem: BaseException | None
    steps: int
    virtual_seconds: float
    jobs: int
    fires: int
    starts: int
    acknowledged: int
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    failpoints: Counter[str] = field(default_factory=Counter)
    transitions: Counter[tuple[str, str]] = field(default_factory=Counter)
    trace: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.problem is None

    def __str__(self) -> str:
        if self.problem is None:
            faults = sum(self.faults.values())
            counts = f"{self.steps} steps, {self.jobs} jobs, {faults} faults"
            return f"seed {self.seed}: ok ({self.trace_hash}, {counts})"
        kind = type(self.problem).__name__
        replay = f"replay: python -m duetime.testing.simulation --seed {self.seed} --trace"
        return f"seed {self.seed}: {kind} {self.problem} ({self.trace_hash})\n  {replay}"


def run_seed(seed: int, keep_trace: bool = False, *, broker: bool = False) -> Report:
    """The same seed gives the same run on every machine with the same Python. `broker`: the nodes have one in
    memory, with faults of its own."""
    chance = Random(seed)
    loop = SimulationLoop(chance)
    world = World(loop, chance, keep_trace, broker=broker)
    collecting = gc.isenabled()
    gc.disable()  # finalisers must not run at times that depend on memory use
    try:
        with _failpoints(world):
            problem = _run(loop, world)
    finally:
        loop.close()
        if collecting:
            gc.enable()
    return _report(seed, world, problem)


def _run(loop: SimulationLoop, world: World) -> BaseException | None:
    main = loop.create_task(_scenario(world))
    main.add_done_callback(lambda _: loop.stop())
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    except Exception as problem:
        return problem
    finally:
        asyncio.set_event_loop(None)
    unexpected = main.exception() if main.done() and not main.cancelled() else None
    return world.verdict.violation or loop.failure or unexpected


async def _scenario(world: World) -> None:
    for name, spec in _draw_nodes(world.chance, ROLES if world.broker else DEFAULT_ROLES).items():
        world.specs[name] = spec
    nemesis = Nemesis(world, draw_plan(world.chance))
    for name in world.specs:
        world.spawn_node(name)
    broker_nemesis = None if world.broker is None else BrokerNemesis(world, world.broker)
    trouble = None if broker_nemesis is None else asyncio.ensure_future(broker_nemesis.run())
    world.spawn_client()
    assert world.client is not None
    world.client.gap = world.chance.choice((0.2, 0.4, 0.6))
    await nemesis.run(FAULTS_SECONDS)
    nemesis.heal()
    if broker_nemesis is not None and trouble is not None:
        broker_nemesis.heal()
        trouble.cancel()
    world.client.disruptive = False
    _resume_queues(world)
    await asyncio.sleep(RECOVERY_SECONDS)
    _resume_queues(world)  # a delayed request may have paused one again
    healthy_since = world.now()
    await asyncio.sleep(HEALTHY_SECONDS)
    check_healthy(world.checker, world.store, healthy_since, world.now())
    world.client.active = False
    await asyncio.sleep(1.0)
    for plan in world.checker.fires.plans.values():
        if not plan.removed:
            name = plan.draft.name
            state = ScheduleState(plan.draft, plan.cursor, True, "end of the run")
            world.execute(world.store.write_schedule, None, TENANT, name, state, plan.version)
    await asyncio.sleep(QUIET_SECONDS)
    check_quiet(world.checker, world.store, list(world.hosts.values()), world.now())


def _resume_queues(world: World) -> None:
    for queue in world.store.jobs.limits.queues.values():
        if queue.paused:
            world.execute(world.store.set_queue, None, Queue(queue.name))


def _draw_nodes(chance: Random, every: tuple[str, ...]) -> dict[str, NodeSpec]:
    """The first node has all roles and tasks, so that every job can run."""
    nodes = {"n1": NodeSpec(_draw_options(chance, "n1", every, (), 12), tuple(KINDS))}
    for number in range(2, chance.choice((1, 2, 2, 3)) + 1):
        name = f"n{number}"
        roles = chance.choice((every, every, ("worker",), ("planner",)))
        queues = chance.choice(((), (), ("default",), ("mail", "reports")))
        tasks = tuple(KINDS) if chance.random() < 0.6 else tuple(sorted(chance.sample(sorted(KINDS), 6)))
        nodes[name] = NodeSpec(_draw_options(chance, name, roles, queues, chance.choice((1, 2, 8))), tasks)
    return nodes


def _draw_options(
    chance: Random, name: str, roles: tuple[str, ...], queues: tuple[str, ...], concurrency: int
) -> NodeOptions:
    return NodeOptions(
        name,
        "simulated",
        roles,
        queues,
        concurrency,
        lease=chance.choice((SECOND * 3 // 5, SECOND, SECOND * 3 // 2)),
        lookahead=chance.choice((SECOND, 3 * SECOND)),
        grace=chance.choice((SECOND // 5, SECOND, 2 * SECOND)),
        retention=chance.choice((4 * SECOND, 86_400 * SECOND, 86_400 * SECOND)),
    )


@contextmanager
def _failpoints(world: World) -> Iterator[None]:
    """Connect the failpoints of the engine to the world."""
    before = {module: vars(module)["failpoint"] for module in _MODULES_WITH_FAILPOINTS}
    for module in before:
        vars(module)["failpoint"] = world.failpoint
    try:
        yield
    finally:
        for module, failpoint in before.items():
            vars(module)["failpoint"] = failpoint


def _report(seed: int, world: World, problem: BaseException | None) -> Report:
    recorder, checker = world.recorder, world.checker
    return Report(
        seed,
        recorder.trace_hash,
        problem,
        world.loop.steps,
        world.loop.time(),
        len(checker.jobs.jobs),
        checker.fires.expected,
        sum(map(len, recorder.starts.values())),
        len(recorder.acknowledged),
        recorder.faults,
        recorder.events,
        recorder.failpoints,
        recorder.transitions,
        tuple(recorder.trace),
    )
