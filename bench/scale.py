"""How much each workload does: in full, or quickly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    bulk: int = 20_000
    single: int = 2_000
    concurrent: int = 20_000
    drain: int = 20_000
    drain_long: int = 200_000
    repeats: int = 3
    traced: int = 50_000
    traced_turns: int = 15  # each drain costs a few percent more or less than the one before
    pick_up_seconds: int = 15
    answers: int = 2_000
    punctual: int = 1_000
    punctual_seconds: int = 10
    herd: int = 5_000
    herd_repeats: int = 3
    turns: int = 7  # of short measurements that alternate with another one
    pending: tuple[int, ...] = (1_000_000, 10_000_000)
    schedules: int = 2_000
    schedule_rounds: int = 6
    idle_schedules: int = 20_000
    idle_seconds: int = 30
    idle_nodes: int = 1
    sustained_seconds: int = 60
    requests: int = 20_000
    calls: int = 10_000
    agents: int = 500
    agent_seconds: int = 60
    limited: int = 5_000
    limited_milliseconds: tuple[int, ...] = (10, 20, 50)
    flood: int = 100_000
    urgent_seconds: int = 4
    broker_flood: int = 1_000_000
    broker_urgent_seconds: int = 20  # 1,000 jobs
    publish: int = 10_000
    remote: int = 20_000
    brokers: tuple[str, ...] = ("redis", "rabbitmq", "nats")


FULL = Scale()
QUICK = Scale(
    single=1_000,
    concurrent=10_000,
    drain_long=100_000,
    pick_up_seconds=6,
    answers=500,
    pending=(1_000_000,),
    schedule_rounds=3,
    idle_seconds=15,
    sustained_seconds=20,
    requests=10_000,
    calls=5_000,
    agent_seconds=20,
    limited_milliseconds=(10,),
    broker_flood=100_000,
    broker_urgent_seconds=4,
    remote=10_000,
)
