"""Every error that Momentum shows to a user. Each has a stable `code`; messages say what is wrong and what to
do.

MomentumError
├── ConfigError
├── InvalidPost
├── NotFound
├── Conflict
│   └── PostPublishing
├── AccessDenied
└── PlatformFailed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class MomentumError(Exception):
    """The root: catch it to catch everything Momentum raises on purpose."""

    code = "error"
    status = 500

    def __init_subclass__(cls, code: str | None = None, status: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.code, cls.status = code or cls.code, status or cls.status

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigError(MomentumError, code="config_invalid", status=500):
    """A setting or URL is wrong."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input: the field, and what to do."""

    field: str
    message: str
    code: str = "invalid"


class InvalidPost(MomentumError, code="post_invalid", status=422):
    """The platform would refuse this post, or a field cannot be read. All problems are named together."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{problem.field}: {problem.message}" for problem in problems))
        self.problems = tuple(problems)


class NotFound(MomentumError, code="not_found", status=404):
    """There is no such object, or it belongs to another tenant."""


class Conflict(MomentumError, code="conflict", status=409):
    """The state of the object does not allow this, or it was changed in the meantime."""


class PostPublishing(Conflict, code="post_publishing"):
    """The post is being published at this moment: it can no longer be changed."""


class AccessDenied(MomentumError, code="access_denied", status=401):
    """The API key is missing or wrong."""


class PlatformFailed(MomentumError, code="platform_failed", status=502):
    """The platform did not answer as expected while an account was connected."""
