"""Shadow targets: the job is recorded and nothing is called."""

from __future__ import annotations

from typing import Any

from duetime.invoker import Context, Policies
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.shadow import ShadowTarget


class ShadowHandler:
    limit: Limit | None = None
    policies = Policies(Retry(max_attempts=1))

    async def invoke(self, context: Context, payload: bytes) -> Any:
        return {"would_run": ShadowTarget.from_spec(context.job.target_spec or b"{}").target}

    async def close(self) -> None:
        pass
