"""The JSON Schema of files of schedules, from the model of `POST /schedules`: an entry has the same fields,
and a few shorter forms."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from duetime.api.models.schedules import NewScheduleIn
from duetime.api.models.targets import COMMAND_TARGET, HTTP_TARGET, PUBLISH_TARGET, TASK_TARGET, WHEN
from duetime.cli.documents.entry import FIELDS
from duetime.cli.documents.writing import SCHEMA

Schema = dict[str, Any]
_REFERENCE: Schema = {
    "description": "Where the secret is: an environment variable or a file, read when the file is applied.",
    "oneOf": [
        {"type": "object", "required": [name], "additionalProperties": False, "properties": {name: text}}
        for name, text in (
            ("env", {"type": "string", "description": "The name of an environment variable."}),
            ("file", {"type": "string", "description": "The path of a file."}),
        )
    ],
}
# Policies that a store takes and a service does not.
_MORE_RETRY: Schema = {
    "backoff": {"enum": ["exponential", "linear"]},
    "delays": {"type": "array", "items": {"type": "string"}},
    "max_age": {"type": "string"},
    "max_losses": {"type": "integer"},
}


def schema() -> Schema:
    made = NewScheduleIn.model_json_schema()
    definitions = _without_defaults(made["$defs"])
    definitions["RetryIn"]["properties"] |= _MORE_RETRY
    fields = _without_defaults(made["properties"])
    fields["target"] = _target()
    fields["when"] = _when()
    fields["missed"] = {"anyOf": [{"enum": ["latest", "all", "skip"]}, {"$ref": "#/$defs/MissedIn"}]}
    fields["payload"] = {"description": "Any JSON; for a task, its arguments by name."}
    fields["paused"]["description"] = "Left out: as it is; a new schedule is active."
    fields["shadow"] = {"type": "boolean", "description": "Plan and record its fires, and call nothing."}
    definitions["Schedule"] = {
        "type": "object",
        "required": ["name", "when", "target"],
        "additionalProperties": False,
        "properties": {name: fields[name] for name in FIELDS},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        "title": "Schedules of Duetime",
        "type": "object",
        "required": ["schedules"],
        "additionalProperties": False,
        "properties": {
            "managed_by": {
                "type": "string",
                "description": "The name of these files. `--prune` removes only schedules of this name.",
            },
            "schedules": {"type": "array", "items": {"$ref": "#/$defs/Schedule"}},
        },
        "$defs": definitions,
    }


def schema_text() -> str:
    return json.dumps(schema(), indent=2) + "\n"


def _target() -> Schema:
    http = deepcopy(HTTP_TARGET)
    http["required"] = ["url"]
    http["properties"]["secret_headers"] = {"type": "object", "additionalProperties": _REFERENCE}
    http["properties"]["signing_secret"] = _REFERENCE
    short = {"type": "string", "minLength": 1, "description": "The name of a task, or a URL to call."}
    return {
        "description": "What its jobs run.",
        "oneOf": [short, TASK_TARGET, http, COMMAND_TARGET, PUBLISH_TARGET],
    }


def _when() -> Schema:
    when = deepcopy(WHEN)
    when["oneOf"][0]["properties"]["key"] = {
        "type": "string",
        "description": "Decides where H falls. Default: the name of the schedule.",
    }
    return when


def _without_defaults(schemas: Schema) -> Schema:
    """The defaults of the models stand for fields that are not given: an editor would insert them."""
    made = deepcopy(schemas)
    for one in made.values():
        one.pop("default", None)
        one.pop("title", None)
        if "properties" in one:
            one["properties"] = _without_defaults(one["properties"])
    return made
