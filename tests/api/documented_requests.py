"""Requests from the documentation of the two older systems, and how to send them."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from typing import Any, NamedTuple

import httpx2 as httpx

from tests.api.conftest import Api

CREATE = """\
POST /api/schedules
Content-Type: application/json

{
  "name": "Daily Report Agent",
  "cronExpression": "0 9 * * *",
  "agentId": "report-agent-001",
  "agentUrl": "https://example.com/api/agent",
  "httpMethod": "POST",
  "headers": {
    "Authorization": "Bearer token123"
  },
  "payload": {
    "reportType": "daily"
  },
  "retryPolicy": {
    "maxAttempts": 3,
    "backoffMultiplier": 2,
    "initialDelayMs": 1000,
    "maxDelayMs": 30000
  },
  "enabled": true
}
"""
LIST = "GET /api/schedules"
READ = "GET /api/schedules/{id}"
UPDATE = """\
PUT /api/schedules/{id}
Content-Type: application/json

{
  "enabled": false
}
"""
DELETE = "DELETE /api/schedules/{id}"
HISTORY = "GET /api/schedules/{id}/executions?limit=50"
CREATE_BY_CURL = """\
curl -X POST http://localhost:3000/api/schedules \\
  -H "Content-Type: application/json" \\
  -d '{
    "name": "Test Schedule",
    "cronExpression": "*/2 * * * *",
    "agentId": "test-001",
    "agentUrl": "http://mock-agent:5678",
    "httpMethod": "POST",
    "enabled": true
  }'
"""
LIST_BY_CURL = "curl http://localhost:3000/api/schedules"
HEALTH = "curl http://localhost:3000/api/health"
EXPRESSIONS = ("*/5 * * * *", "0 * * * *", "0 9 * * *", "0 9 * * 1", "*/15 9-17 * * 1-5", "0 0 1 * *")
ENVIRONMENT = """\
# Server
PORT=3000
NODE_ENV=development

# PostgreSQL
POSTGRES_HOST=localhost
POSTGRES_PORT=5432
POSTGRES_DB=scheduler
POSTGRES_USER=scheduler
POSTGRES_PASSWORD=scheduler123

# Redis
REDIS_HOST=localhost
REDIS_PORT=6379

# Scheduler
SCHEDULER_TICK_INTERVAL=1000    # How often to check schedules (ms)
LOCK_TTL=30000                  # Lock time-to-live (ms)
MAX_RETRY_ATTEMPTS=3
RETRY_BACKOFF_BASE=1000
"""
SUBMIT_JOB = "POST /jobs"
READ_JOB = "GET /jobs/{job_id}"
CANCEL_JOB = "DELETE /jobs/{job_id}"
LIST_JOBS = "GET /jobs?status=pending&user_id=u003"
LIST_EXECUTIONS = "GET /job/executions?worker_id=w001"

EXECUTION_FIELDS = [
    "id",
    "scheduleId",
    "fireTime",
    "status",
    "attempts",
    "startedAt",
    "completedAt",
    "error",
    "response",
    "createdAt",
]


class Printed(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: str


def parsed(text: str) -> Printed:
    """A request as a document prints it: in words of HTTP, or of curl."""
    if text.startswith("curl"):
        words = shlex.split(text.replace("\\\n", " "))
        options = dict(pairwise(words))
        address = next(word for word in words if word.startswith("http"))
        name, _, value = options.get("-H", "").partition(": ")
        path = address.removeprefix("http://localhost:3000")
        return Printed(options.get("-X", "GET"), path, {name: value} if name else {}, options.get("-d", ""))
    head, _, body = text.partition("\n\n")
    first, *lines = head.strip().split("\n")
    method, _, path = first.partition(" ")
    return Printed(method, path, dict(line.split(": ", 1) for line in lines), body)


class Seeds:
    def __init__(self, api: Api) -> None:
        self.app, self.v1 = api.app, api

    async def send(
        self, text: str, body: Any = None, headers: dict[str, str] | None = None, **ids: str
    ) -> httpx.Response:
        """As printed; `body` where the document prints none, ids in the place of {id}."""
        printed = parsed(text)
        path = printed.path
        for name, value in ids.items():
            path = path.replace("{" + name + "}", value)
        given = printed.headers if body is None else {"content-type": "application/json"}
        content = printed.body.encode() if body is None else json.dumps(body).encode()
        return await self.v1.client.request(
            printed.method, path, content=content or None, headers={**given, **(headers or {})}
        )

    async def create(self, **fields: Any) -> dict[str, Any]:
        wanted = {**json.loads(parsed(CREATE).body), **fields}
        done = await self.send(
            "POST /api/schedules", {name: value for name, value in wanted.items() if value is not ...}
        )
        assert done.status_code == 201, done.text
        made: dict[str, Any] = done.json()
        return made

    async def update(self, schedule_id: str, **fields: Any) -> httpx.Response:
        return await self.send("PUT /api/schedules/{id}", fields, id=schedule_id)
