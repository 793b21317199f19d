"""The target of a request: which kinds the service allows this caller, and their fields."""

from __future__ import annotations

from typing import Any

from duetime.api.auth import RequestContext, require_scope
from duetime.api.models.targets import whole
from duetime.api.problems import ApiProblem
from duetime.engine.submit.validate import check_name
from duetime.errors import InvalidInput
from duetime.invokers.http.lazy import seal_for
from duetime.model.api_key import Scope
from duetime.model.command import COMMAND, CommandTarget
from duetime.model.destination import check_destination
from duetime.model.publish import PublishTarget
from duetime.model.shadow import SHADOW, ShadowTarget
from duetime.model.target import SIGNING, HttpTarget


def read_target(
    context: RequestContext, value: dict[str, Any], before: bytes | None = None, *, checked: bool = True
) -> tuple[str, bytes | None]:
    """The name and the spec that a job stores; `before` is the spec that an edit replaces. `checked`: a URL
    that may not be called is refused here, and not when the job runs."""
    _refuse_null(value, "target")
    match value.get("type"):
        case "task":
            return _task(value), None
        case "http":
            target = _http(context, value, before)
            if checked:
                context.state.egress.check(target.url, "target.url")
            return target.name, target.to_spec()
        case "command":
            return COMMAND, _command(context, value)
        case "publish":
            return _publish(context, value)
        case "shadow":
            return SHADOW, _shadow(value)
        case _:
            raise InvalidInput("target.type", 'must be "task", "http", "command", "publish" or "shadow"')


def _command(context: RequestContext, value: dict[str, Any]) -> bytes:
    """Only for callers who may do everything: it runs any program as the user of a node."""
    if not context.state.settings.allow_commands:
        raise ApiProblem(403, "commands_not_allowed", _how_to_allow("commands", "commands"), "target.type")
    require_scope(context, Scope.ADMIN).require_operator("commands run as the user of the nodes")
    return CommandTarget.from_json(value, "target").to_spec()


def check_apprise(context: RequestContext) -> None:
    """Only for callers who may do everything: it connects to any address that the node reaches."""
    if not context.state.settings.allow_apprise:
        how = _how_to_allow("channels of type apprise", "apprise")
        raise ApiProblem(403, "apprise_not_allowed", how, "type")
    require_scope(context, Scope.ADMIN).require_operator("Apprise connects to any address of the network")


def _how_to_allow(what: str, setting: str) -> str:
    return f"{what} are not allowed here: start the service with --allow-{setting} yes"


def _publish(context: RequestContext, value: dict[str, Any]) -> tuple[str, bytes]:
    target = PublishTarget.from_json(value)
    check_destination(context.state.settings.destinations, target.destination, context.caller.tenant)
    return target.name, target.to_spec()


def _task(value: dict[str, Any]) -> str:
    for name in value:
        if name not in ("type", "name"):
            raise InvalidInput(f"target.{name}", "unknown field of a task: use type and name")
    if not isinstance(value.get("name"), str):
        raise InvalidInput("target.name", "is required: the name of the task")
    return str(value["name"])


def _http(context: RequestContext, value: dict[str, Any], before: bytes | None) -> HttpTarget:
    value = _whole_codes(value)
    return HttpTarget.received(value, before, lambda: seal_for(context.state.ring, context.caller.tenant))


def _shadow(value: dict[str, Any]) -> bytes:
    target = value.get("target")
    if isinstance(target, dict):
        _refuse_null(target, "target.target")
        if target.get("type") == "task":
            check_name(target.get("name"), "target.target.name")
        value = {**value, "target": _whole_codes(target)}
    return ShadowTarget.from_json(value).to_spec()


def _refuse_null(target: dict[str, Any], field: str) -> None:
    """Only a signing secret can be null: an edit removes it."""
    for name, member in target.items():
        if member is None and name != SIGNING:
            raise InvalidInput(f"{field}.{name}", "is null: set a value, or leave it out")


def _whole_codes(value: dict[str, Any]) -> dict[str, Any]:
    """JSON does not tell 204.0 from 204."""
    if not isinstance(value.get("success"), list):
        return value
    return {**value, "success": [whole(code) for code in value["success"]]}
