"""Places for archives: a folder, or a bucket of an S3-compatible service (`pip install 'duetime[archive]'`).
Formats of their files: JSON lines, or Parquet (`pip install 'duetime[parquet]'`)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from duetime.archive import Archive, ArchivePlace
from duetime.archives.formats import JSONL, format_for
from duetime.errors import ConfigError

KINDS_OF_PLACES = "name a folder or s3://bucket/prefix"


def archive_for(place: str | Path | ArchivePlace, form: str = JSONL) -> Archive:
    """The format is checked first: a wrong one needs no place to be noticed."""
    file_format = format_for(form)
    if isinstance(place, str | Path):
        place = place_for(str(place))
    if not isinstance(place, ArchivePlace):
        raise ConfigError(f"archive: {place!r} is not valid: {KINDS_OF_PLACES}")
    return Archive(place, file_format)


def place_for(text: str) -> ArchivePlace:
    """`s3://bucket/prefix`, or the path of a folder that exists."""
    if not text.strip():
        raise ConfigError(f"archive: is empty: {KINDS_OF_PLACES}")
    scheme = urlsplit(text).scheme.lower()
    if scheme == "s3":
        try:
            from duetime.archives.bucket import Bucket

            return Bucket.from_url(text)
        except ModuleNotFoundError as missing:
            raise ConfigError(
                f"archive: s3:// needs the package {missing.name}: pip install 'duetime[archive]'"
            ) from None
    if "://" in text:
        raise ConfigError(f"archive: {scheme}:// is not known: {KINDS_OF_PLACES}")
    from duetime.archives.folder import Folder

    return Folder(Path(text))
