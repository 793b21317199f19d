"""The Terraform module: parsed, complete, and its values accepted by the chart. It is not applied."""

from __future__ import annotations

import re
from typing import Any

import hcl2
import pytest

from tests.deploy.stack import DEPLOY
from tools.manifests import render

FILES = sorted((DEPLOY / "terraform").glob("*.tf"))
TEXT = "\n".join(file.read_text("utf-8") for file in FILES)


@pytest.fixture(scope="module")
def parsed() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for file in FILES:
        for kind, blocks in hcl2.loads(file.read_text("utf-8")).items():
            found.setdefault(kind, []).extend(blocks)
    return found


def _names(blocks: list[Any]) -> set[str]:
    return {name.strip('"') for block in blocks for name in block}


def test_every_variable_is_declared_described_and_used(parsed: dict[str, list[Any]]) -> None:
    declared = _names(parsed["variable"])
    assert set(re.findall(r"\bvar\.(\w+)", TEXT)) == declared
    for block in parsed["variable"]:
        for body in block.values():
            assert body["description"]
            assert body["type"]


def test_only_the_secret_has_no_default(parsed: dict[str, list[Any]]) -> None:
    needed = {
        name.strip('"')
        for block in parsed["variable"]
        for name, body in block.items()
        if "default" not in body
    }
    assert needed == {"existing_secret"}


def test_module_is_one_release_of_the_chart(parsed: dict[str, list[Any]]) -> None:
    (resource,) = parsed["resource"]
    ((kind, named),) = resource.items()
    assert kind.strip('"') == "helm_release"
    (body,) = named.values()
    assert "/../helm/duetime" in body["chart"]
    assert (DEPLOY / "terraform" / "../helm/duetime/Chart.yaml").exists()


def test_chart_accepts_the_values_of_the_module() -> None:
    """The names on the left of each `=` in the lists of values, with the defaults of the module."""
    names = set(re.findall(r"yamlencode\(\{ (\w+) =", TEXT))
    assert names == {"existingSecret", "api", "workers", "config"}
    values = {
        "existingSecret": "duetime",
        "api": {"replicas": 2},
        "planner": {"replicas": 2},
        "workers": {"default": {}},
        "config": {},
    }
    assert render(values)


def test_no_secret_can_reach_the_state() -> None:
    assert not re.search(r"password|secret_keys\s*=|kubernetes_secret", TEXT)
