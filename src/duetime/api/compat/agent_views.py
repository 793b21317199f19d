"""Schemas of agent schedules and their executions: camelCase, delays in milliseconds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from duetime.api.bodies import parse
from duetime.api.models.jobs import RetryIn
from duetime.api.models.schedules import MissedIn, MissedName, NewScheduleIn, SchedulePatchIn
from duetime.api.models.targets import (
    HTTP_TARGET,
    WHOLE,
    Input,
    Json,
    OutId,
    OutInstant,
    OutJson,
    Output,
    text_schema,
)
from duetime.api.problems import ApiProblem
from duetime.engine.submit.validate import check_name
from duetime.errors import Conflict, InvalidInput
from duetime.model import duration
from duetime.model.instant import Micros
from duetime.model.job import Job, State
from duetime.model.retry import MAX_ATTEMPTS, Retry
from duetime.model.schedule import Schedule, iso
from duetime.model.schedule import target as target_json
from duetime.model.views.fields import decoded
from duetime.model.when import Cron, Every, to_json

MAX_AGENT_ID = MAX_TITLE = 255
MAX_DELAY = 30 * 86_400_000
_TARGET = HTTP_TARGET["properties"]
_AGENT_ID = {"type": "string", "format": "duetime-header-value", "minLength": 1, "maxLength": MAX_AGENT_ID}

CronExpression = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "format": "duetime-cron",
            "minLength": 1,
            "description": "In UTC.",
            "examples": ["0 9 * * *"],
        }
    ),
]
AgentId = Annotated[
    str,
    WithJsonSchema(
        {
            **_AGENT_ID,
            "description": "Sent to the agent in the header X-Agent-Id.",
            "examples": ["report-agent-001"],
        }
    ),
]
Title = Annotated[str, text_schema("Not unique.", "duetime-name", "Daily Report Agent", MAX_TITLE)]
Missed = Annotated[MissedName, Field(description="What to do with fires that were not planned in time.")]
AgentUrl = Annotated[str, WithJsonSchema(_TARGET["url"])]
HttpMethod = Annotated[str, WithJsonSchema(_TARGET["method"])]
Headers = Annotated[dict[str, str], WithJsonSchema(_TARGET["headers"])]
Delay = Annotated[int, Field(ge=0, json_schema_extra={"maximum": MAX_DELAY}), WHOLE]
ReadOnly = Annotated[str, Field(description="As the answer showed it; it does not change.")]
CAMEL = ConfigDict(alias_generator=to_camel)
_EXAMPLE: dict[str, Any] = {
    "name": "Daily Report Agent",
    "cronExpression": "0 9 * * *",
    "agentId": "report-agent-001",
    "agentUrl": "https://example.com/api/agent",
    "httpMethod": "POST",
    "headers": {"X-Team": "billing"},
    "payload": {"reportType": "daily"},
    "retryPolicy": {"maxAttempts": 3, "backoffMultiplier": 2, "initialDelayMs": 1_000, "maxDelayMs": 30_000},
    "enabled": True,
}


class RetryPolicyIn(Input):
    """A field that is left out keeps its value, or has the default of the service."""

    model_config = CAMEL | ConfigDict(title="AgentRetryPolicy")
    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS), WHOLE] = 3
    backoff_multiplier: Annotated[float, Field(ge=1, le=100)] = 2.0
    initial_delay_ms: Delay = 1_000
    max_delay_ms: Delay = 30_000


class AgentScheduleFields(Input):
    model_config = CAMEL
    name: Title = ""
    cron_expression: CronExpression = ""
    agent_id: AgentId = ""
    agent_url: AgentUrl = ""
    http_method: HttpMethod = "POST"
    headers: Headers = Field(default_factory=dict)
    payload: Json = None
    retry_policy: RetryPolicyIn = Field(default_factory=RetryPolicyIn)
    enabled: bool = True
    missed: Missed = "latest"


class AgentSchedulePatchIn(AgentScheduleFields):
    """Only the given fields change. An answer may be sent back whole, with its read-only fields."""

    model_config = CAMEL | ConfigDict(
        title="AgentSchedulePatch", json_schema_extra={"examples": [{"enabled": False}]}
    )
    id: ReadOnly = ""
    created_at: ReadOnly = ""
    updated_at: ReadOnly = ""


class AgentScheduleIn(AgentScheduleFields):
    """A schedule that calls an agent."""

    model_config = CAMEL | ConfigDict(title="NewAgentSchedule", json_schema_extra={"examples": [_EXAMPLE]})
    name: Title
    cron_expression: CronExpression
    agent_id: AgentId
    agent_url: AgentUrl


class RetryPolicyOut(Output):
    model_config = CAMEL | ConfigDict(title="AgentRetryPolicyShown")
    max_attempts: int
    backoff_multiplier: float
    initial_delay_ms: int
    max_delay_ms: int


class AgentScheduleOut(Output):
    model_config = CAMEL | ConfigDict(title="AgentSchedule")
    id: OutId
    name: str
    cron_expression: str
    agent_id: str
    agent_url: str
    http_method: str
    headers: dict[str, str]
    payload: OutJson
    retry_policy: RetryPolicyOut
    enabled: bool
    missed: MissedName
    created_at: OutInstant
    updated_at: OutInstant


class ExecutionOut(Output):
    """One fire: its attempts and its result."""

    model_config = CAMEL | ConfigDict(title="AgentExecution")
    id: OutId
    schedule_id: OutId
    fire_time: OutInstant
    status: Literal["PENDING", "RUNNING", "RETRYING", "SUCCESS", "FAILED", "CANCELLED", "SKIPPED"]
    attempts: int
    started_at: OutInstant | None
    completed_at: OutInstant | None
    error: str | None
    response: OutJson
    created_at: OutInstant


class RemovedOut(Output, title="AgentScheduleRemoved"):
    success: bool
    message: str


class ServicesOut(Output, title="AgentHealthServices"):
    database: str
    locks: Annotated[str, Field(description="Leases are stored in the database.")]
    redis: Annotated[str, Field(description="Always `not used`.")]


class AgentHealthOut(Output, title="AgentHealth"):
    status: str
    timestamp: OutInstant
    services: ServicesOut


# Maps agent schedules to schedules and back. Every schedule can be shown; values without a counterpart are
# shown as they are.


AGENT_HEADER = "X-Agent-Id"  # the header in which the id is stored and sent
TITLE = "title"  # the label with the original name, if it is not the name of the schedule
MILLISECOND = 1_000
UNCHANGED = RetryPolicyIn()
STATUSES = {
    State.PENDING: "PENDING",
    State.QUEUED: "PENDING",
    State.RUNNING: "RUNNING",
    State.SUCCEEDED: "SUCCESS",
    State.DEAD: "FAILED",
    State.CANCELLED: "CANCELLED",
    State.SKIPPED: "SKIPPED",
}
FIELDS = {
    "when": "cronExpression",
    "target.url": "agentUrl",
    "target.method": "httpMethod",
    f"target.headers.{AGENT_HEADER}": "agentId",
    "target.headers": "headers",
    "target.secret_headers": "headers",
    "retry.max_attempts": "retryPolicy.maxAttempts",
    "retry.multiplier": "retryPolicy.backoffMultiplier",
    "retry.first_delay": "retryPolicy.initialDelayMs",
    "retry.max_delay": "retryPolicy.maxDelayMs",
}


@contextmanager
def original_fields() -> Iterator[None]:
    """Errors name the fields that the caller sent."""
    try:
        yield
    except InvalidInput as problem:
        raise type(problem)(_field(problem.field), problem.reason) from None


def _field(ours: str) -> str:
    for name, theirs in FIELDS.items():
        if ours == name or ours.startswith(f"{name}."):
            return theirs + (ours[len(name) :] if theirs == "headers" else "")
    return ours


# -- requests ----------------------------------------------------------------------------------------------
# Schedules of other APIs may have values that are refused here. Answers show them and can be sent back whole,
# so only new values are checked.
def check_title(title: str) -> None:
    check_name(title, "name", MAX_TITLE)


def _check_agent_id(agent_id: str) -> None:
    if not 1 <= len(agent_id) <= MAX_AGENT_ID:
        raise InvalidInput("agentId", f"has {len(agent_id)} characters: use 1 to {MAX_AGENT_ID}")


def _check_delays(policy: RetryPolicyIn, before: Mapping[str, Any]) -> None:
    for name in ("initial_delay_ms", "max_delay_ms"):
        value, field = getattr(policy, name), to_camel(name)
        if name in policy.model_fields_set and value > MAX_DELAY and value != before[field]:
            raise InvalidInput(f"retryPolicy.{field}", f"{value} is too long: use at most {MAX_DELAY}")


def new_schedule(body: AgentScheduleIn, name: str, default: Retry) -> NewScheduleIn:
    _check_agent_id(body.agent_id)
    return NewScheduleIn(
        name=name,
        when={"cron": body.cron_expression, "tz": "UTC"},
        target={
            "type": "http",
            "url": body.agent_url,
            "method": body.http_method,
            "headers": _headers(body.headers, body.agent_id),
        },
        payload=body.payload,
        retry=_retry(body.retry_policy, default),
        labels={} if name == body.name else {TITLE: body.name},
        paused=not body.enabled,
        missed=MissedIn(policy=body.missed),
    )


def patch(body: AgentSchedulePatchIn, known: Schedule) -> SchedulePatchIn:
    """Only the fields that differ: sending back an answer unchanged changes nothing."""
    before = schedule(known)
    given = {name for name in body.model_fields_set if getattr(body, name) != before[to_camel(name)]}
    if "name" in given:
        check_title(body.name)
    if "agent_id" in given:
        _check_agent_id(body.agent_id)
    changes: dict[str, Any] = {}
    if "cron_expression" in given:
        zone = known.draft.when.tz if isinstance(known.draft.when, Cron) else "UTC"
        changes["when"] = {"cron": body.cron_expression, "tz": zone}
    if given & {"agent_id", "agent_url", "http_method", "headers"}:
        changes["target"] = _target(body, given, known, before)
    if "payload" in given:
        changes["payload"] = body.payload
    if "retry_policy" in given and (wanted := _retry(body.retry_policy, _stored_retry(known))) != _retry(
        UNCHANGED, _stored_retry(known)
    ):
        changes["retry"] = wanted
    if "name" in given:
        changes["labels"] = _labels(known) | {TITLE: body.name}
    if "missed" in given:
        changes["missed"] = MissedIn(policy=body.missed)
    if "enabled" in given:
        changes["paused"] = not body.enabled
    return SchedulePatchIn(**changes)


def _target(
    body: AgentSchedulePatchIn, given: set[str], known: Schedule, before: Mapping[str, Any]
) -> dict[str, Any]:
    kept = target_json(known.draft.target, known.draft.target_spec)
    if kept["type"] != "http" and "agent_url" not in given:
        raise Conflict(
            "agentUrl: the schedule runs a task, not an agent: set agentUrl, too, to make it call an agent"
        )
    target = kept if kept["type"] == "http" else {"type": "http"}
    if "agent_url" in given:
        target["url"] = body.agent_url
    if "http_method" in given:
        target["method"] = body.http_method
    headers = dict(body.headers if "headers" in given else before["headers"])
    secret = {name: headers.pop(name) for name in target.pop("secret_headers", {}) if name in headers}
    headers = _headers(headers, body.agent_id if "agent_id" in given else before["agentId"])
    return target | {"headers": headers, "secret_headers": secret}


def _headers(headers: Mapping[str, str], agent_id: str) -> dict[str, str]:
    if any(name.lower() == AGENT_HEADER.lower() for name in headers):
        raise InvalidInput(f"headers.{AGENT_HEADER}", "is set from agentId: leave it out")
    return {**headers, AGENT_HEADER: agent_id} if agent_id else dict(headers)


def _retry(policy: RetryPolicyIn, default: Retry) -> RetryIn:
    """Without jitter, because clients of this API expect exact delays."""
    before, given = _policy(default), policy.model_fields_set
    _check_delays(policy, before)
    merged = {
        name: getattr(policy, name) if name in given else before[to_camel(name)]
        for name in RetryPolicyIn.model_fields
    }
    return RetryIn(
        max_attempts=merged["max_attempts"],
        multiplier=float(merged["backoff_multiplier"]),
        first_delay=duration.show(merged["initial_delay_ms"] * MILLISECOND),
        max_delay=duration.show(merged["max_delay_ms"] * MILLISECOND),
        jitter=False,
    )


# -- answers -----------------------------------------------------------------------------------------------
def schedule(one: Schedule) -> dict[str, Any]:
    target = target_json(one.draft.target, one.draft.target_spec)
    headers = dict(target.get("headers", {}))
    agent_id = headers.pop(AGENT_HEADER, target.get("name", ""))
    return {
        "id": str(one.id),
        "name": _labels(one).get(TITLE, one.draft.name),
        "cronExpression": _cron(one),
        "agentId": agent_id,
        "agentUrl": _url(target),
        "httpMethod": target.get("method", "POST"),
        "headers": headers | target.get("secret_headers", {}),
        "payload": decoded(one.draft.payload),
        "retryPolicy": _policy(_stored_retry(one)),
        "enabled": not one.paused,
        "missed": one.draft.missed.policy,
        "createdAt": iso(one.created_at),
        "updatedAt": iso(one.updated_at),
    }


def execution(job: Job, schedule_id: str) -> dict[str, Any]:
    waits_again = job.state is State.PENDING and job.failures > 0
    return {
        "id": str(job.id),
        "scheduleId": schedule_id,
        "fireTime": iso(job.fire_time),
        "status": "RETRYING" if waits_again else STATUSES[job.state],
        "attempts": job.attempt,
        "startedAt": iso(started_at(job)),
        "completedAt": iso(job.finished_at),
        "error": job.error,
        "response": _response(decoded(job.result)),
        "createdAt": iso(job.created_at),
    }


def started_at(job: Job) -> Micros | None:
    """While it runs, the start may not be stored yet; its claim is."""
    return job.claimed_at if job.started_at is None and job.state is State.RUNNING else job.started_at


def _url(target: Mapping[str, Any]) -> str:
    """Without the slash after a host alone."""
    text: str = (
        target.get("url", "") if target["type"] == "http" else f"task:{target.get('name', target['type'])}"
    )
    return text.removesuffix("/") if text.count("/") == 3 else text


def _cron(one: Schedule) -> str:
    """The cron expression; `@every` for intervals, and JSON for other rules."""
    match one.draft.when:
        case Cron(expr=expression):
            return expression
        case Every(interval=interval):
            return f"@every {duration.show(duration.parse(interval, 'every'))}"
        case other:
            return json.dumps(to_json(other))


def _policy(retry: Retry) -> dict[str, Any]:
    return {
        "maxAttempts": retry.max_attempts,
        "backoffMultiplier": retry.multiplier,
        "initialDelayMs": duration.parse(retry.first_delay, "") // MILLISECOND,
        "maxDelayMs": duration.parse(retry.max_delay, "") // MILLISECOND,
    }


def _stored_retry(one: Schedule) -> Retry:
    own = (decoded(one.draft.policies) or {}).get("retry")
    return Retry() if own is None else Retry.restore(own)


def _labels(one: Schedule) -> dict[str, str]:
    return dict(decoded(one.draft.labels) or {})


def _response(result: Any) -> Any:
    """The response of the agent: JSON if possible, else text."""
    if not isinstance(result, dict) or not {"status", "headers", "body"} <= result.keys():
        return result
    try:
        return parse(result["body"].encode())
    except ApiProblem:
        return result["body"] or None
