"""A shadow target: what a job would run. Its jobs are planned and recorded and call nothing, so that a new
schedule can be compared with the system that it will replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duetime.errors import InvalidInput
from duetime.model.codec import decode, encode
from duetime.model.command import CommandTarget
from duetime.model.publish import PublishTarget
from duetime.model.target import SECRETS, HttpTarget

SHADOW = "@shadow"


@dataclass(frozen=True, slots=True)
class ShadowTarget:
    target: Mapping[str, Any]  # as it is shown, without secrets: nothing is called

    @staticmethod
    def from_json(value: Mapping[str, Any], field: str = "target") -> ShadowTarget:
        """Reads the input of a caller. Every error names its field."""
        for name in value:
            if name not in ("type", "target"):
                raise InvalidInput(f"{field}.{name}", "is unknown: use type, target")
        return ShadowTarget(_shown(value.get("target"), f"{field}.target"))

    @staticmethod
    def from_spec(spec: bytes) -> ShadowTarget:
        return ShadowTarget.from_json(decode(spec))

    def to_json(self) -> dict[str, Any]:
        return {"type": "shadow", "target": dict(self.target)}

    def to_spec(self) -> bytes:
        return encode(self.to_json())


def _shown(value: Any, field: str) -> dict[str, Any]:
    match value:
        case {"type": "task", "name": str(name)} if len(value) == 2:
            return {"type": "task", "name": name}
        case {"type": "http"}:
            return _without_secrets(HttpTarget.from_json(value, field).to_json())
        case {"type": "command"}:
            return CommandTarget.from_json(value, field).to_json()
        case {"type": "publish"}:
            return PublishTarget.from_json(value, field).to_json()
    raise InvalidInput(field, "must be the target that would run: of type task, http, command or publish")


def _without_secrets(target: Mapping[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in target.items() if name not in SECRETS}
