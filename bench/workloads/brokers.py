"""Jobs that reach the worker through a broker: how fast, and how soon, compared with the store alone and with
the bare client of the broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bench.figures import Figure, median
from bench.processes import BenchFailed, Crew, Ground, family_cpu_seconds
from bench.raw.brokers import NAME
from bench.raw.ceiling import answer_of, begin, expect_ready
from bench.setting import Setting
from bench.stage import PostgresStage
from bench.workloads import latency
from bench.workloads.drain import PATIENCE
from bench.workloads.service import BATCH, post, wait_until
from tests.servers.brokers import BrokerServer, NatsServer, RabbitServer, RedisServer
from tests.servers.service import Service

AHEAD = 5.0  # seconds from the submit until all jobs are due; more if storing them takes longer
DISPATCHER = "planner,dispatcher"
EVENT_SIZE = "420"  # bytes of the message that a job publishes, about
PICK_UP_SECONDS = 2  # of one turn
STORE = "store"
SERVERS: dict[str, type[BrokerServer]] = {
    "redis": RedisServer,  # appendfsync everysec
    "rabbitmq": RabbitServer,  # durable queues, persistent messages, publisher confirms
    "nats": NatsServer,  # file storage
}
TITLES = {STORE: "the store", "redis": "Redis Streams", "rabbitmq": "RabbitMQ", "nats": "NATS"}


@dataclass(slots=True)
class Fleet:
    """A worker process that takes jobs from the store, or through a broker with a dispatcher process; and
    its figures: jobs per second, microseconds of CPU per job, milliseconds from submit to start."""

    name: str
    stage: PostgresStage
    ground: Ground
    worker: Crew
    dispatcher: Crew | None
    server: BrokerServer | None
    rates: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    cpu: list[dict[str, float]] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)

    def costs(self) -> dict[str, float]:
        costs = {"worker": self.worker.cpu()}
        if self.dispatcher is not None and self.server is not None:
            costs |= {"dispatcher": self.dispatcher.cpu(), "broker": family_cpu_seconds(self.server.pid)}
        return {**costs, "server": self.stage.server_cpu()}

    def until_drained(self, count: int) -> None:
        ground, worker = self.ground, self.worker
        with self.stage.unsettled(ground) as unsettled:
            ground.until(lambda: len(ground.log) >= count, f"{count:,} jobs to start", worker, PATIENCE)
            ground.until(lambda: unsettled() == 0, "all jobs to be settled", worker, PATIENCE)


def drain_and_pick_up(setting: Setting) -> Iterator[Figure]:
    """In turns, because the speed of the machine changes. All fleets live until the end; one has work."""
    assert isinstance(setting.stage, PostgresStage)
    with ExitStack() as stack:
        store, *others = fleets = [
            stack.enter_context(_fleet(setting.stage, name)) for name in (STORE, *setting.scale.brokers)
        ]
        for turn in range(setting.scale.turns):
            for fleet in fleets:
                late = latency.picked_up(setting, fleet.ground, fleet.worker, PICK_UP_SECONDS)
                fleet.p50.append(late.p50)
                fleet.p99.append(late.p99)
            setting.say(f"turn {turn + 1}: p50 {', '.join(f'{fleet.p50[-1]:.2f}' for fleet in fleets)} ms")
        for turn in range(setting.scale.turns):
            for fleet in fleets:
                if fleet.server is not None:
                    fleet.bare.append(_bare(fleet.name, fleet.server, setting.scale.drain))
                _drain(fleet, setting.scale.drain)
            setting.say(f"turn {turn + 1}: {', '.join(f'{fleet.rates[-1]:,.0f}' for fleet in fleets)}/s")
    yield from _figures(store, None)
    for fleet in others:
        yield from _figures(fleet, store)


def urgent(setting: Setting) -> Iterator[Figure]:
    """Urgent jobs while one worker gets a flood of the lowest priority through RabbitMQ."""
    flood, seconds = setting.scale.broker_flood, setting.scale.broker_urgent_seconds
    with setting.stage.ground() as ground, RabbitServer() as server:
        ground.queue = server.url
        ground.client("flood", flood)
        with ground.workers(roles=DISPATCHER) as dispatcher, ground.workers(roles="worker") as worker:
            dispatcher.begin()
            late = latency.past_a_flood(setting, ground, worker, seconds)
    name = f"urgent through RabbitMQ, past {flood:,} jobs of 1 ms, p99"
    yield Figure("broker_urgent.p99", name, late.p99, " ms", None, late.remark)


def publish(setting: Setting) -> Iterator[Figure]:
    """Jobs that publish to RabbitMQ, all due at one instant, and the bare client, in turns."""
    count = setting.scale.publish
    rates: list[float] = []
    bare: list[float] = []
    with setting.stage.ground() as ground, RabbitServer() as server:
        settings = {"DUETIME_DESTINATIONS": f"orders={server.url}/?routing_key={NAME}"}
        options = ("--concurrency", "1000")
        bare.append(_bare_publish(server, count))  # declares the queue
        with (
            Service(ground.url, ground.folder / "serve.log", *options, environment=settings) as service,
            setting.stage.left(ground) as left,
        ):
            for turn in range(setting.scale.repeats):
                rates.append(_publish(service.address, left, count))
                bare.append(_bare_publish(server, count))
                setting.say(f"turn {turn + 1}: {rates[-1]:,.0f}/s, bare {bare[-1]:,.0f}/s")
    remark = f"best {max(rates):,.0f}, bare best {max(bare):,.0f}"
    yield Figure("publish.bare", f"the bare client publishes {count:,} to RabbitMQ", median(bare), "/s")
    yield Figure("publish.rate", f"{count:,} jobs publish", median(rates), "/s", median(bare), remark)


def _bare_publish(server: BrokerServer, count: int) -> float:
    found = answer_of(begin("bench.raw.brokers", "publish", "rabbitmq", server.url, str(count), EVENT_SIZE))
    return count / float(found["ended"] - found["began"])


def _publish(address: str, left: Callable[[], int], count: int) -> float:
    first = time.time() + 2 * AHEAD
    target = {"type": "publish", "destination": "orders"}
    at = datetime.fromtimestamp(first, UTC).isoformat()
    for begin_at in range(0, count, BATCH):
        jobs = [{"target": target, "payload": {"n": n}, "at": at} for n in range(begin_at, begin_at + BATCH)]
        post(f"{address}/api/v1/jobs/batch", {"jobs": jobs})
    if time.time() > first:
        raise BenchFailed("storing the jobs took longer than the time until they were due")
    time.sleep(first - time.time())
    wait_until(lambda: left() == 0, "the messages")
    return count / (time.time() - first)


@contextmanager
def _fleet(stage: PostgresStage, name: str) -> Iterator[Fleet]:
    with ExitStack() as stack:
        ground = stack.enter_context(stage.ground(f"bench_{name}"))
        if name == STORE:
            yield Fleet(name, stage, ground, stack.enter_context(ground.working()), None, None)
            return
        server = stack.enter_context(SERVERS[name]())
        ground.queue = server.url
        dispatcher = stack.enter_context(ground.workers(roles=DISPATCHER))
        dispatcher.begin()
        worker = stack.enter_context(ground.working(roles="worker"))
        yield Fleet(name, stage, ground, worker, dispatcher, server)


def _bare(broker: str, server: BrokerServer, count: int) -> float:
    """Messages per second, one for each job, from one process to another."""
    consumer = begin("bench.raw.brokers", "consume", broker, server.url, str(count))
    expect_ready(consumer)
    began = answer_of(begin("bench.raw.brokers", "publish", broker, server.url, str(count)))["began"]
    return count / float(answer_of(consumer)["ended"] - began)


def _drain(fleet: Fleet, count: int) -> None:
    """Jobs that are all due at one instant: from then until all are settled."""
    ahead, first = AHEAD, 0.0
    while not first:
        fleet.ground.log.clear()
        first = time.time() + ahead
        if fleet.ground.client("due", count, first, 0.0)["too_late"]:
            fleet.until_drained(count)
            ahead, first = 2 * ahead, 0.0
    before = fleet.costs()
    fleet.until_drained(count)
    fleet.rates.append(count / (time.time() - first))
    fleet.cpu.append({name: (cost - before[name]) / count * 1e6 for name, cost in fleet.costs().items()})
    starts = fleet.ground.log.read()
    if len(starts) != count or len({number for number, _ in starts}) != count:
        raise BenchFailed(f"{count:,} jobs were due; there were {len(starts):,} starts")


def _figures(fleet: Fleet, store: Fleet | None) -> Iterator[Figure]:
    """With a broker, `store` is the fleet without one."""
    key, through = f"brokers.{fleet.name}", f"through {TITLES[fleet.name]}"
    cpu = " + ".join(f"{median([cpu[part] for cpu in fleet.cpu]):.0f} {part}" for part in fleet.cpu[0])
    remark = f"best {max(fleet.rates):,.0f}, CPU us/job {cpu}"
    bare = median(fleet.bare) if fleet.bare else None
    detail = {"rates": fleet.rates, "bare": fleet.bare, "p50": fleet.p50, "p99": fleet.p99}
    yield Figure(f"{key}.drain", f"drain {through}", median(fleet.rates), "/s", bare, remark, detail)
    p99 = f"p99 {median(fleet.p99):.2f}"
    yield Figure(f"{key}.p50", f"pick-up {through}, p50", median(fleet.p50), " ms", None, p99)
    if store is not None:
        shares = [mine / its * 100 for mine, its in zip(fleet.rates, store.rates, strict=True)]
        yield Figure(f"{key}.share", f"drain {through}, of the store's rate", median(shares), " %")
        extra = [mine - its for mine, its in zip(fleet.p50, store.p50, strict=True)]
        yield Figure(f"{key}.later", f"pick-up {through}, p50 above the store", median(extra), " ms")
