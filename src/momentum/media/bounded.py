"""Inspecting a file in a process of its own, with limits on time and memory: a hostile file can keep a
decoder busy for hours, use all memory, or crash it. The service only loses the child."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from momentum.media.inspection import MediaFacts, MediaRefused, inspect_file, is_pdf
from momentum.model import MediaKind

PROGRAM = "from momentum.media.bounded import main; main()"
TIMEOUT = 60.0  # seconds for one file, also on a busy machine
MAX_CPU = 20  # seconds of a processor
MAX_CPU_OF_PDF = 3  # only its pages are counted, which a small file can make endless
MAX_MEMORY = 2 << 30  # bytes of address space; the largest image that is decoded needs a quarter of it
MAX_CHILDREN = 2  # at the same time, one for each tenant; further files wait


class Inspector:
    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._places = asyncio.Semaphore(MAX_CHILDREN)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def inspect(self, path: Path, declared_type: str = "", tenant: str = "") -> MediaFacts:
        """What the file is. Raises MediaRefused if it is damaged, or needs too much time or memory. A tenant
        with many files waits for itself: the files of others pass."""
        turn = self._turns.setdefault(tenant, asyncio.Lock())
        async with turn, self._places:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                PROGRAM,
                str(path),
                declared_type,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                async with asyncio.timeout(self._timeout):
                    output, _ = await child.communicate()
            except TimeoutError:
                raise _too_complex() from None
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
        if child.returncode != 0:  # killed by a limit, or by a fault in a decoder
            raise _too_complex()
        return _facts_of(json.loads(output))


def _too_complex() -> MediaRefused:
    return MediaRefused(
        "needs too much time or memory to be checked: export it again, or make it smaller",
        "media_too_complex",
    )


def _facts_of(answer: dict[str, Any]) -> MediaFacts:
    if "message" in answer:
        raise MediaRefused(answer["message"], answer["code"])
    return MediaFacts(**{**answer, "kind": MediaKind(answer["kind"])})


def main() -> None:
    """The child: prints the facts or the refusal as JSON."""
    _, path, declared_type = sys.argv
    _limit(MAX_CPU_OF_PDF if is_pdf(Path(path)) else MAX_CPU)
    try:
        answer = asdict(inspect_file(Path(path), declared_type))
    except MediaRefused as refused:
        (problem,) = refused.problems
        answer = {"message": problem.message, "code": problem.code}
    sys.stdout.write(json.dumps(answer))


def _limit(seconds: int) -> None:
    """Where the system has such limits; the time limit of the parent holds everywhere."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
