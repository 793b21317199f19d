"""Files that commands read, watch or make: the service's own secret key, and the source files of the
user's program."""

from __future__ import annotations

import os
import sys
import sysconfig
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from duetime.config import FILE, VARIABLES_FILE, Settings
from duetime.errors import ConfigError
from duetime.model.ids import random_bytes
from duetime.model.keyring import MIN_KEY_BYTES, KeyRing

if TYPE_CHECKING:
    from duetime.store import Store

OTHER_USERS = 0o077
MAX_FILES = 20_000
IGNORED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})
INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
_logger = getLogger("duetime")

Snapshot = dict[str, int]  # time of the last write of each file, in nanoseconds


def read_text(path: str | Path) -> str:
    """The file's text; what is wrong with it as a ValueError."""
    try:
        return Path(path).expanduser().read_text("utf-8")
    except OSError as problem:
        raise ValueError(str(problem.strerror)) from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None


# -- the secret key --------------------------------------------------------------------------------
def key_ring(settings: Settings, store: Store, creates: bool = True) -> KeyRing:
    """The service's secret keys: those of the settings, else in local mode one that is made once and kept
    next to the store's file. A store that is not a file is shared with other machines, which could not read
    what a key of this machine encrypts. Without a key the ring is empty, and requests that carry a secret
    are refused. `creates`: a missing file is written."""
    if settings.secret_keys:
        return KeyRing.parse(settings.secret_keys)
    if not store.capabilities.durable:
        return KeyRing.parse([_new_key()])
    file: Path | None = getattr(store, "path", None)
    if file is None:
        return KeyRing()
    path = file.with_name(f"{file.name}.key")
    # A node without an API decrypts what an API on the same file encrypts, whichever of them starts first.
    made_here = creates and (settings.local or ("api" not in settings.roles and not settings.keys))
    try:
        return KeyRing.parse([_key_in(path)]) if made_here or path.exists() else KeyRing()
    except OSError as problem:
        _logger.debug(
            "no secret key: %s cannot be used (%s): set DUETIME_SECRET_KEYS",
            problem.filename,
            problem.strerror,
        )
        return KeyRing()


def _key_in(path: Path) -> str:
    if not path.exists():
        _make_key(path)
    if path.stat().st_mode & OTHER_USERS:
        raise ConfigError(
            f"{path}: other users of this machine can read the service's secret key: run `chmod 600 {path}`"
        )
    return path.read_text("ascii").strip()


def _make_key(path: Path) -> None:
    """Write it elsewhere and link it, so that it is complete or not there: another process may do the
    same, and the first one wins."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{_new_key()}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _new_key() -> str:
    return f"local-{random_bytes(4).hex()}:{b64encode(random_bytes(MIN_KEY_BYTES)).decode()}"


# -- source files ----------------------------------------------------------------------------------
def source_folders() -> list[Path]:
    """The current folder and the other folders modules come from, without those of Python, of installed
    packages and of Duetime."""
    installed = {
        *(Path(sysconfig.get_path(name)).resolve() for name in INSTALLED),
        Path(__file__).resolve().parents[2],
    }
    imported = [folder for entry in sys.path if entry and (folder := Path(entry).resolve()).is_dir()]
    own = [folder for folder in imported if not any(one in (folder, *folder.parents) for one in installed)]
    found = list(dict.fromkeys([Path.cwd().resolve(), *own]))
    return [folder for folder in found if not any(other in folder.parents for other in found)]


def snapshot(folders: Iterable[Path]) -> Snapshot:
    seen: Snapshot = {}
    for folder in folders:
        for entry in _source_files(folder):
            with suppress(FileNotFoundError):
                seen[entry.path] = entry.stat().st_mtime_ns
            if len(seen) > MAX_FILES:
                raise ConfigError(
                    f"reload: more than {MAX_FILES:,} source files in {folder}: start in your project's "
                    "folder"
                )
    return seen


def changed_files(before: Snapshot, after: Snapshot) -> list[str]:
    """Files written, added or deleted."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _source_files(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return  # deleted, or not readable for us
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return  # a virtual environment
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and entry.name not in IGNORED_FOLDERS:
                yield from _source_files(entry.path)
        elif (entry.name.endswith(".py") or entry.name in (FILE, VARIABLES_FILE)) and entry.is_file():
            yield entry
