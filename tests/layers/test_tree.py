"""What is in the repository: no lock files with addresses, no paths of a developer's machine, no long
files."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from duetime.version import VERSION

ROOT = Path(__file__).parents[2]
MAX_LINES = 550
SOURCE = {".py", ".sql", ".lua", ".ts", ".tsx"}
LOCKS_WITH_ADDRESSES = re.compile(r"(uv\.lock|pylock.*\.toml|poetry\.lock|Pipfile\.lock)$")
MACHINE_PATH = re.compile(r"(?<![\w.~}>-])/(work|root|home|tmp|Users|opt/pypi\S*|var/folders)/\w")
NOT_OURS = {".git", ".venv", "__pycache__", "node_modules", "dist", "build"}


def tracked() -> list[Path]:
    """The files of the repository; in a copy without git, all that tools did not generate."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
        return [path for name in names if name and (path := ROOT / name).is_file()]
    return list(_walk(ROOT))


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in NOT_OURS or path.name.endswith("_cache") or path.name == ".hypothesis":
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


def lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        return []


def test_no_lock_file_contains_addresses() -> None:
    assert [path for path in tracked() if LOCKS_WITH_ADDRESSES.search(path.name)] == []


def test_requirements_name_no_index() -> None:
    files = sorted((ROOT / "requirements").glob("*.txt"))
    assert {path.name for path in files} >= {"run.txt", "build.txt", "dev.txt"}
    assert [
        line
        for path in files
        for line in lines(path)
        if "://" in line or line.lstrip().startswith(("-i ", "--index", "--extra"))
    ] == []


def test_no_file_contains_a_path_of_a_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{n}: {line}"
        for path in tracked()
        for n, line in enumerate(lines(path), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found, "\n" + "\n".join(found)


def test_no_source_file_is_too_long() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in tracked()
        if path.suffix in SOURCE and (count := len(lines(path))) > MAX_LINES
    }
    assert long == {}


def test_version_is_the_same_everywhere() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == VERSION


@pytest.mark.parametrize("folder", ["work", "root", "tmp"])
def test_path_of_a_machine_is_found(folder: str) -> None:
    assert MACHINE_PATH.search(f'open("/{folder}/secret.txt")')
    assert not MACHINE_PATH.search(f"https://example.org/{folder}/page and src/{folder}/file.py")
