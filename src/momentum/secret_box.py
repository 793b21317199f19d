"""Encryption of tokens at rest. The keys are never in the database: they come from the environment or from a
file of mode 0600 outside of its folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from momentum.errors import ConfigError, MomentumError

REMEDY = "make one with `momentum key secret`, or let `momentum serve` make a key file"
OWNER_ONLY = 0o600


class SecretUnreadable(MomentumError, code="secret_unreadable", status=500):
    """The stored secret was encrypted with a key that is not among the settings."""


class SecretBox:
    """Seals with the newest key, and opens with any of them: so keys can be changed one after another."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ConfigError(f"secret_keys: there is no key: {REMEDY}")
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise ConfigError(
                f"secret_keys: a key is not 32 bytes in URL-safe base64: {REMEDY}"
            ) from None  # the cause would show the key

    def seal(self, text: str) -> bytes:
        return self._fernet.encrypt(text.encode())

    def open(self, sealed: bytes, max_age: int | None = None) -> str:
        """`max_age` in seconds: an older one cannot be opened."""
        try:
            return self._fernet.decrypt(sealed, max_age).decode()
        except InvalidToken:
            raise SecretUnreadable(
                "a stored secret cannot be read: the key it was encrypted with is missing in secret_keys, "
                "or it is too old; add the key, or connect the account again"
            ) from None

    def rotate(self, sealed: bytes) -> bytes:
        """The same secret under the newest key."""
        return self._fernet.rotate(sealed)


def new_key() -> str:
    return Fernet.generate_key().decode()


def default_key_file() -> Path:
    """In the user's folder for settings, away from the database: a copy of the database holds no key."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "momentum" / "secret.keys"


def read_key_file(path: Path, *, create: bool = False) -> tuple[str, ...]:
    """One key in each line, the newest first."""
    if create and not path.exists():
        _create(path)
    try:
        mode = path.stat().st_mode & 0o777
        lines = path.read_text("ascii").split()
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"key_file: {path} cannot be read ({problem}): {REMEDY}") from None
    if mode & 0o077:
        raise ConfigError(
            f"key_file: {path} can be read by other users (mode {mode:o}): run `chmod 600 {path}`"
        )
    return tuple(lines)


def _create(path: Path) -> None:
    """Under another name first: processes that start together see no file, or a complete one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "w") as file:
        file.write(new_key() + "\n")
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        draft.unlink()
