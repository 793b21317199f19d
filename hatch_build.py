"""Build hooks: a wheel holds the built web UIs: an installation needs no node. Its description has
absolute links, because a package index shows it without the repository."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).parent))  # a build backend is not started from here
from tools.build_ui import NODE, PACKAGES, Interface


class WebInterface(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        return [] if Interface(Path(self.root)).is_current() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install takes what is there: tools/setup builds it beside."""
        if version != "editable":
            Interface(Path(self.root)).build()
        build_data.setdefault("artifacts", []).extend(f"src/{package}/_ui/**" for package in PACKAGES)


class Readme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        source = metadata["urls"]["Source"]
        text = Path(self.root, "README.md").read_text("utf-8")
        text = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\1{source}/raw/main/", text)
        text = re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\1{source}/blob/main/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
