"""The Helm chart, rendered by Helm's own engine: accepted by two versions of Kubernetes, and safe to run."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import helm_python as helm
import kubernetes_validate
import kubernetes_validate.utils
import pytest
import yaml

from tools.manifests import CHART, FILE, ROOT, VALUES, manifests, render

SETS = sorted(path.stem for path in VALUES.glob("*.yaml"))
VERSIONS = ("1.30", "1.37")
# Of operators, so Kubernetes does not know them.
FOREIGN = {"ScaledObject", "ServiceMonitor", "PrometheusRule"}
Object = dict[str, Any]


def values(name: str) -> Object:
    found: Object = yaml.safe_load((VALUES / f"{name}.yaml").read_text("utf-8"))
    return found


@functools.cache
def rendered(name: str) -> str:
    texts = render(values(name)).values()
    loaded = [list(yaml.load_all(text, yaml.CSafeLoader)) for text in texts]
    return json.dumps([one for some in loaded for one in some if one])


def objects(name: str) -> list[Object]:
    found: list[Object] = json.loads(rendered(name))
    return found


@pytest.fixture(scope="module", autouse=True)
def _schemas_are_read_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        read = functools.cache(kubernetes_validate.utils.schema_contents)
        patch.setattr(kubernetes_validate.utils, "schema_contents", read)
        yield


def pods(name: str) -> Iterator[tuple[str, Object]]:
    for one in objects(name):
        if one["kind"] == "Deployment":
            yield one["metadata"]["name"], one["spec"]["template"]


def containers(name: str) -> Iterator[Object]:
    for _, pod in pods(name):
        yield from (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])


def test_there_are_ten_sets_of_values() -> None:
    assert len(SETS) >= 10


@pytest.mark.parametrize("name", SETS)
def test_lint_finds_nothing(name: str) -> None:
    report = helm.lint(str(CHART), values(name), strict=True)
    assert report["errors"] == []
    assert [line for line in report["messages"] if line["error"] != "icon is recommended"] == []


@pytest.mark.parametrize(("name", "version"), list(product(SETS, VERSIONS)))
def test_kubernetes_accepts_every_object(name: str, version: str) -> None:
    known = [one for one in objects(name) if one["kind"] not in FOREIGN]
    assert known
    for one in known:
        kubernetes_validate.validate(one, version, strict=True)


def test_strict_check_finds_a_misspelt_field() -> None:
    """Otherwise the test above could not fail."""
    service = next(one for one in objects("minimal") if one["kind"] == "Service")
    service["spec"]["selctor"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service, VERSIONS[0], strict=True)


@pytest.mark.parametrize("name", SETS)
def test_names_are_unique_and_short(name: str) -> None:
    keys = [(one["kind"], one["metadata"]["name"]) for one in objects(name)]
    assert len(keys) == len(set(keys))
    assert all(len(key) <= 63 for _, key in keys)


@pytest.mark.parametrize("name", SETS)
def test_there_is_no_hook_and_no_job(name: str) -> None:
    """`helm install --wait`, Argo CD and Flux wait for a hook that waits for them."""
    for one in objects(name):
        assert "helm.sh/hook" not in json.dumps(one)
        assert one["kind"] != "Job"


@pytest.mark.parametrize("name", SETS)
def test_containers_have_no_privileges(name: str) -> None:
    for _, pod in pods(name):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["runAsUser"] == 65532
        assert pod["spec"]["automountServiceAccountToken"] is False
    for container in containers(name):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("name", SETS)
def test_liveness_does_not_ask_the_store(name: str) -> None:
    for _, pod in pods(name):
        (container,) = pod["spec"]["containers"]
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["startupProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize("name", SETS)
def test_pods_outlive_the_grace_time(name: str) -> None:
    for _, pod in pods(name):
        (container,) = pod["spec"]["containers"]
        env = {one["name"]: one.get("value") for one in container["env"]}
        grace = int(env["DUETIME_GRACE"].removesuffix("s"))
        words = container["args"]
        assert ("--stop-delay" in words) == ("api" in words[words.index("--roles") + 1])
        drain = (
            int(words[words.index("--stop-delay") + 1].removesuffix("s")) if "--stop-delay" in words else 0
        )
        assert pod["spec"]["terminationGracePeriodSeconds"] >= grace + drain + 10


@pytest.mark.parametrize("name", SETS)
def test_no_secret_is_text_in_the_environment(name: str) -> None:
    for container in containers(name):
        for one in container["env"]:
            if one["name"] in (
                "DUETIME_STORE",
                "DUETIME_QUEUE",
                "DUETIME_SECRET_KEYS",
                "DUETIME_DESTINATIONS",
            ):
                assert "value" not in one
            assert "://" not in one.get("value", "") or one["name"] == "DUETIME_PUBLIC_URL"


@pytest.mark.parametrize("name", SETS)
def test_environment_is_not_mixed_with_that_of_services(name: str) -> None:
    """A Service named duetime defines DUETIME_PORT=tcp://..."""
    assert all(pod["spec"]["enableServiceLinks"] is False for _, pod in pods(name))


@pytest.mark.parametrize("name", SETS)
def test_selectors_find_exactly_their_pods(name: str) -> None:
    labels = {deployment: pod["metadata"]["labels"] for deployment, pod in pods(name)}
    for one in objects(name):
        selector = one["spec"].get("selector") if "spec" in one else None
        if one["kind"] in ("Deployment", "PodDisruptionBudget", "Service") and selector:
            wanted = selector.get("matchLabels", selector)
            found = [key for key, has in labels.items() if wanted.items() <= has.items()]
            own = one["metadata"]["name"]
            assert found == (list(labels) if own.endswith("-metrics") else [own]), one["kind"]


def test_deployments_have_their_roles() -> None:
    found = {
        name: container["args"] for name, pod in pods("broker") for container in pod["spec"]["containers"]
    }
    serve = ["serve", "--roles"]
    assert found == {
        "duetime-api": [*serve, "api", "--port", "8080", "--stop-delay", "5s"],
        "duetime-planner": [*serve, "planner,dispatcher", "--port", "8080"],
        "duetime-worker-default": [*serve, "worker", "--port", "8080", "--concurrency", "100"],
    }


def test_pools_have_their_own_tasks_queues_and_image() -> None:
    found = dict(pods("pools"))
    assert set(found) == {"duetime-api", "duetime-planner", "duetime-worker-default", "duetime-worker-mail"}
    (mail,) = found["duetime-worker-mail"]["spec"]["containers"]
    assert mail["args"][-6:] == [
        "--concurrency",
        "20",
        "--app",
        "shop.tasks:app",
        "--queues",
        "mail,newsletter",
    ]
    assert mail["image"] == "registry.example.org/shop:42"
    assert found["duetime-api"]["spec"]["containers"][0]["image"].startswith("ghcr.io/duetime/duetime:")


def test_only_the_migration_sees_the_secret_of_the_owner() -> None:
    for _, pod in pods("owner-role"):
        (migrate,), (node,) = pod["spec"]["initContainers"], pod["spec"]["containers"]
        assert "owner" in [mount["name"] for mount in migrate["volumeMounts"]]
        assert "owner" not in [mount["name"] for mount in node["volumeMounts"]]


@pytest.mark.parametrize("name", ["keda", "hpa"])
def test_scaled_deployments_do_not_set_replicas(name: str) -> None:
    """An upgrade would otherwise reset what the autoscaler decided."""
    workers = [
        one for one in objects(name) if one["kind"] == "Deployment" and "worker" in one["metadata"]["name"]
    ]
    assert workers
    assert all("replicas" not in one["spec"] for one in workers)


def test_autoscaling_counts_due_and_running_jobs_for_each_slot() -> None:
    found = {one["metadata"]["name"]: one["spec"] for one in objects("keda") if one["kind"] == "ScaledObject"}
    query = 'sum(max by (queue, state) (duetime_jobs{namespace="duetime",state=~"due|running"%s}))'
    triggers = {name: spec["triggers"][0]["metadata"] for name, spec in found.items()}
    assert {name: (one["query"], one["threshold"]) for name, one in triggers.items()} == {
        "duetime-worker-default": (query % "", "80"),
        "duetime-worker-mail": (query % ',queue=~"mail|newsletter"', "10"),
    }
    (scaler,) = (one["spec"] for one in objects("hpa") if one["kind"] == "HorizontalPodAutoscaler")
    (metric,) = scaler["metrics"]
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "80"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "existingSecret: is missing"),
        (
            {"existingSecret": "x", "config": {"store": "postgresql://u:p@h/d"}},
            "config.store: may hold a password",
        ),
        ({"existingSecret": "x", "config": {"grace": "5m"}}, "config.grace: is set by the chart"),
        (
            {"existingSecret": "x", "metrics": {"serviceMonitor": {"enabled": True}}},
            "metrics needs an API key",
        ),
        ({"existingSecret": "x", "replicas": 3}, "additional properties 'replicas' not allowed"),
        ({"existingSecret": "x", "api": {"replicas": "3"}}, "api/replicas"),
        ({"existingSecret": "x", "workers": {"Mail": {}}}, "Mail"),
        ({"existingSecret": "x", "workers": {"mail": {"concurency": 3}}}, "concurency"),
    ],
)
def test_wrong_values_are_refused(wrong: Object, message: str) -> None:
    with pytest.raises(helm.HelmError, match=re.escape(message)):
        render(wrong)


def test_rules_are_those_for_prometheus_and_the_users() -> None:
    [rules] = [one for one in objects("everything") if one["kind"] == "PrometheusRule"]
    shipped = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yml").read_text("utf-8"))["groups"]
    assert rules["spec"]["groups"][:-1] == shipped
    assert rules["spec"]["groups"][-1]["name"] == "own"


def test_settings_of_the_chart_exist() -> None:
    from duetime.config import TABLE

    used = {one["name"] for name in SETS for container in containers(name) for one in container["env"]}
    known = {f"DUETIME_{name.upper()}" for name in TABLE} | {"DUETIME_CONFIG", "TZ"}
    assert used <= known


def test_version_is_that_of_the_package() -> None:
    from duetime.version import VERSION

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["appVersion"] == VERSION


def test_plain_manifests_are_the_rendered_chart() -> None:
    assert FILE.read_text("utf-8") == manifests(), "run `make manifests`"
