"""The program's own source files, and which of them changed between two looks."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from duetime.config import FILE
from duetime.errors import ConfigError

MOST_FILES = 20_000
LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages"})
INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")

Snapshot = dict[str, int]  # when each file was last written, in nanoseconds


def source_folders() -> list[Path]:
    """This folder and what else modules are imported from, except where Python, installed packages and Duetime come from."""
    installed = {*(Path(sysconfig.get_path(name)).resolve() for name in INSTALLED), Path(__file__).resolve().parents[2]}
    imported = [folder for entry in sys.path if entry and (folder := Path(entry).resolve()).is_dir()]
    own = [folder for folder in imported if not any(one in (folder, *folder.parents) for one in installed)]
    found = list(dict.fromkeys([Path.cwd().resolve(), *own]))
    return [folder for folder in found if not any(other in folder.parents for other in found)]


def snapshot(folders: Iterable[Path]) -> Snapshot:
    seen: Snapshot = {}
    for folder in folders:
        for entry in _files(folder):
            with suppress(FileNotFoundError):
                seen[entry.path] = entry.stat().st_mtime_ns
            if len(seen) > MOST_FILES:
                raise ConfigError(f"reload: more than {MOST_FILES:,} source files in {folder}: start in your project's own folder")
    return seen


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """Files written, new or gone."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _files(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return  # gone, or not ours to read
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return  # a virtual environment
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and entry.name not in LEFT_OUT:
                yield from _files(entry.path)
        elif (entry.name.endswith(".py") or entry.name == FILE) and entry.is_file():
            yield entry
