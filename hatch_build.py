"""The wheel's build hook: a wheel holds the built web UI, so that an installation needs no node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))  # a build backend is not started from here
from tools.build_ui import NODE, Interface


class WebInterface(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        return [] if Interface(Path(self.root)).is_current() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install takes what is there: tools/setup builds it beside."""
        if version != "editable":
            Interface(Path(self.root)).build()
        build_data.setdefault("artifacts", []).append("src/duetime/_ui/**")
