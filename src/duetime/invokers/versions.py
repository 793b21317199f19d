"""Payload versions: the payload of a job stored by older code is upgraded to what the function takes
today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duetime.errors import InvalidInput, InvalidPayload
from duetime.model.codec import decode, encode_payload
from duetime.model.job import Claimed

FIRST_VERSION = 1
Upgrade = Callable[[int, Any], Any]


class PayloadVersions:
    """The current version of a task's payloads, and the function that upgrades older ones."""

    def __init__(self, task: str, version: int = FIRST_VERSION, upgrade: Upgrade | None = None) -> None:
        if isinstance(version, bool) or not isinstance(version, int) or version < FIRST_VERSION:
            raise InvalidInput("version", f"{version!r} must be a whole number of at least {FIRST_VERSION}")
        if upgrade is not None and version == FIRST_VERSION:
            raise InvalidInput("upgrade", "there is no older version to upgrade from: set version=2 as well")
        self._task = task
        self._version = version
        self._upgrade = upgrade

    @property
    def applies_to_all(self) -> bool:
        """Whether jobs without their own policies need a check, too: they are of the first version."""
        return self._version > FIRST_VERSION

    def upgraded(self, job: Claimed, payload: bytes) -> bytes:
        stored = FIRST_VERSION if job.policies is None else decode(job.policies).get("version", FIRST_VERSION)
        if stored > self._version:
            raise InvalidPayload(
                "version", f"newer code stored this as version {stored}, but this node knows {self._task!r} "
                f"only up to {self._version}: "
                "update the node, then retry the job"
            )  # fmt: skip
        if stored == self._version or self._upgrade is None:
            return payload
        return self._run_upgrade(self._upgrade, stored, decode(payload))

    def _run_upgrade(self, upgrade: Upgrade, stored: int, payload: Any) -> bytes:
        try:
            newer = upgrade(stored, payload)
        except Exception as problem:
            raise InvalidPayload(
                "upgrade",
                f"of {self._task!r} from version {stored} failed: {type(problem).__name__}: {problem}",
            ) from problem
        if not isinstance(newer, dict):
            raise InvalidPayload("upgrade", f"of {self._task!r} must return the new payload, not {newer!r}")
        return encode_payload(newer, "upgrade")
