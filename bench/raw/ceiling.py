"""The bare figures of workloads, one pair of methods per store. Each runs its loop now, next to the
workload it is compared with."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from redis import Redis

from bench.processes import ROOT, BenchFailed
from bench.raw import redis, sqlite

HAND_OVERS = 500


@dataclass(frozen=True, slots=True)
class BareDrain:
    """Jobs per second, and microseconds of CPU per job: the latter hold on a busy machine too."""

    rate: float
    client_cpu: float
    server_cpu: float


class Ceiling(Protocol):
    """In rows per second, unless noted otherwise."""

    def bulk(self, count: int) -> float: ...
    def drain(self, count: int, workers: int = 1) -> BareDrain: ...
    def inserts(self, count: int, rows: int) -> float: ...


class PostgresCeiling:
    def __init__(self, url: str, server_cpu: Callable[[], float]) -> None:
        self._url = url
        self._server_cpu = server_cpu

    def bulk(self, count: int) -> float:
        return count / float(self._run("prepare", count)["seconds"])

    def drain(self, count: int, workers: int = 1) -> BareDrain:
        self._run("prepare", count)
        processes = [self._begin("drain") for _ in range(workers)]
        for process in processes:
            expect_ready(process)
        server = self._server_cpu()
        for process in processes:
            tell(process)
        answers = [answer_of(process) for process in processes]
        settled = sum(answer["count"] for answer in answers)
        if settled != count:
            raise BenchFailed(f"the bare loop settled {settled:,} of {count:,} jobs")
        seconds = max(answer["ended"] for answer in answers) - min(answer["began"] for answer in answers)
        client = sum(answer["cpu"] for answer in answers)
        return BareDrain(count / seconds, client / count * 1e6, (self._server_cpu() - server) / count * 1e6)

    def inserts(self, count: int, rows: int) -> float:
        self._run("prepare", 0)
        return count * rows / float(self._run("inserts", count, rows)["seconds"])

    def round_trip(self) -> float:
        """Seconds."""
        return float(self._run("round_trips", 2_000)["seconds"]) / 2_000

    def hand_over(self) -> list[float]:
        """Seconds of each, from one process to another."""
        self._run("prepare", 0)
        taker = self._begin("take", HAND_OVERS)
        expect_ready(taker)
        self._run("send", HAND_OVERS)
        taken: list[float] = answer_of(taker)["seconds"]
        return taken

    def _run(self, command: str, *numbers: int) -> dict[str, Any]:
        return answer_of(self._begin(command, *numbers))

    def _begin(self, command: str, *numbers: int) -> subprocess.Popen[str]:
        return begin("bench.raw.postgres", command, self._url, *map(str, numbers))


class SqliteCeiling:
    def bulk(self, count: int) -> float:
        return sqlite.bulk(count)

    def drain(self, count: int, workers: int = 1) -> BareDrain:
        cpu = time.process_time()
        return BareDrain(sqlite.drain(count), (time.process_time() - cpu) / count * 1e6, 0.0)

    def inserts(self, count: int, rows: int) -> float:
        return sqlite.inserts(count, rows)


class RedisCeiling:
    def __init__(self, client: Redis, server_cpu: Callable[[], float]) -> None:
        self._client = client
        self._server_cpu = server_cpu

    def bulk(self, count: int) -> float:
        self._client.flushall()
        return count / redis.bulk(self._client, count)

    def drain(self, count: int, workers: int = 1) -> BareDrain:
        self.bulk(count)
        began, cpu, server = time.perf_counter(), time.process_time(), self._server_cpu()
        if redis.drain(self._client) != count:
            raise BenchFailed("the bare loop did not settle all jobs")
        rate = count / (time.perf_counter() - began)
        cpu, server = time.process_time() - cpu, self._server_cpu() - server
        return BareDrain(rate, cpu / count * 1e6, server / count * 1e6)

    def inserts(self, count: int, rows: int) -> float:
        self._client.flushall()
        return count * rows / redis.inserts(self._client, count, rows)


def begin(module: str, *arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(
        line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def expect_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        answer_of(process)


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("begin\n")
    process.stdin.flush()


def answer_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = process.communicate(timeout=600)
    if process.returncode != 0:
        raise BenchFailed(f"bare loop: {errors.strip()[-2000:]}")
    answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    return answer
