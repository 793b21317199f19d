"""The OpenAPI document: FastAPI's, with problem+json where FastAPI would promise errors of its own."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from duetime.api.problems import Problem

UNWANTED = ("HTTPValidationError", "ValidationError")
BEARER = {"type": "http", "scheme": "bearer", "description": "An API key, as `duetime key create` shows it: dt_..."}
REFERENCE = "#/components/schemas/{model}"


async def described(service: FastAPI) -> dict[str, Any]:
    """Beside the loop: it takes half a second the first time, in which jobs of this process start."""
    known = service.openapi_schema
    return await to_thread(document, service) if known is None else known


def document(service: FastAPI) -> dict[str, Any]:
    if service.openapi_schema is None:
        made = get_openapi(
            title="Duetime",
            version=service.version,
            summary="Every task, in due time.",
            description="Jobs and schedules. Errors are problem+json with a stable code.",
            routes=service.routes,
        )
        schemas = made["components"]["schemas"]
        schemas.update(_problem_schemas())
        for name in UNWANTED:
            schemas.pop(name, None)
        _without_absent_defaults(schemas)
        if not service.state.edge.gate.local:
            _ask_for_keys(made)
        service.openapi_schema = made
    return service.openapi_schema


def _ask_for_keys(made: dict[str, Any]) -> None:
    """Of every operation that can answer 401."""
    made["components"]["securitySchemes"] = {"key": BEARER}
    for operations in made["paths"].values():
        for operation in operations.values():
            if "401" in operation["responses"]:
                operation["security"] = [{"key": []}]


def _without_absent_defaults(schema: Any) -> None:
    """A text that may be left out is empty inside; nobody may write it so."""
    if isinstance(schema, dict):
        if schema.get("default") == "":
            del schema["default"]
        for member in schema.values():
            _without_absent_defaults(member)
    elif isinstance(schema, list):
        for member in schema:
            _without_absent_defaults(member)


def _problem_schemas() -> dict[str, Any]:
    problem = Problem.model_json_schema(ref_template=REFERENCE)
    return {**problem.pop("$defs"), "Problem": problem}
