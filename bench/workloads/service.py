"""The service from outside: requests and calls of HTTP targets per second, and fires that agents receive,
also when a service is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import psutil

import duetime as dt
from bench.figures import Figure, median, quantile
from bench.processes import ROOT, BenchFailed, Ground
from bench.setting import Setting
from tests.servers.agent import Agent, Call, doubled
from tests.servers.service import Service

CONNECTIONS = 64
BATCH = 1_000
AT_ONCE = 50
BARE_SECONDS, CONNECTING_SECONDS = 20, 3
WORKER = ROOT / "examples" / "workers" / "worker.mjs"
JOB = '{"target":{"type":"task","name":"noop"},"payload":{"n":1},"delay":"1h"}'


def requests(setting: Setting) -> Iterator[Figure]:
    """POST /api/v1/jobs: each job is durable when the answer arrives."""
    with setting.stage.ground() as ground, Service(ground.url, ground.folder / "serve.log") as service:
        found = _load(service.address, setting.scale.requests)
        resident = _resident(service)
    if found["bad"]:
        raise BenchFailed(f"{found['bad']:.0f} requests were refused")
    yield Figure("api.rate", f"POST /jobs, {CONNECTIONS} connections", found["rate"], "/s")
    yield Figure(
        "api.p99",
        f"POST /jobs, {CONNECTIONS} connections, p99",
        found["p99"],
        " ms",
        None,
        f"p50 {found['p50']:.1f}",
    )
    yield Figure("api.resident", "service, RSS after that", resident, " MB")


def calls(setting: Setting) -> Iterator[Figure]:
    """Jobs that call an agent, and a bare aiohttp loop that calls the same agent."""
    count = setting.scale.calls
    with setting.stage.ground() as ground, Agent(ground.folder) as agent:
        bare = float(_program("bench.raw.calls", agent.url, str(count), str(AT_ONCE)))
        agent.clear()
        with Service(ground.url, ground.folder / "serve.log", "--roles", "api") as service:
            job = {"target": {"type": "http", "url": agent.url}, "payload": {"n": 1}}
            for _ in range(0, count, BATCH):
                post(f"{service.address}/api/v1/jobs/batch", {"jobs": [job] * BATCH})
        with Service(ground.url, ground.folder / "work.log", "--concurrency", str(AT_ONCE)):
            wait_until(lambda: len(agent) >= count, "the calls")
        seen = agent.calls()
    arrived = [call.at for call in seen]
    yield Figure("calls.bare", f"a bare aiohttp loop calling it, {AT_ONCE} at once", bare, "/s")
    yield Figure(
        "calls.rate",
        f"HTTP targets called, {count:,}",
        count / (max(arrived) - min(arrived)),
        "/s",
        bare,
        _twice(seen, count),
    )


def remote_worker(setting: Setting) -> Iterator[Figure]:
    """The JavaScript worker by the HTTP protocol, against one process of the service: from the first
    claim until no job is left."""
    count = setting.scale.remote
    jobs = [dt.NewJob("text.reverse", {"text": str(number)}) for number in range(count)]
    with (
        setting.stage.ground() as ground,
        Service(ground.url, ground.folder / "serve.log") as service,
        dt.Client(service.address) as client,
        setting.stage.left(ground) as left,
    ):
        for first in range(0, count, BATCH):
            client.submit_many(jobs[first : first + BATCH])
        environment = {**os.environ, "DUETIME_URL": service.address, "DUETIME_CONCURRENCY": "500"}
        worker = subprocess.Popen(["node", str(WORKER)], env=environment)
        try:
            wait_until(lambda: left() < count, "the worker to start")
            began, found = time.time(), left()
            wait_until(lambda: left() == 0, "the jobs")
            seconds = time.time() - began
        finally:
            worker.terminate()
            worker.wait()
    rate = found / seconds
    yield Figure("remote_worker.rate", f"a worker in JavaScript, {count:,} jobs", rate, "/s")


def agents(setting: Setting) -> Iterator[Figure]:
    """Two services, schedules that call an agent every second."""
    count, seconds = setting.scale.agents, setting.scale.agent_seconds
    for killed in (False, True):
        with setting.stage.ground() as ground, Agent(ground.folder) as agent:
            bare = _bare_bursts(agent, count)
            begin = _run_agents(ground, agent, count, seconds, killed)
            seen = [call for call in agent.calls() if begin <= call.fire_time < begin + seconds]
        key = "agents_killed" if killed else "agents"
        yield from _agent_figures(key, seen, count * seconds, begin + seconds / 2 if killed else None, bare)


def _bare_bursts(agent: Agent, count: int) -> float:
    """The lateness of the same calls, p99 in ms, if two processes only send them. They connect with the
    first bursts."""
    first = int(time.time()) + 3
    command = (sys.executable, "-m", "bench.raw.bursts", agent.url)
    numbers = [str(number) for number in (count // 2, first, BARE_SECONDS)]
    senders = [subprocess.Popen([*command, name, *numbers], cwd=ROOT) for name in ("one", "two")]
    if {sender.wait() for sender in senders} != {0}:
        raise BenchFailed("the bare client failed")
    late = [call.late * 1e3 for call in agent.calls() if call.fire_time >= first + CONNECTING_SECONDS]
    agent.clear()
    return quantile(late, 0.99)


def _run_agents(ground: Ground, agent: Agent, count: int, seconds: int, killed: bool) -> int:
    with ExitStack() as stack:
        services = [
            stack.enter_context(Service(ground.url, ground.folder / f"serve{number}.log"))
            for number in (1, 2)
        ]
        for number in range(count):
            schedule = {
                "name": f"agent {number}",
                "when": {"cron": "* * * * * *"},
                "target": {"type": "http", "url": agent.url},
            }
            post(f"{services[0].address}/api/v1/schedules", schedule)
        begin = int(time.time()) + 3
        if killed:
            time.sleep(max(0.0, begin + seconds / 2 - time.time()))
            services[0].process.kill()
        time.sleep(max(0.0, begin + seconds + 5 - time.time()))
    return begin


def _agent_figures(
    key: str, seen: list[Call], expected: int, killed_at: float | None, bare: float
) -> Iterator[Figure]:
    fires = {(call.schedule, call.fire_time) for call in seen}
    late = [
        call.late * 1e3
        for call in seen
        if killed_at is None or not killed_at - 1 <= call.fire_time <= killed_at + 5
    ]
    name = "agents called by two services" + ("" if killed_at is None else ", one killed halfway")
    again = doubled(seen)
    strange = [calls for calls in again if len({call.key for call in calls}) > 1]
    remark = f"{len(again)} fires twice, {len(strange)} of them under another key"
    yield Figure(f"{key}.fired", f"{name}, fired", len(fires) / expected * 100, " %", None, remark)
    yield Figure(f"{key}.doubled", f"{name}, fired twice", len(again), "")
    yield Figure(
        f"{key}.early",
        f"{name}, early",
        sum(moment < -2 for moment in late),
        "",
        None,
        f"earliest {min(late):.2f} ms",
    )
    yield Figure(
        f"{key}.p99",
        f"{name}, p99",
        quantile(late, 0.99),
        " ms",
        bare,
        f"p50 {median(late):.1f}, max {max(late):.1f}",
    )


def _load(address: str, count: int) -> dict[str, float]:
    where = urlsplit(address)
    answer: dict[str, float] = json.loads(
        _program(
            "bench.load",
            str(where.hostname),
            str(where.port),
            "/api/v1/jobs",
            JOB,
            str(CONNECTIONS),
            str(count),
        )
    )
    return answer


def _program(module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BenchFailed(f"{module}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def post(url: str, body: Any) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        answer.read()


def wait_until(condition: Any, what: str, patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise BenchFailed(f"waited {patience:.0f} s for {what}")
        time.sleep(0.05)


def _twice(seen: list[Call], count: int) -> str:
    return f"{len(seen) - count} called twice" if len(seen) > count else ""


def _resident(service: Service) -> float:
    resident: int = psutil.Process(service.process.pid).memory_info().rss
    return resident / 1e6
