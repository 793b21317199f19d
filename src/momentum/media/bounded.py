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

from momentum.media.inspection import MediaFacts, MediaRefused, inspect_file
from momentum.model import MediaKind

PROGRAM = "from momentum.media.bounded import main; main()"
TIMEOUT = 60.0  # seconds for one file, also on a busy machine
MAX_CPU = 20  # seconds of a processor
MAX_MEMORY = 2 << 30  # bytes of address space; the largest image that is decoded needs a quarter of it
MAX_CHILDREN = 2  # at the same time; further files wait


class Inspector:
    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._places = asyncio.Semaphore(MAX_CHILDREN)

    async def inspect(self, path: Path, declared_type: str = "") -> MediaFacts:
        """What the file is. Raises MediaRefused if it is damaged, or needs too much time or memory."""
        async with self._places:
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
    _limit()
    _, path, declared_type = sys.argv
    try:
        answer = asdict(inspect_file(Path(path), declared_type))
    except MediaRefused as refused:
        (problem,) = refused.problems
        answer = {"message": problem.message, "code": problem.code}
    sys.stdout.write(json.dumps(answer))


def _limit() -> None:
    """Where the system has such limits; the time limit of the parent holds everywhere."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU, MAX_CPU))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
