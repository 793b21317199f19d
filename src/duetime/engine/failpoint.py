"""Places where tests let a process die, stop, stall or raise. Free of cost unless DUETIME_FAILPOINTS is set
when the process starts.

DUETIME_FAILPOINTS="worker.after_claim=kill;planner.before_fire=delay:0.5@3" kills at the first claim and
delays the third firing."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

from duetime.errors import ConfigError

FAILPOINTS = frozenset(
    {
        "commands.before_add",
        "commands.after_add",
        "planner.before_fire",
        "planner.after_fire",
        "worker.after_claim",
        "worker.before_invoke",
        "worker.after_invoke",
        "worker.before_commit",
        "worker.after_commit",
        "worker.before_settle",
        "worker.after_settle",
        "reaper.after_expire",
        "reaper.before_settle",
        "heartbeat.before_beat",
        "checkpoints.before_save",
        "checkpoints.after_save",
        "archive.before_file",
        "archive.after_file",
        "archive.after_manifest",
        "archive.after_forget",
    }
)


class Injected(RuntimeError):
    """Raised by the action "raise"."""


def parse(text: str) -> dict[str, tuple[str, int]]:
    """Name -> (action, which hit); refuses names that no line of code has."""
    plan: dict[str, tuple[str, int]] = {}
    for entry in filter(None, text.split(";")):
        name, _, rest = entry.partition("=")
        action, _, hit = rest.partition("@")
        if name not in FAILPOINTS or action.partition(":")[0] not in {"kill", "stop", "raise", "delay"}:
            raise ConfigError(
                f"DUETIME_FAILPOINTS: {entry!r} names no failpoint and action: "
                "use NAME=kill|stop|raise|delay:SECONDS[@HIT]"
            )
        plan[name] = (action, int(hit or 1))
    return plan


def _act(action: str) -> None:
    match action.partition(":"):
        case ("kill", _, _):
            os.kill(os.getpid(), signal.SIGKILL)
        case ("stop", _, _):
            os.kill(os.getpid(), signal.SIGSTOP)
        case ("delay", _, seconds):
            _stall(float(seconds))
        case _:
            raise Injected(action)


def _stall(seconds: float) -> None:
    # Blocks on purpose, as a slow disk or a stuck system call would.
    import select

    select.select([], [], [], seconds)


def _armed(plan: dict[str, tuple[str, int]]) -> Callable[[str], None]:
    hits: Counter[str] = Counter()

    def reached(name: str) -> None:
        if name in plan:
            hits[name] += 1
            action, wanted = plan[name]
            if hits[name] == wanted:
                _act(action)

    return reached


def _free(name: str) -> None:
    return None


failpoint: Callable[[str], None] = (
    _armed(parse(os.environ["DUETIME_FAILPOINTS"])) if os.environ.get("DUETIME_FAILPOINTS") else _free
)
