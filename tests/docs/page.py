"""A page of the documentation and its code blocks, and how each kind of block is carried out.

Python blocks of a page run in order in one namespace; `await` is allowed at top level. A block whose first line is `# name.py` or
`# folder/name.py` (or `.toml`, `.ini`) is a file: it is written into the page's folder, from where the other blocks can import it. Shell
blocks run line by line. A block that cannot run stands below the comment `<!-- not run: reason -->`.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SERVER_URL = "postgresql://scheduler@db.example.org/duetime"
FILE_LINE = re.compile(r"# ((?:\w+/)*[\w.]+\.(?:py|toml|ini))$")
MODULE = "page"  # by this name what a page defines is found, as if it were a module
BLOCK = re.compile(r"(?P<mark><!-- not run: (?P<reason>[^>]+?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
DEADLINE = 30.0


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    line: int
    not_run: str | None

    @property
    def file(self) -> str | None:
        found = FILE_LINE.match(self.text.partition("\n")[0])
        return found[1] if found else None


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(found["language"], found["text"], text.count("\n", 0, found.start("text")) + 1, found["reason"])
        for found in BLOCK.finditer(text)
    ]


@dataclass
class Reader:
    """Somebody who does what a page says, in a folder of their own."""

    page: Path
    folder: Path
    server_url: str | None = None
    module: ModuleType = field(default_factory=lambda: ModuleType(MODULE))
    environment: dict[str, str] = field(default_factory=dict)
    serving: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def names(self) -> dict[str, Any]:
        return self.module.__dict__

    async def follow(self) -> None:
        try:
            with self._importable():
                for block in blocks(self.page):
                    if block.not_run is None:
                        await self._do(block)
        finally:
            self._stop()

    @contextmanager
    def _importable(self) -> Iterator[None]:
        """The page itself, and the files in its folder; until the end of the page, as the next one has others of the same names."""
        sys.path.insert(0, str(self.folder))
        sys.modules[MODULE] = self.module
        try:
            yield
        finally:
            sys.path.remove(str(self.folder))
            for name, module in list(sys.modules.items()):
                if name == MODULE or self.folder in Path(getattr(module, "__file__", None) or "/").parents:
                    del sys.modules[name]

    async def _do(self, block: Block) -> None:
        text = block.text.replace(SERVER_URL, self.server_url or SERVER_URL)
        if block.file is not None:
            file = self.folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        elif block.language == "python":
            await self._run_python(text, block.line)
        elif block.language == "sh":
            for command in text.replace("\\\n", " ").splitlines():
                self._run_command(command, block.line)
        else:
            assert block.language in ("text", "sql"), f"{self.page}:{block.line}: what is a {block.language!r} block?"

    async def _run_python(self, text: str, line: int) -> None:
        code = compile("\n" * line + text, str(self.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        answer = eval(code, self.names)
        if inspect.iscoroutine(answer):
            await answer

    def _run_command(self, command: str, line: int) -> None:
        words = shlex.split(command, comments=True)
        match words:
            case []:
                pass
            case ["export", setting]:
                name, _, value = setting.partition("=")
                self.environment[name] = value
            case ["make", target, *_]:
                assert f"\n{target}:" in (ROOT / "Makefile").read_text(), f"{self.page}:{line}: no target {target}"
            case ["pip", "install", *packages]:
                assert all(_installable(package) for package in packages), f"{self.page}:{line}: {command}"
            case ["duetime" | "python" | "flask", *_] if {"serve", "worker", "duetime_worker"} & set(words):
                self._serve(words)
            case ["duetime" | "python" | "flask" | "pytest", *_]:
                self._finish(words, line)
            case _:
                raise AssertionError(f"{self.page}:{line}: nobody knows how to try `{command}`")

    def _finish(self, words: list[str], line: int) -> None:
        command = [str(BIN / words[0]), *words[1:]]
        done = subprocess.run(command, cwd=self.folder, env=self._variables(), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{self.page}:{line}: {' '.join(words)}\n{done.stdout}{done.stderr}"

    def _serve(self, words: list[str]) -> None:
        log = self.folder / f"serve{len(self.serving)}.log"
        # "On another machine" is this one here, and so is the page being tried beside this: each needs a port of its own.
        variables = {"DUETIME_PORT": "0", **self._variables()}
        with log.open("wb") as output:
            process = subprocess.Popen([str(BIN / words[0]), *words[1:]], cwd=self.folder, env=variables, stdout=output, stderr=output)
        self.serving.append(process)
        end = time.monotonic() + DEADLINE
        while "joined" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.02)

    def _stop(self) -> None:
        for process in self.serving:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(DEADLINE) for process in self.serving] == [0] * len(self.serving)

    def _variables(self) -> dict[str, str]:
        return {**{name: value for name, value in os.environ.items() if not name.startswith("DUETIME_")}, **self.environment}


def _installable(package: str) -> bool:
    return package in ("duetime", "-e", ".") or package.startswith(("duetime[", ".["))
