"""The processes of a measurement: workers that start together and are stopped by pid, clients that print
JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.starts import (
    QUEUE_VARIABLE,
    ROLES_VARIABLE,
    SAMPLING_VARIABLE,
    SLOTS_VARIABLE,
    STARTS_VARIABLE,
    STORE_VARIABLE,
    TRACES_VARIABLE,
    StartLog,
)

ROOT = Path(__file__).parents[1]
PATIENCE = 60.0
GRACE = 30.0
GLANCE = 0.01


class BenchFailed(RuntimeError):
    """A workload could not be measured; the message says why."""


class Ground:
    """The place of one measurement: a store, a start log, and the user's program."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.queue: str | None = None  # the broker, if jobs go through one
        self.traces: str | None = None  # the collector, if there are traces
        self.sampling = 1.0
        self.folder = folder
        self.log = StartLog(folder / "starts")

    def client(self, command: str, *arguments: object, patience: float = 600.0) -> dict[str, Any]:
        """Run one client command to its end."""
        line = [
            sys.executable,
            "-m",
            "bench.program",
            command,
            *(json.dumps(argument) for argument in arguments),
        ]
        done = subprocess.run(
            line,
            cwd=ROOT,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=patience,
        )
        if done.returncode != 0:
            raise BenchFailed(f"client {command}: {done.stderr.strip()[-2000:]}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    @contextmanager
    def workers(self, count: int = 1, slots: int | None = None, roles: str | None = None) -> Iterator[Crew]:
        """Workers (or nodes with other roles) that have imported everything and wait for `begin`."""
        crew = Crew(self, count, slots, roles)
        try:
            crew.wait_ready()
            yield crew
        finally:
            crew.stop()

    @contextmanager
    def working(self, count: int = 1, roles: str | None = None) -> Iterator[Crew]:
        """Workers that have joined; one of them has already run a job."""
        with self.workers(count, roles=roles) as crew:
            crew.begin()
            self.client("probe")
            self.until(lambda: len(self.log) > 0, "the first job to run", crew)
            time.sleep(1.0)  # the worker's first rounds are over, and it is idle
            self.log.clear()
            yield crew

    def until(self, condition: Callable[[], bool], what: str, crew: Crew, patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not condition():
            if time.monotonic() > deadline:
                raise BenchFailed(f"waited {patience:.0f} s for {what}: {crew.tail()}")
            crew.check()
            time.sleep(GLANCE)

    def environment(self, slots: int | None = None, roles: str | None = None) -> dict[str, str]:
        told = {
            SLOTS_VARIABLE: None if slots is None else str(slots),
            QUEUE_VARIABLE: self.queue,
            ROLES_VARIABLE: roles,
            TRACES_VARIABLE: self.traces,
            SAMPLING_VARIABLE: str(self.sampling),
        }
        given = {name: value for name, value in told.items() if value is not None}
        return {**os.environ, STORE_VARIABLE: self.url, STARTS_VARIABLE: str(self.log.path), **given}


class Crew:
    """Worker processes of one measurement."""

    def __init__(
        self, ground: Ground, count: int, slots: int | None = None, roles: str | None = None
    ) -> None:
        self._errors = ground.folder / "workers.log"
        environment = ground.environment(slots, roles)
        with self._errors.open("a") as errors:
            self._processes = [self._spawn(environment, errors.fileno()) for _ in range(count)]

    def wait_ready(self) -> None:
        for process in self._processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise BenchFailed(f"a worker did not start: {self.tail()}")

    def begin(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("begin\n")
            process.stdin.flush()

    def check(self) -> None:
        if any(process.poll() is not None for process in self._processes):
            raise BenchFailed(f"a worker ended by itself: {self.tail()}")

    def cpu(self) -> float:
        return sum(cpu_seconds(process.pid) for process in self._processes)

    def resident_megabytes(self) -> float:
        return (
            float(sum(psutil.Process(process.pid).memory_info().rss for process in self._processes)) / 2**20
        )

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()

    def tail(self) -> str:
        return self._errors.read_text(errors="replace")[-2000:] or "its log is empty"

    def _spawn(self, environment: dict[str, str], errors: int) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "bench.program", "worker"]
        return subprocess.Popen(
            line,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )


def cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def family_cpu_seconds(pid: int) -> float:
    """Of a server and all its children, including ended ones."""
    parent = psutil.Process(pid)
    times = parent.cpu_times()
    seconds = float(times.user + times.system + times.children_user + times.children_system)
    for child in parent.children(recursive=True):
        try:
            seconds += cpu_seconds(child.pid)
        except psutil.NoSuchProcess:
            continue
    return seconds
