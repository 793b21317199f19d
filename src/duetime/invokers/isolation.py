"""Isolation: which tasks run in a process of their own, with which limits, and where that process finds the
function."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duetime.errors import InvalidInput
from duetime.invokers.resources import unwrapped
from duetime.invokers.signature import Signature

MIN_MEMORY = 64 * 1024**2
_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])i?B\s*", re.IGNORECASE)
_SCALE = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


preparations: list[
    str
] = []  # "module:function", called in every new process before the task's module is imported


def prepare_children(function: str) -> None:
    """Register a call that a framework needs before a new process can import its modules."""
    if function not in preparations:
        preparations.append(function)


@dataclass(frozen=True, slots=True)
class Isolation:
    """Run each attempt in a new process. `memory` ("512MB") limits its address space. `spare` keeps one
    process ready, with the task's module imported, for a minute after the last use."""

    memory: str | None = None
    start: str = "spawn"
    spare: bool = True
    memory_bytes: int | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.start != "spawn":
            raise InvalidInput(
                "isolate.start",
                f'{self.start!r} is not supported: use "spawn", which starts a new interpreter',
            )
        if self.memory is not None:
            object.__setattr__(self, "memory_bytes", _parse_memory(self.memory))


def _parse_memory(text: Any) -> int:
    found = _MEMORY.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput("isolate.memory", f'{text!r} is not an amount of memory: write "512MB" or "2GB"')
    total = int(float(found[1]) * _SCALE[found[2].upper()])
    if total < MIN_MEMORY:
        raise InvalidInput(
            "isolate.memory",
            f"{text!r} is too little for Python itself: give at least {MIN_MEMORY // 1024**2}MB",
        )
    return total


@dataclass(frozen=True, slots=True)
class FunctionOrigin:
    """Where a new process finds a function: a module, or the script that was started, and a name in it."""

    module: str
    name: str
    script: str | None = None  # the path of the script that was started, when the function is in there


def check_isolated(
    function: Callable[..., Any], signature: Signature, isolate: bool | Isolation | None
) -> Isolation | None:
    """The isolation of a task, checked when the task is registered; None if the task runs in this process."""
    if isolate is None or isolate is False:
        return None
    isolation = Isolation() if isolate is True else isolate
    if not isinstance(isolation, Isolation):
        raise InvalidInput("isolate", f"{isolate!r} is not valid: use True or dt.Isolation(...)")
    if signature.uses:
        raise InvalidInput(
            "isolate",
            f"{signature.task}: cannot use the worker's resources: open {min(signature.uses)!r} in the task",
        )
    origin_of(function, signature.task)
    return isolation


def origin_of(function: Callable[..., Any], task: str) -> FunctionOrigin:
    plain = unwrapped(function)
    module, name = getattr(plain, "__module__", None), getattr(plain, "__qualname__", "")
    if not module or not name or "<" in name:
        raise InvalidInput(
            "isolate",
            f"{task}: a new process finds the function by its name: define it at the top level of a module",
        )
    return _origin_in_main(name, task) if module == "__main__" else FunctionOrigin(module, name)


def _origin_in_main(name: str, task: str) -> FunctionOrigin:
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return FunctionOrigin(spec.name, name)  # started as `python -m`: a module like any other
    if file is None:
        raise InvalidInput(
            "isolate",
            f"{task}: a new process cannot find a function typed into an interpreter: put it into a module",
        )
    return FunctionOrigin("__main__", name, str(Path(file).absolute()))
