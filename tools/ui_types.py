"""Writes the types of the web UIs from the OpenAPI documents of Duetime and Momentum. --check compares."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from duetime import App
from duetime.api.models import schedules
from duetime.api.service import build
from duetime.config import Settings
from momentum.api.service import build as build_momentum
from momentum.application import Momentum
from momentum.secret_box import new_key
from momentum.settings import Settings as MomentumSettings

SOURCES = Path(__file__).resolve().parent.parent / "ui" / "src"
FILE = SOURCES / "api" / "schema.ts"
MOMENTUM_FILE = SOURCES / "momentum" / "api" / "schema.ts"
NOTE = "// Written by tools/ui_types.py from the OpenAPI document. Change the API, then run `make ui`.\n"
PREFIX = "/api/v1"
SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
# The default values that the forms of the UI show. Fields whose default is "not given" are left out.
DEFAULTS = {
    "MissedIn": ("policy",),
    "NewScheduleIn": ("queue", "priority", "delivery", "overlap", "jitter"),
    "RetryIn": ("max_attempts", "first_delay", "multiplier", "max_delay", "backoff", "max_losses"),
}
# The fields whose possible values a form offers.
CHOICES = {"AlertChannelView": ("type",)}
Schema = dict[str, Any]


def document() -> Schema:
    made: Schema = build(App("memory://"), Settings()).openapi()
    return made


def momentum_document() -> Schema:
    async def read() -> Schema:
        with TemporaryDirectory() as folder:
            settings = MomentumSettings(
                database=f"sqlite:///{folder}/momentum.db",
                media=f"file://{folder}/media",
                secret_keys=(new_key(),),
            )
            async with Momentum.opened(settings, roles=("api",)) as momentum:
                made: Schema = build_momentum(momentum).openapi()
                return made

    return asyncio.run(read())


def text_of(openapi: Schema) -> str:
    return "\n".join([NOTE, *_components(openapi), *_defaults(), *_choices(openapi), *_routes(openapi)])


def momentum_text_of(openapi: Schema) -> str:
    return "\n".join([NOTE, *_components(openapi), *_routes(openapi)])


def _components(openapi: Schema) -> Iterator[str]:
    for name, schema in sorted(openapi["components"]["schemas"].items()):
        yield f"export type {name} = {type_of(schema)};\n"


def _defaults() -> Iterator[str]:
    yield "/** Default values of request fields, for forms. */"
    yield "export const DEFAULTS = {"
    for name, fields in DEFAULTS.items():
        known = getattr(schedules, name).model_fields
        values = ", ".join(f"{field}: {json.dumps(known[field].default)}" for field in fields)
        yield f"  {name}: {{ {values} }},"
    yield "} as const;\n"


def _choices(openapi: Schema) -> Iterator[str]:
    yield "/** Possible values of fields, for forms. */"
    yield "export const CHOICES = {"
    for name, fields in CHOICES.items():
        known = openapi["components"]["schemas"][name]["properties"]
        values = ", ".join(f"{field}: {json.dumps(known[field]['enum'])}" for field in fields)
        yield f"  {name}: {{ {values} }},"
    yield "} as const;\n"


def _routes(openapi: Schema) -> Iterator[str]:
    yield "/** Every route with its parameters, request body and successful response. */"
    yield "export interface Routes {"
    for path, operations in sorted(openapi["paths"].items()):
        if path.startswith(f"{PREFIX}/"):
            for method, operation in sorted(operations.items()):
                yield f"  '{method.upper()} {path.removeprefix(PREFIX)}': {_route(operation)};"
    yield "}\n"


def _route(operation: Schema) -> str:
    parts = {
        "path": _parameters(operation, "path"),
        "query": _parameters(operation, "query"),
        "body": _content(operation.get("requestBody", {})),
        "response": _response(operation["responses"]),
    }
    return "{ " + " ".join(f"{name}: {kind};" for name, kind in parts.items()) + " }"


def _parameters(operation: Schema, location: str) -> str:
    found = [one for one in operation.get("parameters", []) if one["in"] == location]
    members = [
        f"{_key(one['name'])}{'' if one.get('required') else '?'}: {type_of(one['schema'])}" for one in found
    ]
    return "{ " + "; ".join(members) + " }" if members else "unknown"


def _response(responses: Schema) -> str:
    kinds = [_content(response) for status, response in sorted(responses.items()) if status.startswith("2")]
    return " | ".join(dict.fromkeys(kinds)) or "unknown"


def _content(holder: Schema) -> str:
    schema = holder.get("content", {}).get("application/json", {}).get("schema")
    return "unknown" if schema is None else type_of(schema)


def type_of(schema: Schema) -> str:
    match schema:
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"const": value}:
            return json.dumps(value)
        case {"enum": list(values)}:
            return " | ".join(json.dumps(value) for value in values)
        case {"type": "object"}:
            return _object(schema)
        case {"type": "array"}:
            return f"Array<{type_of(schema.get('items', {}))}>"
        case {"type": str(kind)}:
            return SIMPLE[kind]
        case {"anyOf": list(choices)} | {"oneOf": list(choices)}:
            return " | ".join(dict.fromkeys(type_of(choice) for choice in choices))
    return "unknown"


def _object(schema: Schema) -> str:
    required = schema.get("required", [])
    properties = schema.get("properties", {}).items()
    members = [
        f"{_key(name)}{'' if name in required else '?'}: {type_of(member)}" for name, member in properties
    ]
    others = schema.get("additionalProperties", True)
    if others:
        members.append(f"[key: string]: {'unknown' if others is True or members else type_of(others)}")
    return "{ " + "; ".join(members) + " }" if members else "Record<string, never>"


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def main(arguments: list[str]) -> int:
    wanted = {FILE: text_of(document()), MOMENTUM_FILE: momentum_text_of(momentum_document())}
    stale = [file for file, text in wanted.items() if not file.exists() or file.read_text() != text]
    if arguments != ["--check"]:
        for file in stale:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted[file])
        return 0
    for file in stale:
        name = file.relative_to(SOURCES.parent.parent)
        sys.stderr.write(
            f"{name} does not match the API: run `make ui` and fix the type errors that follow\n"
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
