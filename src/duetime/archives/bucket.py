"""Objects in a bucket of S3 or a compatible service. Keys and region come from AWS_* variables or, on AWS,
from the machine's role; `?endpoint=` names another service."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import parse_qs, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import S3Store

from duetime.errors import ArchiveUnavailable, ConfigError

OPTIONS = {"endpoint"}


class Bucket:
    def __init__(self, store: S3Store, place: str) -> None:
        self._store = store
        self._place = place

    @classmethod
    def from_url(cls, url: str) -> Bucket:
        parts = urlsplit(url)
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if unknown := sorted(set(options) - OPTIONS):
            raise ConfigError(f"archive: s3:// has no option {unknown[0]!r}: it has {', '.join(OPTIONS)}")
        if not parts.netloc or "@" in parts.netloc:
            raise ConfigError("archive: write s3://bucket/prefix; keys come from AWS_* variables")
        settings: dict[str, Any] = {
            "prefix": parts.path.strip("/") or None,
            "region": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        }
        if endpoint := options.get("endpoint"):
            settings |= {
                "endpoint": endpoint,
                "virtual_hosted_style_request": False,
                "client_options": {"allow_http": endpoint.startswith("http://")},
            }
        return cls(S3Store(parts.netloc, **settings), f"s3://{parts.netloc}")

    async def create(self, name: str, data: bytes) -> None:
        try:
            await obstore.put_async(self._store, name, data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return
        except BaseError as problem:
            raise self._unavailable(name, "written", problem) from None

    async def read(self, name: str) -> bytes | None:
        try:
            return bytes(await (await obstore.get_async(self._store, name)).bytes_async())
        except (NotFoundError, FileNotFoundError):
            return None
        except BaseError as problem:
            raise self._unavailable(name, "read", problem) from None

    def _unavailable(self, name: str, verb: str, problem: BaseException) -> ArchiveUnavailable:
        reason = str(problem).partition("\n")[0][:200]
        return ArchiveUnavailable(f"{self._place}/{name} cannot be {verb}: {reason}")
