"""Writes deploy/kubernetes/duetime.yaml, for those who do not use Helm: the chart, rendered by Helm with its
smallest values.

--check only compares.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import helm_python as helm
import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "deploy" / "helm" / "duetime"
VALUES = ROOT / "deploy" / "helm" / "values"
FILE = ROOT / "deploy" / "kubernetes" / "duetime.yaml"
HEAD = """\
# Written by tools/manifests.py from deploy/helm/duetime. Change the chart, then run `make manifests`.
# Before it: kubectl create namespace duetime
#            kubectl -n duetime create secret generic duetime --from-file=duetime.toml
# Then:      kubectl apply -n duetime -f deploy/kubernetes/duetime.yaml
# Tried: checked by the schemas of Kubernetes 1.30 and 1.37. Not tried: applied to a cluster.
"""


def render(values: Mapping[str, Any], name: str = "duetime", namespace: str = "duetime") -> dict[str, str]:
    """The manifests by the name of their template, without the notes."""
    with helm.Chart.load(str(CHART)) as chart:
        chart.validate_schema(dict(values))
        texts = chart.render(dict(values), name=name, namespace=namespace)
    return {path: text for path, text in texts.items() if path.endswith(".yaml")}


def manifests() -> str:
    values = yaml.safe_load((VALUES / "minimal.yaml").read_text("utf-8"))
    texts = [text.strip().removeprefix("---").strip() for text in render(values).values()]
    return HEAD + "".join(f"---\n{text}\n" for text in texts if text)


def main(words: list[str]) -> int:
    if words != ["--check"]:
        FILE.write_text(manifests(), "utf-8")
    elif FILE.read_text("utf-8") != manifests():
        sys.stderr.write("deploy/kubernetes/duetime.yaml is out of date: run `make manifests`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
