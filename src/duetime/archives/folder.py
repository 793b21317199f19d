"""Files in a folder."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from duetime.errors import ArchiveUnavailable, ConfigError
from duetime.exclusive_file import name_file


class Folder:
    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(f"archive: there is no folder {folder}: create it, or name another place")
        self._folder = folder

    async def create(self, name: str, data: bytes) -> None:
        await asyncio.to_thread(self._create, self._folder / name, data)

    async def read(self, name: str) -> bytes | None:
        try:
            return await asyncio.to_thread((self._folder / name).read_bytes)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise ArchiveUnavailable(f"{self._folder / name} cannot be read: {problem.strerror}") from None

    def _create(self, path: Path, data: bytes) -> None:
        """Complete under its name, or not there."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".", suffix=".partial", dir=path.parent)
            temporary = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                name_file(temporary, path)
            except FileExistsError:
                return
            finally:
                temporary.unlink(missing_ok=True)
            self._sync(path.parent)
        except OSError as problem:
            raise ArchiveUnavailable(f"{path} cannot be written: {problem.strerror}") from None

    def _sync(self, folder: Path) -> None:
        """Up to the folder of the archive: it may have new folders in it."""
        for one in (folder, *folder.parents):
            descriptor = os.open(one, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if one == self._folder:
                return
