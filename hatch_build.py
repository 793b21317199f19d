"""Build hooks: a wheel holds the built web UI, so that an installation needs no node; and its description has
absolute links, because a package index shows it without the repository."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

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


class Readme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        source = metadata["urls"]["Source"]
        text = Path(self.root, "README.md").read_text("utf-8")
        text = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\1{source}/raw/main/", text)
        text = re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\1{source}/blob/main/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
