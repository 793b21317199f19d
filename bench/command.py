"""`python -m bench`: run the chosen workloads, print the table, write the JSON."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from bench import peers
from bench.figures import Figure, Sheet
from bench.processes import BenchFailed
from bench.raw.ceiling import PostgresCeiling, RedisCeiling, SqliteCeiling
from bench.report import conditions, machine, table, write_json
from bench.scale import FULL, QUICK, Scale
from bench.setting import Setting
from bench.stage import SqliteStage, mariadb_stage, postgres_stage, redis_stage
from bench.stolen import StolenTime
from bench.targets import Judge
from bench.workloads import WORKLOADS, Workload, cron

LATEST = Path(__file__).parent / "results" / "latest.json"
CRON = "cron"
NAMES = [CRON, *(workload.name for workload in WORKLOADS)]
RAW_DATABASE = "raw"


@dataclass(slots=True)
class Run:
    """One invocation: the figures so far, and the workloads that failed."""

    scale: Scale
    began: float = field(default_factory=time.monotonic)
    sheet: Sheet = field(default_factory=Sheet)
    failures: dict[str, str] = field(default_factory=dict)
    peers: dict[str, float] = field(default_factory=dict)

    def say(self, text: str) -> None:
        sys.stderr.write(f"[{time.monotonic() - self.began:6.0f} s] {text}\n")
        sys.stderr.flush()

    def collect(self, run: str, name: str, figures: Callable[[], Iterator[Figure]]) -> None:
        """Report a failure and go on with the next workload."""
        self.say(f"{run} {name}")
        stolen = StolenTime()
        try:
            for found in figures():
                figure = replace(found, remark=", ".join(filter(None, (found.remark, stolen.remark()))))
                self.sheet.add(replace(figure, key=f"{run}.{figure.key}"))
                self.say(f"{run} {figure.name}: {figure.value:,.5g}{figure.unit} {figure.remark}")
        except BenchFailed as problem:
            self.failures[f"{run} {name}"] = str(problem)
            self.say(f"{run} {name} FAILED: {problem}")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # Like Ctrl-C: unwind, so that servers and workers stop and their files are removed.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    scale = QUICK if options.quick else FULL
    run = Run(replace(scale, idle_nodes=options.nodes, brokers=tuple(options.broker or scale.brokers)))
    about = {**machine(), "quick": options.quick, "scale": asdict(run.scale)}
    wanted = [workload for workload in WORKLOADS if workload.name in (options.workloads or NAMES)]
    if CRON in (options.workloads or NAMES):
        run.collect(CRON, "speed", cron.next_fire)
    if wanted and options.store in ("postgres", "all"):
        _on_postgres(run, wanted)
    if wanted and options.store in ("mariadb", "all"):
        _on_mariadb(run, wanted)
    if options.store in ("sqlite", "all"):
        _on_sqlite(run, wanted)
    if wanted and options.store in ("redis", "all"):
        _on_redis(run, wanted, options.appendfsync)
    if options.peers:
        _beside_peers(run, options.quick)
    judge = Judge(run.sheet, run.peers)
    write_json(options.json, run.sheet, judge, run.peers, run.failures, about)
    sys.stdout.write(f"{conditions(about)}\n\n{table(run.sheet, judge)}\n")
    for name, problem in run.failures.items():
        sys.stdout.write(f"not measured: {name}: {problem}\n")
    return 1 if run.failures else 0


def _on_postgres(run: Run, workloads: Sequence[Workload]) -> None:
    run.say("starting PostgreSQL: fsync and synchronous_commit on")
    with postgres_stage() as stage, stage.database(RAW_DATABASE) as url:
        ceiling = PostgresCeiling(url, stage.server_cpu)
        run.say(f"bare round trip {ceiling.round_trip() * 1e6:.0f} us")
        for workload in workloads:
            _measure(run, workload, Setting(stage, ceiling, run.scale, run.say))


def _on_mariadb(run: Run, workloads: Sequence[Workload]) -> None:
    run.say("starting MariaDB: innodb_flush_log_at_trx_commit=1")
    with postgres_stage() as bare, bare.database(RAW_DATABASE) as url, mariadb_stage() as stage:
        ceiling = PostgresCeiling(url, bare.server_cpu)
        for workload in workloads:
            _measure(run, workload, Setting(stage, ceiling, run.scale, run.say))


def _on_sqlite(run: Run, workloads: Sequence[Workload]) -> None:
    for workload in workloads:
        _measure(run, workload, Setting(SqliteStage(), SqliteCeiling(), run.scale, run.say))


def _on_redis(run: Run, workloads: Sequence[Workload], appendfsync: str) -> None:
    run.say(f"starting Redis: appendfsync {appendfsync}")
    with redis_stage(appendfsync) as stage:
        ceiling = RedisCeiling(stage.client, stage.server_cpu)
        for workload in workloads:
            _measure(run, workload, Setting(stage, ceiling, run.scale, run.say))


def _measure(run: Run, workload: Workload, setting: Setting) -> None:
    if setting.stage.name not in workload.stores:
        return
    run.collect(setting.stage.name, workload.name, lambda: workload.run(setting))


def _beside_peers(run: Run, quick: bool) -> None:
    harness = peers.folder()
    if harness is None:
        run.say(peers.ABSENT)
        return
    answers = peers.measure(harness, quick, run.say)
    run.peers |= peers.bases(answers)
    run.collect("harness", "figures", lambda: peers.figures(answers))
    run.failures |= {f"harness {number}": problem for number, problem in enumerate(peers.failures(answers))}


def _parser() -> argparse.ArgumentParser:
    listed = f"  {CRON:12}the next fire time of a cron expression\n" + "\n".join(
        f"  {workload.name:12}{workload.what}" for workload in WORKLOADS
    )
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"Measures Duetime beside the bare store.\n\nworkloads (all by default):\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workloads", nargs="*", type=_known, metavar="workload", help="what to measure")
    parser.add_argument("--store", choices=("postgres", "mariadb", "sqlite", "redis", "all"), default="all")
    parser.add_argument(
        "--appendfsync",
        choices=("everysec", "always"),
        default="everysec",
        help="of Redis: when it syncs its append-only file (%(default)s)",
    )
    parser.add_argument(
        "--peers", action="store_true", help=f"run the peers too, by the harness in {peers.FOLDER_VARIABLE}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer repeats, shorter runs, 1 M pending at most"
    )
    parser.add_argument(
        "--broker", action="append", choices=FULL.brokers, help="of `brokers`; may be repeated (all)"
    )
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="worker processes of `idle`")
    parser.add_argument(
        "--json", type=Path, default=LATEST, metavar="FILE", help="where to write the figures (%(default)s)"
    )
    return parser


def _known(name: str) -> str:
    if name not in NAMES:
        raise argparse.ArgumentTypeError(f"no workload {name!r}: use {', '.join(NAMES)}")
    return name
