"""Schemas of agent schedules and their executions: camelCase, delays in milliseconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from duetime.api.models.fields import WHOLE, Input, Json, Name, OutId, OutInstant, OutJson, Output
from duetime.api.models.targets import HTTP_TARGET
from duetime.model.retry import MAX_ATTEMPTS

MAX_AGENT_ID = 255
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
    Field(min_length=1, max_length=MAX_AGENT_ID),
    WithJsonSchema(
        {
            **_AGENT_ID,
            "description": "Sent to the agent in the header X-Agent-Id.",
            "examples": ["report-agent-001"],
        }
    ),
]
AgentUrl = Annotated[str, WithJsonSchema(_TARGET["url"])]
HttpMethod = Annotated[str, WithJsonSchema(_TARGET["method"])]
Headers = Annotated[dict[str, str], WithJsonSchema(_TARGET["headers"])]
Delay = Annotated[int, Field(ge=0, le=MAX_DELAY), WHOLE]
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


class AgentSchedulePatchIn(Input):
    """Only the given fields change."""

    model_config = CAMEL | ConfigDict(
        title="AgentSchedulePatch", json_schema_extra={"examples": [{"enabled": False}]}
    )
    name: Name = ""
    cron_expression: CronExpression = ""
    agent_id: AgentId = ""
    agent_url: AgentUrl = ""
    http_method: HttpMethod = "POST"
    headers: Headers = Field(default_factory=dict)
    payload: Json = None
    retry_policy: RetryPolicyIn = Field(default_factory=RetryPolicyIn)
    enabled: bool = True


class AgentScheduleIn(AgentSchedulePatchIn):
    """A schedule that calls an agent."""

    model_config = CAMEL | ConfigDict(title="NewAgentSchedule", json_schema_extra={"examples": [_EXAMPLE]})
    name: Name
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


class RemovedOut(Output):
    model_config = ConfigDict(title="AgentScheduleRemoved")
    success: bool
    message: str


class ServicesOut(Output):
    model_config = ConfigDict(title="AgentHealthServices")
    database: str
    locks: Annotated[str, Field(description="Leases are stored in the database.")]
    redis: Annotated[str, Field(description="The same as `locks`, under its original name.")]


class AgentHealthOut(Output):
    model_config = ConfigDict(title="AgentHealth")
    status: str
    timestamp: OutInstant
    services: ServicesOut
