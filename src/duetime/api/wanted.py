"""From the models of a request to what the app takes. Values that the schema cannot check are checked here, by the domain."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from duetime.api.edge import Edge
from duetime.api.models.fields import whole
from duetime.api.models.jobs import BatchJobIn, RetryIn
from duetime.api.models.schedules import MissedIn
from duetime.app.operations import HTTP_TARGET, NewTarget
from duetime.engine.drafts import NewJob
from duetime.errors import InvalidInput
from duetime.model.retry import Retry
from duetime.model.schedule import Missed
from duetime.model.target import SECRETS, SIGNING, HttpTarget

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
JOB_FIELDS = ("delay", "priority", "queue", "unique_key", "on_conflict", "timeout", "delivery", "owner", "labels")


def new_job(edge: Edge, tenant: str, body: BatchJobIn) -> NewTarget:
    given = body.model_fields_set
    options: dict[str, Any] = {name: getattr(body, name) for name in JOB_FIELDS if name in given}
    if "at" in given:
        options["at"] = instant(body.at, "at")
    if "retry" in given:
        options["retry"] = retry(body.retry)
    name, spec = read_target(edge, tenant, body.target)
    return NewTarget(NewJob(name, body.payload, **options), spec, "payload" in given and body.payload is None)


def read_target(edge: Edge, tenant: str, value: dict[str, Any], before: bytes | None = None) -> tuple[str, bytes | None]:
    """The name a job has for it, and what is stored beside; `before` is what an edit replaces."""
    match value.get("type"):
        case "task":
            return _task(value), None
        case "http":
            return HTTP_TARGET, _http(edge, tenant, value, before)
        case _:
            raise InvalidInput("target.type", 'must be "task" or "http"')


def _task(value: dict[str, Any]) -> str:
    for name in value:
        if name not in ("type", "name"):
            raise InvalidInput(f"target.{name}", "no such field beside a task: known are type, name")
    if not isinstance(value.get("name"), str):
        raise InvalidInput("target.name", "is required: name the task")
    return str(value["name"])


def _http(edge: Edge, tenant: str, value: dict[str, Any], before: bytes | None) -> bytes:
    for name, member in value.items():
        if member is None and name != SIGNING:
            raise InvalidInput(f"target.{name}", "is null: give a value, or leave it out")
    if isinstance(value.get("success"), list):
        value = {**value, "success": [whole(code) for code in value["success"]]}
    wanted = HttpTarget.from_json(value, "target")
    if before is not None:
        left_out = [name for name in SECRETS if name not in value]
        wanted = wanted.keeping_secrets_of(HttpTarget.from_spec(before), left_out=left_out)
    if wanted.hidden and edge.seal is not None:
        wanted = wanted.sealed(edge.seal(tenant))
    return wanted.to_spec()


def instant(value: str, field: str) -> datetime:
    """An instant as RFC 3339 writes it; what Python reads beyond that (a week's number, a bare date) is refused."""
    try:
        if not _INSTANT.fullmatch(value):
            raise ValueError(value)
        return datetime.fromisoformat(value.upper())
    except ValueError:
        raise InvalidInput(field, f"{value[:64]!r} is no instant: write it like 2030-01-01T09:00:00Z") from None


def retry(value: RetryIn) -> Retry:
    jitter = value.jitter if "jitter" in value.model_fields_set else None
    return Retry(value.max_attempts, value.first_delay, float(value.multiplier), value.max_delay, jitter=jitter)


def missed(value: MissedIn) -> Missed:
    given = value.model_fields_set
    return Missed(value.policy, value.within if "within" in given else None, value.max if "max" in given else None)
