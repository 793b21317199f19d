"""The peers, measured by the external harness that BENCH_PEERS names: it runs them and Duetime one after
another on one server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.processes import BenchFailed

FOLDER_VARIABLE = "BENCH_PEERS"
PEERS = ("pgqueuer", "graphile-worker")
DUETIME = "duetime"
ALL = ("w1", "w2", "w3", "w4", "w5")
QUICK = ("w1", "w2", "w3")
ABSENT = (
    f"peers: set {FOLDER_VARIABLE} to a writable copy of the peer harness, after its setup.sh, to measure "
    "them in the same run"
)
# The live table holds live jobs only.
UNFINISHED = "select count(*) from duetime.jobs"


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure of the harness: its place in the result of a part."""

    key: str
    name: str
    unit: str
    part: str
    path: tuple[str, ...]
    factor: float = 1.0


CALIBRATION = "calib_before_jobs_per_s"
READINGS = (
    Reading("bare.rate", "bare store, just before it", "/s", "calibration", (CALIBRATION,)),
    Reading("bulk.rate", "bulk submit", "/s", "w1", ("bulk_enqueue_per_s",)),
    Reading("single.rate", "single submit", "/s", "w1", ("single_enqueue_per_s",)),
    Reading("drain.rate", "drain, one worker", "/s", "w1", ("drain_1w_per_s",)),
    Reading("drain_two.rate", "drain, two workers", "/s", "w1", ("drain_2w_per_s",)),
    Reading(
        "drain.worker_cpu", "drain, worker CPU per job", " us", "w1", ("drain_1w_worker_cpu_us_per_job",)
    ),
    Reading(
        "drain.server_cpu", "drain, server CPU per job", " us", "w1", ("drain_1w_server_cpu_us_per_job",)
    ),
    Reading("pick_up.p50", "pick-up, p50", " ms", "w2", ("p50_ms",)),
    Reading("pick_up.p99", "pick-up, p99", " ms", "w2", ("p99_ms",)),
    Reading("punctual.p99", "punctual, p99", " ms", "w3", ("spread", "p99_ms")),
    Reading("punctual.early", "punctual, started early", "", "w3", ("spread", "early")),
    Reading("herd.last", "herd of 5,000, last start", " ms", "w3", ("herd", "max_ms")),
    Reading("punctual_1m.p99", "punctual, 1 M pending, p99", " ms", "w4", ("p99_ms",)),
    Reading("schedules.fired", "2,000 schedules every 5 s, fired", " %", "w5", ("fired_fraction",), 100.0),
    Reading("schedules.p99", "2,000 schedules every 5 s, p99", " ms", "w5", ("p99_ms",)),
    Reading("schedules.cpu", "2,000 schedules, worker CPU in 30 s", " s", "w5", ("worker_cpu_s",)),
)

Answers = Mapping[str, Mapping[str, Mapping[str, Any]]]


def folder() -> Path | None:
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named and (Path(named) / "run.py").is_file() else None


def measure(harness: Path, quick: bool, say: Callable[[str], None]) -> Answers:
    """The results of every peer: peer -> part -> result."""
    answers: dict[str, dict[str, dict[str, Any]]] = {}
    line = [sys.executable, "-u", "run.py", *PEERS, DUETIME, "--only", ",".join(QUICK if quick else ALL)]
    environment = {**os.environ, "DUETIME_PY": sys.executable, "DUETIME_REM": UNFINISHED}
    with subprocess.Popen(
        line, cwd=harness, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        last = ""
        for last in process.stdout:
            peer, _, rest = last.strip().partition(" ")
            part, _, answer = rest.partition(" ")
            if part in ALL and answer.startswith("{"):
                answers.setdefault(peer, {})[part] = json.loads(answer)
                say(f"{peer} {part}: {answer[:150]}")
    if process.returncode != 0:
        raise BenchFailed(f"the peers' harness ended with status {process.returncode}: {last.strip()}")
    for peer, parts in answers.items():
        # How fast the machine was while this peer ran: without it a busy minute looks like a slow peer.
        parts["calibration"] = json.loads((harness / "results" / f"{peer}.json").read_text())
    return answers


def figures(answers: Answers) -> Iterator[Figure]:
    """Duetime's figures in the harness, next to those of the peers."""
    for reading in READINGS:
        own = _value(answers, DUETIME, reading)
        if own is None:
            continue
        others = {peer: value for peer in PEERS if (value := _value(answers, peer, reading)) is not None}
        remark = ", ".join(
            f"{own / value:.3g} x {peer} ({value:,.6g})" for peer, value in others.items() if value
        )
        yield Figure(reading.key, reading.name, own, reading.unit, None, remark, {"peers": others})


def failures(answers: Answers) -> Iterator[str]:
    for peer, parts in answers.items():
        yield from (
            f"{peer} {part}: {answer['error']}" for part, answer in parts.items() if "error" in answer
        )


def bases(answers: Answers) -> dict[str, float]:
    """The figures that limits refer to: 'pgqueuer drain' and so on."""
    return {
        f"{peer} {reading.key.removesuffix('.rate')}": value
        for peer in PEERS
        for reading in READINGS
        if (value := _value(answers, peer, reading)) is not None
    }


def _value(answers: Answers, peer: str, reading: Reading) -> float | None:
    found: Any = answers.get(peer, {}).get(reading.part, {})
    for step in reading.path:
        found = found.get(step) if isinstance(found, dict) else None
    return None if found is None else float(found) * reading.factor
