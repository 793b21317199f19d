"""The workloads, by the names given on the command line, in the order they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.figures import Figure
from bench.setting import Setting
from bench.workloads import (
    brokers,
    drain,
    latency,
    limits,
    pending,
    recurring,
    service,
    submit,
    sustained,
    traces,
)

POSTGRES = ("postgres",)


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    what: str
    run: Callable[[Setting], Iterator[Figure]]
    stores: tuple[str, ...] = ("postgres", "mariadb", "sqlite", "redis")


WORKLOADS = (
    Workload("bulk", "submit 20,000 jobs with submit_many", submit.bulk),
    Workload("single", "submit one after the other, and from 100 submitters at once", submit.single),
    Workload("drain", "20,000 no-op jobs, one worker process, history kept", drain.one_worker),
    Workload("drain-two", "the same, two worker processes", drain.two_workers, stores=POSTGRES),
    Workload("drain-long", "200,000 of them, one worker process", drain.long, stores=POSTGRES),
    Workload("drain-lanes", "5 queues x 10 priorities", drain.lanes, stores=POSTGRES),
    Workload(
        "drain-kill",
        "a drain after which the server is killed and started again: what it has lost",
        drain.then_kill,
        stores=("redis",),
    ),
    Workload(
        "traces",
        "the CPU of a drain without traces, and with 10 % of the jobs traced, in turns",
        traces.sampled_drain,
        stores=("postgres", "sqlite"),
    ),
    Workload(
        "limits",
        "50 keys, 2 jobs of each at once, three worker processes, beside the same without limits",
        limits.per_key,
    ),
    Workload("pick-up", "from submit to start, 50 jobs a second, from another process", latency.pick_up),
    Workload(
        "answer", "submit and wait for the end, one after the other, from another process", latency.answer
    ),
    Workload("urgent", "from submit to start, past 100,000 jobs of a millisecond", latency.urgent),
    Workload("punctual", "lateness of 1,000 jobs due over 10 s", latency.punctual),
    Workload("beside", "the same in a worker one of whose threads computes all the while", latency.beside),
    Workload("herd", "5,000 jobs due at one instant, the last start", latency.herd),
    Workload(
        "pending",
        "punctual, herd and drain beside millions of far-future jobs",
        pending.beside_millions,
        stores=("postgres", "redis"),
    ),
    Workload("schedules", "2,000 schedules every 5 s", recurring.schedules),
    Workload("idle", "20,000 schedules and nothing to do", recurring.idle),
    Workload(
        "held", "10,000 jobs/s while a transaction is held open elsewhere", sustained.held, stores=POSTGRES
    ),
    Workload("api", "POST /jobs over 64 connections", service.requests),
    Workload("calls", "jobs that call an agent over HTTP", service.calls),
    Workload(
        "brokers",
        "drain and pick-up through each broker, next to the store alone and the bare clients",
        brokers.drain_and_pick_up,
        stores=POSTGRES,
    ),
    Workload(
        "broker-urgent",
        "from submit to start, past a million jobs of a millisecond that come through RabbitMQ",
        brokers.urgent,
        stores=POSTGRES,
    ),
    Workload(
        "publish",
        "jobs that publish to RabbitMQ, next to the bare client",
        brokers.publish,
        stores=POSTGRES,
    ),
    Workload("remote", "the JavaScript worker, by the HTTP protocol", service.remote_worker, stores=POSTGRES),
    Workload(
        "agents",
        "two services call an agent for 500 schedules every second, one is killed",
        service.agents,
        stores=POSTGRES,
    ),
)
