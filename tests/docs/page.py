"""A page of the documentation and its code blocks, and how each kind of block is carried out.

Python blocks of a page run in order in one namespace; `await` is allowed at top level. A block whose first line is `# name.py` or
`# name.toml` is a file: it is written beside the others. Shell blocks run line by line. A block that cannot run stands below the
comment `<!-- not run: reason -->`.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SERVER_URL = "postgresql://scheduler@db.example.org/duetime"
FILE_LINE = re.compile(r"# ([\w.]+\.(?:py|toml))$")
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
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    environment: dict[str, str] = field(default_factory=dict)
    serving: list[subprocess.Popen[bytes]] = field(default_factory=list)

    async def follow(self) -> None:
        try:
            for block in blocks(self.page):
                if block.not_run is None:
                    await self._do(block)
        finally:
            self._stop()

    async def _do(self, block: Block) -> None:
        text = block.text.replace(SERVER_URL, self.server_url or SERVER_URL)
        if block.file is not None:
            (self.folder / block.file).write_text(text)
        elif block.language == "python":
            await self._run_python(text, block.line)
        elif block.language == "sh":
            for command in text.replace("\\\n", " ").splitlines():
                self._run_command(command, block.line)
        else:
            assert block.language in ("text", "sql"), f"{self.page}:{block.line}: what is a {block.language!r} block?"

    async def _run_python(self, text: str, line: int) -> None:
        code = compile("\n" * line + text, str(self.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
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
            case ["duetime", "serve", *_]:
                self._serve(words)
            case ["duetime" | "python", *_]:
                self._finish(words, line)
            case _:
                raise AssertionError(f"{self.page}:{line}: nobody knows how to try `{command}`")

    def _finish(self, words: list[str], line: int) -> None:
        command = [str(BIN / words[0]), *words[1:]]
        done = subprocess.run(command, cwd=self.folder, env=self._variables(), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{self.page}:{line}: {' '.join(words)}\n{done.stdout}{done.stderr}"

    def _serve(self, words: list[str]) -> None:
        log = self.folder / f"serve{len(self.serving)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(BIN / words[0]), *words[1:]], cwd=self.folder, env=self._variables(), stdout=output, stderr=output
            )
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
