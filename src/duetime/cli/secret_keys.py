"""The service's own secret keys: those of the settings; in local mode else one that is made here once and kept where only its user can
read it."""

from __future__ import annotations

import os
from base64 import b64encode
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from duetime.errors import ConfigError
from duetime.model.ids import random_bytes
from duetime.model.keyring import SHORTEST_KEY, KeyRing

if TYPE_CHECKING:
    from duetime.config import Settings
    from duetime.store import Store

OTHERS = 0o077
_logger = getLogger("duetime")


def ring_of(settings: Settings, store: Store) -> KeyRing:
    """Without keys the ring is empty, and whoever sends a secret is told that it cannot be kept."""
    if settings.secret_keys:
        return KeyRing.parse(settings.secret_keys)
    if not store.capabilities.durable:
        return KeyRing.parse([_new_entry()])
    try:
        path = place_of(store)
        made_here = settings.local or _beside_an_api(settings, store)
        return KeyRing.parse([_kept(path)]) if made_here or path.exists() else KeyRing()
    except OSError as problem:
        _logger.debug("no secret key: %s cannot be used (%s): set DUETIME_SECRET_KEYS", problem.filename, problem.strerror)
        return KeyRing()


def place_of(store: Store) -> Path:
    """Beside the store's file, where whoever moves one sees the other; else in the user's own folder."""
    file = _file_of(store)
    if file is not None:
        return file.with_name(f"{file.name}.key")
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "duetime"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "secret.key"


def _file_of(store: Store) -> Path | None:
    """Of a store that is one file of this machine."""
    file: Path | None = getattr(store, "path", None)
    return file


def _beside_an_api(settings: Settings, store: Store) -> bool:
    """A node without an API, on a file: it opens what the API beside it seals, whichever of them starts first."""
    return "api" not in settings.roles and not settings.keys and _file_of(store) is not None


def _kept(path: Path) -> str:
    if not path.exists():
        _make(path)
    if path.stat().st_mode & OTHERS:
        raise ConfigError(f"{path}: others on this machine can read the service's secret key: run `chmod 600 {path}`")
    return path.read_text("ascii").strip()


def _make(path: Path) -> None:
    """Complete or not there at all: another process may look at the same moment, and the first one wins."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{_new_entry()}\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()


def _new_entry() -> str:
    return f"local-{random_bytes(4).hex()}:{b64encode(random_bytes(SHORTEST_KEY)).decode()}"
