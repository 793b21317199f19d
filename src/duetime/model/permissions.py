"""What the operator of a node allows it to run, by setting, as the node publishes it. It tells which node can
run a job, and in what nodes differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from duetime.errors import InvalidInput
from duetime.model.target import HTTP, HttpTarget, key_ids, shown_name
from duetime.model.url import USUAL_PORTS, Egress, Url

Permissions = Mapping[str, tuple[str, ...]]


def missing_permission(own: Permissions, target: str, spec: bytes | None) -> str | None:
    """What a node would need in addition, as its operator writes it; None: as far as the job tells, nothing.
    Only a node that resolves a host name knows more."""
    if shown_name(target) != HTTP or spec is None:
        return None
    try:
        url = HttpTarget.from_spec(spec).url
    except InvalidInput:  # it was stored under older rules: the attempt says it
        return None
    ports = tuple(map(int, own.get("allow_ports", ())))
    egress = Egress.parse(own.get("allow", ()), ports, "plain_http" in own)
    if egress.refusal_as_written(url) is not None:
        return _option(egress, url)
    keys = sorted(key_ids(spec).difference(own.get("secret_keys", ())))
    return f"the secret key {keys[0]}" if keys else None


def _option(egress: Egress, url: Url) -> str:
    if url.scheme == "http" and not egress.plain_http:
        return "--plain-http yes"
    on_a_usual_port = Url("https", url.host, min(USUAL_PORTS), "/")
    if egress.refusal_as_written(on_a_usual_port) is None:
        return f"--allow-ports {url.port}"
    return f"--allow {url.host}"


def differences(nodes: Mapping[int, Mapping[str, Iterable[str]]]) -> dict[int, list[str]]:
    """By node, what others have and it lacks. Empty: all have the same."""
    each = {
        node: {f"{name} {value}" for name, values in own.items() for value in values}
        for node, own in nodes.items()
    }
    every = set().union(*each.values())
    return {node: sorted(every - own) for node, own in each.items() if every - own}
