"""The formats by their names, and which of them a file has. The library for Parquet is loaded only for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from duetime.archives import json_lines
from duetime.errors import ConfigError
from duetime.model.stored import JobRow

JSONL, PARQUET = "jsonl", "parquet"
FORMATS = (JSONL, PARQUET)


@dataclass(frozen=True, slots=True)
class FileFormat:
    suffix: str
    pack: Callable[[Sequence[JobRow]], bytes]
    own_ids: Callable[[bytes], list[UUID]]

    def ids(self, name: str, data: bytes) -> list[UUID]:
        return _format_of(name).own_ids(data)


def format_for(name: str) -> FileFormat:
    if name == JSONL:
        return FileFormat(json_lines.SUFFIX, json_lines.pack, json_lines.ids)
    if name == PARQUET:
        try:
            from duetime.archives import parquet
        except ModuleNotFoundError as missing:
            raise ConfigError(
                f"archive_format: parquet needs the package {missing.name}: pip install 'duetime[parquet]'"
            ) from None
        return FileFormat(parquet.SUFFIX, parquet.pack, parquet.ids)
    raise ConfigError(f"archive_format: {name!r} is not known: use one of {', '.join(FORMATS)}")


def _format_of(file: str) -> FileFormat:
    return format_for(PARQUET if file.endswith(f".{PARQUET}") else JSONL)
