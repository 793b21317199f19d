"""Packages that only some tests need, installed once by their lock files into folders below build/."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build" / "tools"
QUIET = ("--quiet", "--disable-pip-version-check")


def installed(name: str, lock: Path, install: Callable[[Path], None]) -> Path:
    """The folder of these packages; `install` fills it unless they are there already. One test process at a
    time: the others wait."""
    folder, stamp = TOOLS / name, TOOLS / f"{name}.stamp"
    digest = f"{sys.version} {folder} {sha256(lock.read_bytes()).hexdigest()}"
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != digest:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install(folder)
            stamp.write_text(digest)
    return folder


def importable(lock: str) -> Path:
    """A folder for PYTHONPATH with the packages of this file of requirements."""
    path = ROOT / "requirements" / lock

    def install(folder: Path) -> None:
        where = ["--target", str(folder), "--require-hashes", "-r", str(path)]
        subprocess.run([sys.executable, "-m", "pip", "install", *QUIET, *where], check=True)

    return installed(path.stem, path, install)
