"""The OpenAPI document: made by FastAPI, with problem+json for errors and strict schemas for responses."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import HTMLResponse
from starlette.routing import BaseRoute

from duetime.api.problems import Problem
from duetime.api.routing import documenting

UNUSED = ("HTTPValidationError", "ValidationError")
BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, as `duetime key create` printed it: dt_...",
}
EXAMPLES = {"date-time": "2030-01-01T09:00:00Z", "uuid": "01935c2e-7b3a-7000-8000-000000000000"}
REFERENCE = "#/components/schemas/{model}"
SHARED = (
    "TaskTargetIn", "HttpTargetIn", "CommandTarget", "PublishTarget", "TargetIn",
    "CronIn", "EveryIn", "AtIn", "RRuleIn", "WhenIn",
)  # fmt: skip


class DocumentedService(FastAPI):
    def document_routes(self) -> list[BaseRoute]:
        """Its routes, made again: those that answer have no models of their responses."""
        raise NotImplementedError


async def described(service: DocumentedService) -> dict[str, Any]:
    """In a thread: the first time takes half a second."""
    known = service.openapi_schema
    return await to_thread(document, service) if known is None else known


def document(service: DocumentedService) -> dict[str, Any]:
    if service.openapi_schema is None:
        with documenting():
            made = get_openapi(
                title="Duetime",
                version=service.version,
                summary="Every task, in due time.",
                description="Jobs and schedules. Errors are problem+json with a stable code.",
                routes=service.document_routes(),
            )
        schemas = made["components"]["schemas"]
        schemas.update(_problem_schemas())
        for name in UNUSED:
            schemas.pop(name, None)
        _name_shared_schemas(made)
        _complete_answers(made)
        _without_defaults(schemas)
        made["components"]["securitySchemes"] = {"key": BEARER}
        if not service.state.service.authenticator.local:
            _require_keys(made)
        service.openapi_schema = made
    return service.openapi_schema


def _name_shared_schemas(made: dict[str, Any]) -> None:
    """Generated clients need one type for targets and `when`, not one for each place, and a name of its own
    for each kind of page."""
    schemas = made["components"]["schemas"]
    for name, schema in schemas.items():
        if name.startswith("Page_"):
            schema["title"] = f"{name.removeprefix('Page_').removesuffix('_')}Page"
    for part in list(schemas.values()):
        _extract(part, schemas)


def _extract(schema: Any, schemas: dict[str, Any]) -> None:
    members = schema.items() if isinstance(schema, dict) else enumerate(schema)
    for key, member in list(members):
        if not isinstance(member, dict | list):
            continue
        _extract(member, schemas)
        if isinstance(member, dict) and (name := member.get("title")) in SHARED:
            schemas[name] = member
            schema[key] = {"$ref": REFERENCE.format(model=name)}


def _complete_answers(made: dict[str, Any]) -> None:
    """Answers contain all fields of their views and no others, also fields that have a default for
    clients."""
    schemas = made["components"]["schemas"]
    waiting = [
        response
        for operations in made["paths"].values()
        for operation in operations.values()
        for status, response in operation["responses"].items()
        if status.startswith("2")
    ]
    seen: set[str] = set()
    while waiting:
        for name in _references(waiting.pop()) - seen:
            seen.add(name)
            waiting.append(schemas[name])
            _complete(schemas[name])


def _references(schema: Any) -> set[str]:
    """The names of the schemas that a schema refers to."""
    if isinstance(schema, list):
        return {name for member in schema for name in _references(member)}
    if not isinstance(schema, dict):
        return set()
    if "$ref" in schema:
        return {schema["$ref"].rpartition("/")[2]}
    return {name for member in schema.values() for name in _references(member)}


def _complete(schema: dict[str, Any]) -> None:
    if schema.get("type") != "object":
        return
    schema["required"] = list(schema["properties"])
    schema["additionalProperties"] = False
    for member in schema["properties"].values():
        for choice in member.get("anyOf", [member]):
            if example := EXAMPLES.get(choice.get("format")):
                member.setdefault("examples", [example])


def _require_keys(made: dict[str, Any]) -> None:
    """For every operation that can answer 401."""
    for operations in made["paths"].values():
        for operation in operations.values():
            if "401" in operation["responses"]:
                operation["security"] = [{"key": []}]


def _without_defaults(schemas: dict[str, Any]) -> None:
    """A generated client sends the defaults of a request, and so replaces what the task declares or what an
    edit does not mention."""
    for schema in schemas.values():
        for member in schema.get("properties", {}).values():
            member.pop("default", None)


def _problem_schemas() -> dict[str, Any]:
    problem = Problem.model_json_schema(ref_template=REFERENCE)
    return {**problem.pop("$defs"), "Problem": problem}


# /docs: the routes on one page without scripts or external files.


STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{background:#8882;padding:.1rem .3rem;border-radius:3px}h2{margin-top:2rem}"
    "details{border-bottom:1px solid #8884;padding:.3rem "
    "0}summary{cursor:pointer}b{display:inline-block;width:4.5rem}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def page(document: dict[str, Any]) -> HTMLResponse:
    parts = "".join(_sections(document))
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    text = (
        f"<!doctype html><html lang=en><meta "
        f"charset=utf-8><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(document['info']['description'])} For programs: <a "
        f"href=/openapi.json>openapi.json</a>.</p>{parts}</html>"
    )
    return HTMLResponse(text, headers={"Content-Security-Policy": POLICY})


def _sections(document: dict[str, Any]) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(
                _operation(path, method, operation)
            )
    for tag, entries in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>{''.join(entries)}"


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{escape(one['name'])}</code> {escape(_about(one))}"
        for one in operation.get("parameters", [])
    )
    body = _reference(
        operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    )
    takes = f"<p>Takes <code>{escape(body)}</code>.</p>" if body else ""
    statuses = ", ".join(sorted(operation["responses"]))
    head = f"<b>{method.upper()}</b> <code>{escape(path)}</code> {escape(operation.get('summary', ''))}"
    return (
        f"<details><summary>{head}</summary><ul>{parameters}</ul>{takes}<p>Answers "
        f"{escape(statuses)}.</p></details>"
    )


def _about(parameter: dict[str, Any]) -> str:
    text = parameter.get("description") or parameter.get("schema", {}).get("description") or ""
    return f"({parameter['in']}) {text}"


def _reference(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
